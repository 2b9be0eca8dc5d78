import TernConcurrency

/// The part of a memory cache that changes together: limits and sums, the order of eviction, the counters of changes,
/// and the evicted values that may still be in use. Each change of the cache holds its lock, then that of one shard at
/// a time, so that the limits hold at every instant.
///
/// Removed entries are returned to the caller, who releases them without a lock held.
@usableFromInline
struct MemoryCacheState<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Entry = MemoryEntry<Key, Value>
    @usableFromInline typealias Removed = RemovedEntries<Key, Value>

    @usableFromInline let shards: MemoryShards<Key, Value>
    @usableFromInline private(set) var limits: MemoryCacheLimits
    /// The number of all entries.
    @usableFromInline var count = 0
    /// The sum of all entries' costs.
    @usableFromInline var cost = 0
    /// The values that were stored.
    @usableFromInline var insertions = 0
    /// The evicted entries by reason.
    @usableFromInline var evictions: [MemoryCacheEvictionReason: Int] = [:]
    /// The misses that were made good by an evicted value in use.
    var recovered = 0
    /// The time of the next sweep of expired entries; `.max` for none.
    var sweepTime = UInt64.max
    /// Sleeps until that time. The next schedule and the end of the cache cancel it.
    var sweep: Task<Void, Never>?
    @usableFromInline var order: EvictionOrder
    @usableFromInline var recoverable = RecoverableTable<Key, Value>()

    init(_ shards: MemoryShards<Key, Value>, policy: MemoryCachePolicy, limits: MemoryCacheLimits) {
        self.shards = shards
        self.limits = limits
        order = EvictionOrder(policy)
        setLimits(limits)
    }

    /// Changes the limits. The caller evicts what exceeds them.
    mutating func setLimits(_ limits: MemoryCacheLimits) {
        self.limits = limits
        self.limits.entryCost = min(limits.entryCost, limits.cost)
        self.limits.costAfterPurge = min(limits.costAfterPurge, limits.cost)
    }

    /// The counters of the changes and of the shards.
    var statistics: MemoryCacheStatistics {
        var statistics = MemoryCacheStatistics()
        (statistics.insertions, statistics.evictions) = (insertions, evictions)
        (statistics.count, statistics.cost, statistics.recovered) = (count, cost, recovered)
        for shard in shards.shards {
            let (hits, misses) = shard.table.withLock { ($0.hits, $0.misses) }
            statistics.hits += hits
            statistics.misses += misses
        }
        statistics.hits += recovered
        statistics.misses -= recovered
        return statistics
    }

    // MARK: Inserting

    /// Stores an entry, and evicts others first as needed. Returns false if the entry is too large, or out of date.
    /// - Parameter generation: The generation of a recovered value, which is only stored if it is still the latest of
    ///   its key.
    @inlinable
    mutating func insert(
        _ entry: Entry, hash: UInt64, recovering generation: UInt64?, into removed: inout Removed
    )
        -> Bool
    {
        if let generation, recoverable.entries[entry.key]?.generation != generation { return false }
        guard entry.cost <= limits.entryCost, limits.count > 0 else {
            if generation == nil { refuse(entry, hash: hash, into: &removed) }
            return false
        }
        removeRecoverable(entry.key, into: &removed)
        let slot = makeRoom(for: entry, hash: hash, into: &removed)
        if let slot {
            if let old = shards.withTable(ofSlot: slot, { $0.replace(at: $1, with: entry) }) {
                cost -= old.cost
                removed.entries.append((old, nil))
            }
            order.setCost(entry.cost, of: slot)
        } else {
            let shard = shards.shard(of: hash)
            let position = shards.withTable(shard) { $0.add(entry, hash: hash) }
            order.admit(
                shards.slot(at: position, shard: shard), fingerprint: UInt32(truncatingIfNeeded: hash),
                cost: entry.cost)
            count += 1
        }
        cost += entry.cost
        insertions += 1
        return true
    }

    /// Evicts entries until an entry fits. Returns the slot of the entry that it replaces, if that is still held.
    @inlinable
    mutating func makeRoom(for entry: Entry, hash: UInt64, into removed: inout Removed) -> Int? {
        // Count the use first, so that the old entry of the key is not itself the next to be evicted.
        var slot = use(entry.key, hash: hash)
        var costLimit = limits.cost
        while true {
            let old = slot.map { shards.withTable(ofSlot: $0) { $0.nodes[$1].cost } }
            let added = entry.cost - (old ?? 0)
            if added > 0, cost > costLimit - added {
                costLimit = limits.costAfterPurge
                guard evict(for: .costLimit, into: &removed) else { return nil }
            } else if old == nil, count >= limits.count {
                guard evict(for: .countLimit, into: &removed) else { return nil }
            } else {
                return slot
            }
            if slot != nil { slot = shards.find(entry.key, hash: hash) }
        }
    }

    /// Counts a use of a key, and returns its slot.
    @inlinable
    mutating func use(_ key: Key, hash: UInt64) -> Int? {
        guard let slot = shards.find(key, hash: hash) else { return nil }
        if order.isLRU { order.moveToNewest(slot) } else { shards.withTable(ofSlot: slot) { $0.recordUse(at: $1) } }
        return slot
    }

    /// Removes the old value of a key whose new value is too expensive, so that nobody takes the old one for the new
    /// one. The new one can be found while it is in use.
    @usableFromInline
    mutating func refuse(_ entry: Entry, hash: UInt64, into removed: inout Removed) {
        remove(entry.key, hash: hash, now: 0, into: &removed)
        discard(entry, reason: .tooLarge, into: &removed)
    }

    // MARK: Removing

    /// Removes the value of a key, also one that is only in use elsewhere. An expired one counts as an eviction.
    @inlinable
    mutating func remove(_ key: Key, hash: UInt64, now: UInt64, into removed: inout Removed) {
        removeRecoverable(key, into: &removed)
        guard let slot = shards.find(key, hash: hash) else { return }
        order.remove(slot)
        removeEntry(at: slot, reason: nil, now: now, into: &removed)
    }

    /// Evicts the next entry in the policy's order. Returns false if there is none.
    @inlinable
    mutating func evict(for reason: MemoryCacheEvictionReason, into removed: inout Removed) -> Bool {
        let shards = shards
        let slot = order.evict { slot in shards.withTable(ofSlot: slot) { $0.takeUses(at: $1) } }
        guard let slot else { return false }
        removeEntry(at: slot, reason: reason, into: &removed)
        return true
    }

    /// Removes an entry that is no longer in the order of eviction.
    @inlinable
    mutating func removeEntry(
        at slot: Int, reason: MemoryCacheEvictionReason?, now: UInt64 = 0, into removed: inout Removed
    ) {
        guard let entry = shards.withTable(ofSlot: slot, { $0.remove(at: $1) }) else { return }
        count -= 1
        cost -= entry.cost
        discard(entry, reason: entry.deadline <= now ? .expired : reason, into: &removed)
    }

    /// Counts an entry that is no longer stored, and remembers its value if it may be found again.
    @inlinable
    mutating func discard(_ entry: Entry, reason: MemoryCacheEvictionReason?, into removed: inout Removed) {
        if let reason {
            evictions[reason, default: 0] += 1
            if reason != .expired { recoverable.add(entry) }
        }
        removed.entries.append((entry, reason))
    }

    /// Removes the evicted value of a key, so that it cannot be recovered.
    @inlinable
    mutating func removeRecoverable(_ key: Key, into removed: inout Removed) {
        if let entry = recoverable.remove(key) { removed.references.append(entry.reference) }
    }

    /// Evicts entries while a condition is true, up to a number. Returns how many it evicted.
    mutating func evict(
        atMost limit: Int, for reason: MemoryCacheEvictionReason, into removed: inout Removed,
        while condition: (Self) -> Bool
    ) -> Int {
        var evicted = 0
        while evicted < limit, condition(self), evict(for: reason, into: &removed) { evicted += 1 }
        // Frees the memory of the tables and of the order.
        if evicted > 0, count == 0 { removeAllEntries() }
        return evicted
    }

    /// Removes the entry of a key if it has expired. Returns the evicted value of the key that may still be in use.
    @inlinable
    mutating func recoverableEntry(
        of key: Key, hash: UInt64, now: UInt64, into removed: inout Removed
    )
        -> RecoverableTable<Key, Value>.Entry?
    {
        if let slot = shards.find(key, hash: hash) {
            // Otherwise another thread has inserted it since the look-up.
            if shards.withTable(ofSlot: slot, { $0.isExpired(at: $1, now: now) }) {
                order.remove(slot)
                removeEntry(at: slot, reason: .expired, into: &removed)
            }
            return nil
        }
        guard let entry = recoverable.entries[key] else { return nil }
        if entry.deadline > now { return entry }
        removeRecoverable(key, into: &removed)
        return nil
    }

    /// Removes the expired entries of one shard. Returns the earliest deadline of the others, or `.max`.
    mutating func removeExpired(fromShard number: Int, now: UInt64, into removed: inout Removed) -> UInt64 {
        let (positions, earliest) = shards.withTable(number) { $0.expired(at: now) }
        for position in positions {
            let slot = shards.slot(at: position, shard: number)
            order.remove(slot)
            removeEntry(at: slot, reason: .expired, into: &removed)
        }
        return earliest
    }

    /// Removes everything, and returns the old tables, which the caller releases.
    mutating func removeAll() -> ([MemoryTable<Key, Value>], RecoverableTable<Key, Value>) {
        let old = recoverable
        recoverable = RecoverableTable()
        return (removeAllEntries(), old)
    }

    /// Removes the tables with all entries. Evicted values can still be recovered.
    @discardableResult
    mutating func removeAllEntries() -> [MemoryTable<Key, Value>] {
        order = EvictionOrder(order.isLRU ? .lru : .s3FIFO)
        (count, cost) = (0, 0)
        return shards.shards.map { $0.table.withLock { $0.removeAll() } }
    }
}
