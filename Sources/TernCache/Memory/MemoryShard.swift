/// The entries of one shard, on flat arrays: entries by slot, an index from hashes to slots, and the order of eviction.
///
/// A pure value except for the sums in the ledger, which all shards share. Removed entries are returned to the caller,
/// and never released here.
///
/// The type is not copyable, so that a look-up reads the shard in place. A copy would write the reference count of each
/// array, on cache lines that all threads share.
@usableFromInline
struct MemoryShard<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, Sendable {
    @usableFromInline typealias Removed = RemovedEntries<Key, Value>

    /// The content of one slot. A free slot has no key.
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline var key: Key?
        @usableFromInline var value: Value?
        @usableFromInline var deadline: UInt64
        @usableFromInline var cost: Int
        @usableFromInline var fingerprint: UInt32

        @inlinable
        init(_ newEntry: NewEntry<Key, Value>, fingerprint: UInt32) {
            key = newEntry.key
            value = newEntry.value
            deadline = newEntry.deadline
            cost = newEntry.cost
            self.fingerprint = fingerprint
        }
    }

    // The properties that a hit reads come first.
    @usableFromInline var counters = ShardCounters()
    @usableFromInline var index = SlotIndex()
    @usableFromInline var entries: [Entry] = []
    @usableFromInline var order: EvictionOrder
    @usableFromInline var cost = 0
    @usableFromInline var free: [Slot] = []
    /// The references by slot. Empty if the cache does not look for values in use.
    @usableFromInline var references: [WeakReferences<Value>.Reference?] = []
    @usableFromInline var recoverable: RecoverableTable<Key, Value>

    init(policy: MemoryCachePolicy, tracksUse: Bool) {
        order = EvictionOrder(policy)
        recoverable = RecoverableTable(isEnabled: tracksUse)
    }

    @inlinable var count: Int { index.count }

    // MARK: Look-ups

    /// Returns the slot of a key, whether or not its entry has expired.
    @inlinable @inline(__always)
    func find(_ key: Key, fingerprint: UInt32) -> Slot? {
        index.find(fingerprint) { entries[Int($0)].key == key }
    }

    /// Returns the value of a key, and counts the look-up as a use.
    @inlinable
    mutating func lookUp(_ key: Key, fingerprint: UInt32, now: UInt64) -> Value? {
        guard let slot = find(key, fingerprint: fingerprint), entries[Int(slot)].deadline > now else {
            counters.misses += 1
            return nil
        }
        order.touch(slot)
        counters.hits += 1
        return entries[Int(slot)].value
    }

    /// Returns the value of a key. For S3-FIFO, whose hits only increment a counter and can run concurrently.
    @inlinable @inline(__always)
    func lookUpConcurrently(_ key: Key, fingerprint: UInt32, now: UInt64) -> (Value?, ReaderStripe.LookUp) {
        guard let slot = find(key, fingerprint: fingerprint), entries[Int(slot)].deadline > now else {
            return (nil, .miss)
        }
        order.s3FIFO.touch(slot)
        return (entries[Int(slot)].value, .hit)
    }

    @inlinable
    func contains(_ key: Key, fingerprint: UInt32, now: UInt64) -> Bool {
        guard let slot = find(key, fingerprint: fingerprint) else { return false }
        return entries[Int(slot)].deadline > now
    }

    /// The result of a second look-up, under the lock, after a miss.
    @usableFromInline
    enum MissResult: Sendable {
        case nothing
        case value(Value)
        case recoverable(RecoverableTable<Key, Value>.Entry)
    }

    /// Looks a key up again after a miss: removes an expired entry, and returns an evicted value that may still be in
    /// use.
    @inlinable
    mutating func handleMiss(
        of key: Key, fingerprint: UInt32, now: UInt64, ledger: borrowing MemoryLedger, into removed: inout Removed
    ) -> MissResult {
        if let slot = find(key, fingerprint: fingerprint) {
            guard entries[Int(slot)].deadline <= now else {
                // Another thread inserted it between the two look-ups.
                counters.misses -= 1
                if let value = lookUp(key, fingerprint: fingerprint, now: now) { return .value(value) }
                return .nothing
            }
            order.remove(slot)
            removeEntry(at: slot, reason: .expired, ledger: ledger, into: &removed)
            return .nothing
        }
        guard let entry = recoverable.entries[key] else { return .nothing }
        guard entry.deadline > now else {
            removeRecoverable(key, into: &removed)
            return .nothing
        }
        return .recoverable(entry)
    }

    // MARK: Inserting

    /// The result of an attempt to insert an entry.
    @usableFromInline
    enum InsertResult: Sendable {
        /// The entry was stored.
        case stored
        /// The entry was to be recovered, but its key has a newer value by now, or was removed.
        case superseded
        /// All shards must first reduce the sum of costs to `costAfterPurge`.
        case needsPurge
        /// This shard holds less than its share, so another shard must evict an entry first.
        case needsRoom(MemoryCacheEvictionReason)
    }

    /// Stores an entry, and evicts other entries of this shard as needed.
    /// - Parameter shardCount: The number of shards that share the limits. Nil evicts from this shard even if it holds
    ///   less than its share.
    @inlinable
    mutating func insert(
        _ newEntry: NewEntry<Key, Value>, fingerprint: UInt32, ledger: borrowing MemoryLedger, shardCount: Int?,
        into removed: inout Removed
    ) -> InsertResult {
        if let slot = find(newEntry.key, fingerprint: fingerprint) {
            if newEntry.generation != nil { return .superseded }
            // Count the use first, so that the entry is not itself the next to be evicted.
            order.touch(slot)
        } else if let generation = newEntry.generation, recoverable.entries[newEntry.key]?.generation != generation {
            return .superseded
        }
        while true {
            let reservation: MemoryLedger.Reservation
            if let slot = find(newEntry.key, fingerprint: fingerprint) {
                reservation = ledger.reserve(cost: newEntry.cost - entries[Int(slot)].cost, count: 0)
                if reservation == .reserved {
                    removed.append(replace(slot, with: newEntry))
                    return .stored
                }
            } else {
                reservation = ledger.reserve(cost: newEntry.cost, count: 1)
                if reservation == .reserved {
                    if recoverable.isEnabled { removeRecoverable(newEntry.key, into: &removed) }
                    add(newEntry, fingerprint: fingerprint)
                    return .stored
                }
            }
            if reservation == .costIsFull, ledger.isPurging { return .needsPurge }
            let reason: MemoryCacheEvictionReason = reservation == .costIsFull ? .costLimit : .countLimit
            if let shardCount, !holdsShare(of: reason, ledger: ledger, shardCount: shardCount) {
                return .needsRoom(reason)
            }
            guard let victim = order.evict() else { return .needsRoom(reason) }
            removeEntry(at: victim, reason: reason, ledger: ledger, into: &removed)
        }
    }

    /// Adds an entry whose cost is reserved. The key must not have an entry.
    @inlinable
    mutating func add(_ newEntry: NewEntry<Key, Value>, fingerprint: UInt32) {
        let slot: Slot
        if let last = free.popLast() {
            slot = last
            entries[Int(slot)] = Entry(newEntry, fingerprint: fingerprint)
        } else {
            slot = Slot(entries.count)
            entries.append(Entry(newEntry, fingerprint: fingerprint))
            if recoverable.isEnabled { references.append(nil) }
        }
        if recoverable.isEnabled { references[Int(slot)] = newEntry.reference }
        index.insert(slot, fingerprint: fingerprint)
        order.admit(slot, fingerprint: fingerprint, cost: newEntry.cost)
        cost += newEntry.cost
        counters.insertions += 1
    }

    /// Replaces an entry with one whose cost is reserved, and returns the old entry.
    @inlinable
    mutating func replace(_ slot: Slot, with newEntry: NewEntry<Key, Value>) -> RemovedEntry<Key, Value> {
        let position = Int(slot)
        let old = RemovedEntry(
            key: newEntry.key, value: entries[position].value, cost: entries[position].cost, reason: nil,
            reference: recoverable.isEnabled ? references[position] : nil)
        entries[position].value = newEntry.value
        cost += newEntry.cost - entries[position].cost
        entries[position].cost = newEntry.cost
        entries[position].deadline = newEntry.deadline
        if recoverable.isEnabled { references[position] = newEntry.reference }
        order.setCost(newEntry.cost, of: slot)
        counters.insertions += 1
        return old
    }

    /// Returns whether this shard holds at least three quarters of the average. Smaller differences are not evened out.
    @inlinable
    func holdsShare(of reason: MemoryCacheEvictionReason, ledger: borrowing MemoryLedger, shardCount: Int) -> Bool {
        if reason == .costLimit {
            return cost >= ledger.cost / shardCount / 4 * 3
        }
        return count >= ledger.count / shardCount / 4 * 3
    }

    // MARK: Removing

    /// The maximum number of entries that one hold of the lock removes, so that look-ups do not wait for a long trim.
    static var batch: Int { 256 }

    /// Removes the entry of a key for the user, and returns its value. Returns nil for an expired entry.
    @inlinable
    mutating func remove(
        _ key: Key, fingerprint: UInt32, now: UInt64, ledger: borrowing MemoryLedger, into removed: inout Removed
    ) -> Value? {
        if recoverable.isEnabled { removeRecoverable(key, into: &removed) }
        guard let slot = find(key, fingerprint: fingerprint) else { return nil }
        order.remove(slot)
        let isExpired = entries[Int(slot)].deadline <= now
        removeEntry(at: slot, reason: isExpired ? .expired : nil, ledger: ledger, into: &removed)
        return isExpired ? nil : removed.last?.value
    }

    /// Removes an entry that is no longer in the order of eviction.
    @inlinable
    mutating func removeEntry(
        at slot: Slot, reason: MemoryCacheEvictionReason?, ledger: borrowing MemoryLedger, into removed: inout Removed
    ) {
        let position = Int(slot)
        guard let key = entries[position].key.take() else { return }
        let value = entries[position].value.take()
        let reference = recoverable.isEnabled ? references[position].take() : nil
        let freed = entries[position].cost
        let deadline = entries[position].deadline
        index.remove(slot, fingerprint: entries[position].fingerprint)
        free.append(slot)
        cost -= freed
        ledger.release(cost: freed, count: 1)
        if let reason { counters.evictions[reason.ordinal] += 1 }
        if let reference, let reason, reason != .expired {
            recoverable.add(key, reference: reference, cost: freed, deadline: deadline)
        }
        removed.append(RemovedEntry(key: key, value: value, cost: freed, reason: reason, reference: reference))
    }

    /// Removes the evicted value of a key, so that it cannot be recovered.
    @usableFromInline
    mutating func removeRecoverable(_ key: Key, into removed: inout Removed) {
        guard let entry = recoverable.remove(key) else { return }
        removed.append(RemovedEntry(key: key, value: nil, cost: 0, reason: nil, reference: entry.reference))
    }

    /// Evicts entries in the policy's order while `condition` is true, one batch at most. Returns their number.
    mutating func evict(
        for reason: MemoryCacheEvictionReason, ledger: borrowing MemoryLedger, into removed: inout Removed,
        while condition: (borrowing Self) -> Bool
    ) -> Int {
        var evicted = 0
        while evicted < Self.batch, condition(self), let slot = order.evict() {
            removeEntry(at: slot, reason: reason, ledger: ledger, into: &removed)
            evicted += 1
        }
        if evicted > 0, count == 0 { releaseStorage() }
        return evicted
    }

    /// Removes expired entries from slot `start` on, one batch at most.
    /// - Returns: The slot at which to continue, nil at the end; and the earliest deadline of the entries that stay.
    mutating func removeExpired(
        from start: Int, now: UInt64, ledger: borrowing MemoryLedger, into removed: inout Removed
    ) -> (next: Int?, earliest: UInt64) {
        var earliest = UInt64.max
        var expired = 0
        for position in start..<max(start, entries.count) where entries[position].key != nil {
            guard entries[position].deadline <= now else {
                earliest = min(earliest, entries[position].deadline)
                continue
            }
            if expired == Self.batch { return (position, earliest) }
            expired += 1
            order.remove(Slot(position))
            removeEntry(at: Slot(position), reason: .expired, ledger: ledger, into: &removed)
        }
        return (nil, earliest)
    }

    /// Removes everything at once. The caller releases the returned shard outside the lock.
    mutating func removeAll(ledger: borrowing MemoryLedger) -> Self {
        var old = Self(policy: order.policy, tracksUse: recoverable.isEnabled)
        swap(&self, &old)
        ledger.release(cost: old.cost, count: old.count)
        swap(&counters, &old.counters)
        return old
    }

    /// Frees the arrays of an empty shard.
    private mutating func releaseStorage() {
        index = SlotIndex()
        entries = []
        free = []
        references = []
        order.releaseStorage()
    }
}
