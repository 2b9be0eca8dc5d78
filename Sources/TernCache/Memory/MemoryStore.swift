public import Synchronization
import TernConcurrency

/// What a `MemoryCache` holds: four shards behind locks of their own, or one, with readers beside them, and the sums
/// they share.
///
/// What user code could run under a lock is only `==` and the hash of a key. Values, finders and readers of evictions are
/// let go of and told after it.
@usableFromInline
final class MemoryStore<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Shard = MemoryShard<Key, Value>
    @usableFromInline typealias Leavers = MemoryLeavers<Key, Value>

    /// One less than the number of shards.
    @usableFromInline let shardMask: Int
    /// Whether a hit moves nothing, so that look-ups may run beside each other. LRU moves its entry.
    @usableFromInline let readsTogether: Bool
    /// Whether a look-up that found nothing has more to try: values in use, or entries whose time was over.
    @usableFromInline let looksFurther: Atomic<Bool>
    @usableFromInline let hasDeadlines = Atomic<Bool>(false)
    @usableFromInline let hash = KeyHash()
    @usableFromInline let clock: CacheClock
    @usableFromInline let timeToLive: Duration?
    @usableFromInline let cost: @Sendable (Value) -> Int
    @usableFromInline let inUse: InUse<Value>?
    @usableFromInline let feed: EvictionFeed<Key>
    let expiry: ExpirySchedule

    @usableFromInline let shards: ShardArray<Shard>
    @usableFromInline let ledger: MemoryLedger

    init(
        _ configuration: MemoryCacheConfiguration, inUse: InUse<Value>?, cost: @escaping @Sendable (Value) -> Int
    ) {
        // Strict LRU needs one order; and shares of few entries would be too uneven.
        shardMask = configuration.policy == .lru || configuration.limits.count < 256 ? 0 : 3
        readsTogether = configuration.policy != .lru
        looksFurther = Atomic(inUse != nil)
        clock = CacheClock(configuration.clock)
        timeToLive = configuration.timeToLive
        self.cost = cost
        self.inUse = inUse
        feed = EvictionFeed(limit: configuration.eventLimit)
        expiry = ExpirySchedule(interval: configuration.expiryInterval.wholeNanoseconds)
        shards = ShardArray(count: shardMask + 1) {
            Shard(policy: configuration.policy, tracksUse: inUse != nil)
        }
        ledger = MemoryLedger(configuration.limits)
    }

    deinit {
        expiry.cancel()
        feed.finish()
    }

    @usableFromInline var shardCount: Int { shardMask + 1 }

    /// The clock is somebody's code: it is read under no lock, and only if any entry has a deadline.
    @inlinable @inline(__always)
    func currentTime() -> UInt64 { hasDeadlines.load(ordering: .relaxed) ? clock.now() : 0 }

    @inlinable var mayFindMore: Bool { looksFurther.load(ordering: .relaxed) }

    /// Runs `body` under the lock of one shard.
    @inlinable @inline(__always)
    func withShard<Result: Sendable & ~Copyable>(_ number: Int, _ body: (inout Shard) -> Result) -> Result {
        shards.withLock(number, body)
    }

    /// The shard of a key, and the 32 bits of its hash by which it is found there.
    @inlinable @inline(__always)
    func place(of key: Key) -> (shard: Int, fingerprint: UInt32) {
        let hash = hash(key)
        return (Int(truncatingIfNeeded: hash >> 30) & shardMask, UInt32(truncatingIfNeeded: hash >> 32))
    }

    /// Lets go of what left, with no lock held, and tells of the evictions.
    @inlinable @inline(__always)
    func finish(_ leavers: consuming Leavers) {
        if leavers.first != nil, feed.isHeard { tell(leavers) }
    }

    @usableFromInline
    func tell(_ leavers: Leavers) {
        feed.tell(leavers.evictions)
    }

    var statistics: MemoryCacheStatistics {
        var statistics = MemoryCacheStatistics()
        for number in 0...shardMask {
            statistics.add(withShard(number) { $0.counters })
            let readers = shards.readerCounts(number)
            statistics.hits += readers.hits
            statistics.misses += readers.misses
        }
        statistics.count = ledger.count
        statistics.cost = ledger.cost
        return statistics
    }
}
