public import Synchronization
public import TernConcurrency

/// The content of a `MemoryCache`: one or four shards, each with a lock and concurrent readers, and the sums they
/// share.
///
/// The only user code that runs under a lock is `==` and the hash of a key. Values and references are released, and
/// evictions are sent, after the lock is released.
@usableFromInline
final class MemoryStore<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline typealias Shard = MemoryShard<Key, Value>
    @usableFromInline typealias Removed = RemovedEntries<Key, Value>

    /// The number of shards minus one.
    @usableFromInline let shardMask: Int
    /// Whether look-ups can run concurrently. LRU moves the entry of a hit, so it cannot.
    @usableFromInline let allowsConcurrentReads: Bool
    /// Whether a miss needs a second look-up, for values in use or expired entries.
    @usableFromInline let handlesMisses: Atomic<Bool>
    @usableFromInline let hasDeadlines = Atomic<Bool>(false)
    @usableFromInline let hash = KeyHash()
    @usableFromInline let clock: CacheClock
    @usableFromInline let timeToLive: Duration?
    @usableFromInline let cost: @Sendable (Value) -> Int
    @usableFromInline let weakReferences: WeakReferences<Value>?
    @usableFromInline let evictionEvents: EventBroadcast<MemoryCacheEvent<Key>>
    let expiry: ExpirySchedule

    @usableFromInline let shards: ShardArray<Shard>
    @usableFromInline let ledger: MemoryLedger

    init(
        _ configuration: MemoryCacheConfiguration, weakReferences: WeakReferences<Value>?,
        cost: @escaping @Sendable (Value) -> Int
    ) {
        // Strict LRU needs a single order, and shares of a few entries would be too uneven.
        shardMask = configuration.policy == .lru || configuration.limits.count < 256 ? 0 : 3
        allowsConcurrentReads = configuration.policy != .lru
        handlesMisses = Atomic(weakReferences != nil)
        clock = CacheClock(configuration.clock)
        timeToLive = configuration.timeToLive
        self.cost = cost
        self.weakReferences = weakReferences
        evictionEvents = EventBroadcast(
            limit: configuration.eventLimit, overflow: .reportDropped { .dropped($0) })
        expiry = ExpirySchedule(interval: configuration.expiryInterval.wholeNanoseconds)
        shards = ShardArray(count: shardMask + 1) {
            Shard(policy: configuration.policy, tracksUse: weakReferences != nil)
        }
        ledger = MemoryLedger(configuration.limits)
    }

    deinit {
        expiry.cancel()
        evictionEvents.finish()
    }

    @usableFromInline var shardCount: Int { shardMask + 1 }

    /// Reads the clock, if any entry has a deadline. The clock can be user code, so no lock is held.
    @inlinable @inline(__always)
    func currentTime() -> UInt64 { hasDeadlines.load(ordering: .relaxed) ? clock.now() : 0 }

    /// Runs `body` under the lock of one shard.
    @inlinable @inline(__always)
    func withShard<Result: Sendable & ~Copyable>(_ number: Int, _ body: (inout Shard) -> Result) -> Result {
        shards.withLock(number, body)
    }

    /// Returns the shard of a key, and the 32 bits of its hash that identify it there.
    @inlinable @inline(__always)
    func location(of key: Key) -> (shard: Int, fingerprint: UInt32) {
        let hash = hash(key)
        return (Int(truncatingIfNeeded: hash >> 30) & shardMask, UInt32(truncatingIfNeeded: hash >> 32))
    }

    /// Releases removed entries and sends their evictions. Must be called without a lock held.
    @inlinable @inline(__always)
    func release(_ removed: consuming Removed) {
        if removed.first != nil, evictionEvents.hasSubscribers { sendEvictions(of: removed) }
    }

    @usableFromInline
    func sendEvictions(of removed: Removed) {
        evictionEvents.send(contentsOf: removed.evictions.map { .evicted($0) })
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

// MARK: - Look-ups

extension MemoryStore {
    @inlinable
    func value(for key: Key) -> Value? {
        let location = location(of: key)
        let now = currentTime()
        let value = lookUp(key, shard: location.shard, fingerprint: location.fingerprint, now: now)
        if value == nil, handlesMisses.load(ordering: .relaxed) {
            return handleMiss(of: key, shard: location.shard, fingerprint: location.fingerprint, now: now)
        }
        return value
    }

    @inlinable @inline(__always)
    func lookUp(_ key: Key, shard: Int, fingerprint: UInt32, now: UInt64) -> Value? {
        if allowsConcurrentReads {
            return shards.read(shard) { $0.lookUpConcurrently(key, fingerprint: fingerprint, now: now) }
        }
        return withShard(shard) { $0.lookUp(key, fingerprint: fingerprint, now: now) }
    }

    @inlinable
    func contains(_ key: Key) -> Bool {
        let location = location(of: key)
        let now = currentTime()
        if allowsConcurrentReads {
            return shards.read(location.shard) {
                ($0.contains(key, fingerprint: location.fingerprint, now: now), .notCounted)
            }
        }
        return withShard(location.shard) { $0.contains(key, fingerprint: location.fingerprint, now: now) }
    }

    /// Removes an expired entry after a miss, or recovers an evicted value that is still in use.
    // Inlinable, because every miss comes here. Unspecialised, it cost more than the rest of the look-up.
    @inlinable
    func handleMiss(of key: Key, shard number: Int, fingerprint: UInt32, now: UInt64) -> Value? {
        let (result, removed) = withShard(number) { shard in
            var removed = Removed()
            let result = shard.handleMiss(
                of: key, fingerprint: fingerprint, now: now, ledger: ledger, into: &removed)
            return (result, removed)
        }
        release(removed)
        switch result {
        case .nothing: return nil
        case .value(let value): return value
        case .recoverable(let entry): return recover(entry, of: key, shard: number)
        }
    }

    /// Runs the reference to an evicted value, without a lock, and stores the value again unless its key has a newer
    /// one.
    @usableFromInline
    func recover(_ entry: RecoverableTable<Key, Value>.Entry, of key: Key, shard number: Int) -> Value? {
        guard let value = entry.reference() else {
            _ = withShard(number) { $0.recoverable.remove(key, generation: entry.generation) }
            return nil
        }
        withShard(number) { shard in
            shard.counters.misses -= 1
            shard.counters.hits += 1
            shard.counters.recovered += 1
        }
        _ = insert(
            NewEntry(
                key: key, value: value, cost: entry.cost, deadline: entry.deadline, reference: entry.reference,
                generation: entry.generation))
        return value
    }

    /// Removes the evicted values that are no longer in use, once there are enough of them.
    @inlinable
    func sweepRecoverable(shard number: Int) {
        if withShard(number, { $0.recoverable.needsSweep }) { removeUnused(shard: number) }
    }

    @usableFromInline
    func removeUnused(shard number: Int) {
        let entries = withShard(number) { $0.recoverable.entries }
        let unused = entries.compactMap { key, entry in
            entry.reference() == nil ? (key: key, generation: entry.generation) : nil
        }
        _ = withShard(number) { $0.recoverable.sweep(unused) }
    }
}

// MARK: - Changes

extension MemoryStore {
    @inlinable
    func insert(_ value: Value, for key: Key, cost given: Int?, timeToLive time: Duration?) -> Bool {
        let deadline = clock.deadline(after: time ?? timeToLive)
        let newEntry = NewEntry(
            key: key, value: value, cost: max(0, given ?? cost(value)), deadline: deadline,
            reference: weakReferences?.makeReference(value))
        if deadline != .max { scheduleExpiry(at: deadline) }
        return insert(newEntry)
    }

    /// Inserts an entry, and makes room for it in all shards as needed. Returns whether the entry was stored.
    @inlinable
    func insert(_ newEntry: NewEntry<Key, Value>) -> Bool {
        let location = location(of: newEntry.key)
        var isForced = false
        // The loop ends: each round stores, evicts, or finds that another thread did. It sees a lowered limit at its
        // start.
        while ledger.admits(newEntry.cost) {
            let (result, removed) = withShard(location.shard) { shard in
                var removed = Removed()
                let result = shard.insert(
                    newEntry, fingerprint: location.fingerprint, ledger: ledger,
                    shardCount: isForced ? nil : shardCount, into: &removed)
                return (result, removed)
            }
            release(removed)
            switch result {
            case .stored:
                if weakReferences != nil { sweepRecoverable(shard: location.shard) }
                return true
            case .superseded:
                return false
            case .needsPurge:
                purge(for: newEntry.cost)
            case .needsRoom(let reason):
                isForced = !makeRoom(beside: location.shard, reason: reason)
            }
        }
        reject(newEntry, shard: location.shard, fingerprint: location.fingerprint)
        return false
    }

    @inlinable
    func remove(_ key: Key) -> Value? {
        let location = location(of: key)
        let now = currentTime()
        let (value, removed) = withShard(location.shard) { shard in
            var removed = Removed()
            let value = shard.remove(
                key, fingerprint: location.fingerprint, now: now, ledger: ledger, into: &removed)
            return (value, removed)
        }
        release(removed)
        return value
    }

    func removeAll() {
        for number in 0...shardMask {
            // The old shard, with all its values, is released after the lock.
            _ = withShard(number) { $0.removeAll(ledger: ledger) }
        }
    }

    /// Removes the old value of a key whose new value is too expensive, so that nobody takes the old one for the new
    /// one.
    @usableFromInline
    func reject(_ newEntry: NewEntry<Key, Value>, shard number: Int, fingerprint: UInt32) {
        // A value that was to be recovered stays recoverable.
        guard newEntry.generation == nil else { return }
        let removed = withShard(number) { shard in
            var removed = Removed()
            _ = shard.remove(newEntry.key, fingerprint: fingerprint, now: 0, ledger: ledger, into: &removed)
            if let reference = newEntry.reference {
                shard.recoverable.add(
                    newEntry.key, reference: reference, cost: newEntry.cost, deadline: newEntry.deadline)
            }
            let reason = MemoryCacheEvictionReason.tooLarge
            shard.counters.evictions[reason.ordinal] += 1
            removed.append(RemovedEntry(key: newEntry.key, value: nil, cost: newEntry.cost, reason: reason))
            return removed
        }
        release(removed)
    }

    /// Schedules a sweep for an entry with a deadline. From now on, look-ups read the clock.
    @usableFromInline
    func scheduleExpiry(at deadline: UInt64) {
        if !hasDeadlines.load(ordering: .relaxed) {
            hasDeadlines.store(true, ordering: .relaxed)
            handlesMisses.store(true, ordering: .relaxed)
        }
        guard expiry.needsEarlierSweep(for: deadline) else { return }
        expiry.schedule(deadline, clock: clock) { [weak self] in self?.sweepExpired() }
    }

    func sweepExpired() {
        let earliest = removeExpired()
        if earliest != .max { scheduleExpiry(at: earliest) }
    }
}
