public import TernConcurrency

/// The entries of a memory cache, in shards with a lock each. A slot is the number of a shard and a position in it.
///
/// Measured on two processors, in look-ups of two threads against those of one: half as many under one lock, because
/// the threads wait for each other, and 1.2 to 1.4 times as many under 64 locks.
@usableFromInline
struct MemoryShards<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Table = MemoryTable<Key, Value>

    /// An object for each shard, because an array cannot hold locks.
    @usableFromInline
    final class Shard: Sendable {
        @usableFromInline let table = Lock(Table())
        init() {}
    }

    /// The shards by number.
    @usableFromInline let shards = (0..<64).map { _ in Shard() }

    init() {}

    /// Returns the hash of a key. All its bits are evenly spread: the upper six select the shard.
    @inlinable
    func hash(of key: Key) -> UInt64 {
        // The multiplication spreads the hash of a type that has a poor `hashValue` of its own.
        let product = UInt64(UInt(bitPattern: key.hashValue)).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }

    /// Returns the number of the shard of a hash.
    @inlinable
    func shard(of hash: UInt64) -> Int { Int(hash >> 58) }

    /// Returns the slot of a position in a shard.
    @inlinable
    func slot(at position: Int, shard: Int) -> Int { position << 6 | shard }

    /// Runs `body` under the lock of a shard.
    @inlinable @inline(__always)
    func withTable<Result: Sendable>(_ shard: Int, _ body: (inout Table) -> Result) -> Result {
        shards[shard].table.withLock { body(&$0) }
    }

    /// Runs `body` under the lock of the shard of a slot, with the position of the slot there.
    @inlinable @inline(__always)
    func withTable<Result: Sendable>(ofSlot slot: Int, _ body: (inout Table, Int) -> Result) -> Result {
        withTable(slot & 63) { body(&$0, slot >> 6) }
    }

    /// Returns the slot of a key, whether or not its entry has expired.
    @inlinable
    func find(_ key: Key, hash: UInt64) -> Int? {
        let shard = shard(of: hash)
        return withTable(shard) { $0.find(key, hash: hash) }.map { slot(at: $0, shard: shard) }
    }

    /// The keys of all entries, in no order. Each shard is read at one moment.
    var keys: [Key] {
        shards.flatMap { $0.table.withLock { table in table.nodes.compactMap(\.key) } }
    }
}
