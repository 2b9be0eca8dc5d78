/// The entries of one shard on flat arrays: keys, values and terms by slot, an index from hashes to slots, and the order
/// of eviction. Pure but for the sums, which all shards share; what leaves is returned, never released here.
///
/// Not copyable, so that a look-up reads it where it lies: a copy would write the reference count of each array, on lines
/// that all threads share.
@usableFromInline
struct MemoryShard<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
    @usableFromInline typealias Leavers = MemoryLeavers<Key, Value>

    /// One entry, or a free place.
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline var key: Key?
        @usableFromInline var value: Value?
        @usableFromInline var deadline: UInt64
        @usableFromInline var cost: Int
        @usableFromInline var fingerprint: UInt32

        @inlinable
        init(_ arrival: MemoryArrival<Key, Value>, _ fingerprint: UInt32) {
            key = arrival.key
            value = arrival.value
            deadline = arrival.deadline
            cost = arrival.cost
            self.fingerprint = fingerprint
        }
    }

    // What a hit touches comes first.
    @usableFromInline var counters = ShardCounters()
    @usableFromInline var index = SlotIndex()
    @usableFromInline var entries: [Entry] = []
    @usableFromInline var order: EvictionOrder
    @usableFromInline var cost = 0
    @usableFromInline var free: [Slot] = []
    /// By slot; empty when the cache does not look for values in use.
    @usableFromInline var finders: [InUse<Value>.Finder?] = []
    @usableFromInline var faded: FadedTable<Key, Value>

    init(policy: MemoryCachePolicy, tracksUse: Bool) {
        order = EvictionOrder(policy)
        faded = FadedTable(isEnabled: tracksUse)
    }

    @inlinable var count: Int { index.count }

    /// The slot of this key, expired or not.
    @inlinable @inline(__always)
    func find(_ key: Key, _ fingerprint: UInt32) -> Slot? {
        index.find(fingerprint) { entries[Int($0)].key == key }
    }

    /// The value of a key that has one, which counts as a use.
    @inlinable
    mutating func look(_ key: Key, _ fingerprint: UInt32, now: UInt64) -> Value? {
        guard let slot = find(key, fingerprint), entries[Int(slot)].deadline > now else {
            counters.misses += 1
            return nil
        }
        order.touch(slot)
        counters.hits += 1
        return entries[Int(slot)].value
    }

    /// The same for the policy whose hits move nothing, and may run beside each other: a use is noted, and that is all.
    @inlinable @inline(__always)
    func glance(_ key: Key, _ fingerprint: UInt32, now: UInt64) -> (Value?, ReaderStripe.Count) {
        guard let slot = find(key, fingerprint), entries[Int(slot)].deadline > now else { return (nil, .miss) }
        order.s3FIFO.touch(slot)
        return (entries[Int(slot)].value, .hit)
    }

    @inlinable
    func contains(_ key: Key, _ fingerprint: UInt32, now: UInt64) -> Bool {
        guard let slot = find(key, fingerprint) else { return false }
        return entries[Int(slot)].deadline > now
    }

    /// Enters a value whose cost is reserved, under a key that is not there.
    @inlinable
    mutating func enter(_ arrival: MemoryArrival<Key, Value>, _ fingerprint: UInt32) {
        let slot: Slot
        if let last = free.popLast() {
            slot = last
            entries[Int(slot)] = Entry(arrival, fingerprint)
        } else {
            slot = Slot(entries.count)
            entries.append(Entry(arrival, fingerprint))
            if faded.isEnabled { finders.append(nil) }
        }
        if faded.isEnabled { finders[Int(slot)] = arrival.finder }
        index.insert(slot, fingerprint: fingerprint)
        order.admit(slot, fingerprint: fingerprint, cost: arrival.cost)
        cost += arrival.cost
        counters.insertions += 1
    }

    /// Puts a value whose cost is reserved in the place of another; the other is returned.
    @inlinable
    mutating func replace(_ slot: Slot, by arrival: MemoryArrival<Key, Value>) -> MemoryLeaver<Key, Value> {
        let place = Int(slot)
        let old = MemoryLeaver(
            key: arrival.key, value: entries[place].value, cost: entries[place].cost, reason: nil,
            finder: faded.isEnabled ? finders[place] : nil)
        entries[place].value = arrival.value
        cost += arrival.cost - entries[place].cost
        entries[place].cost = arrival.cost
        entries[place].deadline = arrival.deadline
        if faded.isEnabled { finders[place] = arrival.finder }
        order.setCost(arrival.cost, of: slot)
        counters.insertions += 1
        return old
    }

    /// Takes an entry out that the order of eviction has forgotten already.
    @inlinable
    mutating func leave(
        _ slot: Slot, _ reason: MemoryCacheEvictionReason?, _ ledger: borrowing MemoryLedger,
        into leavers: inout Leavers
    ) {
        let place = Int(slot)
        guard let key = entries[place].key.take() else { return }
        let value = entries[place].value.take()
        let finder = faded.isEnabled ? finders[place].take() : nil
        let left = entries[place].cost
        let deadline = entries[place].deadline
        index.remove(slot, fingerprint: entries[place].fingerprint)
        free.append(slot)
        cost -= left
        ledger.release(cost: left, count: 1)
        if let reason { counters.evictions[reason.ordinal] += 1 }
        if let finder, let reason, reason != .expired {
            faded.add(key, finder, cost: left, deadline: deadline)
        }
        leavers.append(MemoryLeaver(key: key, value: value, cost: left, reason: reason, finder: finder))
    }
}
