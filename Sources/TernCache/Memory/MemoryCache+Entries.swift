public import Synchronization
public import TernConcurrency

/// The steps of look-ups and changes.
extension MemoryCache {
    @usableFromInline typealias Removed = RemovedEntries<Key, Value>

    /// Reads the clock, if any entry has a deadline. The clock can be user code, so no lock is held.
    @inlinable
    nonisolated func currentTime() -> UInt64 { hasDeadlines.load(ordering: .relaxed) ? clock.now() : 0 }

    /// Runs `body` with the lock of the state held, then sends the evictions. The caller releases what was removed.
    @inlinable @discardableResult
    nonisolated func change<Result: Sendable>(_ body: (inout State, inout Removed) -> Result) -> (Result, Removed) {
        let (result, removed) = state.withLock { state in
            var removed = Removed()
            let result = body(&state, &removed)
            return (result, removed)
        }
        if evictionEvents.hasSubscribers { sendEvictions(of: removed) }
        return (result, removed)
    }

    /// Sends the evictions among removed entries.
    @usableFromInline
    nonisolated func sendEvictions(of removed: Removed) { evictionEvents.send(contentsOf: removed.evictions) }

    /// Looks a key up, and makes its entry the newest.
    @inlinable
    nonisolated func lookUpInOrder(_ key: Key, hash: UInt64, now: UInt64) -> Value? {
        state.withLock { state in
            let shard = shards.shard(of: hash)
            guard let (value, position) = shards.withTable(shard, { $0.lookUp(key, hash: hash, now: now) }) else {
                return nil
            }
            state.order.moveToNewest(shards.slot(at: position, shard: shard))
            return value
        }
    }

    /// Stores an entry, and makes room for it first. Returns whether the entry was stored.
    @inlinable
    nonisolated func insert(_ entry: Entry, recovering generation: UInt64?) -> Bool {
        let hash = shards.hash(of: entry.key)
        let (isStored, _) = change { $0.insert(entry, hash: hash, recovering: generation, into: &$1) }
        if weakReferences != nil { sweepRecoverable() }
        return isStored
    }

    // MARK: Misses

    /// Removes an expired entry after a miss, or recovers an evicted value that is still in use.
    // Inlinable, because every miss comes here. Unspecialised, it cost more than the rest of the look-up.
    @inlinable
    nonisolated func handleMiss(of key: Key, hash: UInt64, now: UInt64) -> Value? {
        let (entry, _) = change { $0.recoverableEntry(of: key, hash: hash, now: now, into: &$1) }
        return entry.flatMap { recover($0, of: key) }
    }

    /// Runs the reference to an evicted value, without a lock, and stores the value again unless its key has a newer
    /// one.
    @usableFromInline
    nonisolated func recover(_ entry: RecoverableTable<Key, Value>.Entry, of key: Key) -> Value? {
        guard let value = entry.reference() else {
            _ = state.withLock { $0.recoverable.remove(key, generation: entry.generation) }
            return nil
        }
        state.withLock { $0.recovered += 1 }
        let recovered = Entry(
            key: key, value: value, cost: entry.cost, deadline: entry.deadline, reference: entry.reference)
        _ = insert(recovered, recovering: entry.generation)
        return value
    }

    /// Removes the evicted values that are no longer in use, once there are enough of them.
    @usableFromInline
    nonisolated func sweepRecoverable() {
        let entries = state.withLock { $0.recoverable.needsSweep ? $0.recoverable.entries : [:] }
        guard !entries.isEmpty else { return }
        let unused = entries.compactMap { key, entry in
            entry.reference() == nil ? (key: key, generation: entry.generation) : nil
        }
        _ = state.withLock { $0.recoverable.sweep(unused) }
    }
}
