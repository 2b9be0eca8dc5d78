extension MemoryShard {
    /// How far an insert came.
    @usableFromInline
    enum Step: Sendable {
        /// The value is in.
        case stored
        /// A value came back from among the faded, but its key has another by now, or was removed.
        case superseded
        /// The sum is to fall to the preferred one first, over all shards.
        case needsPurge
        /// This shard holds less than its share: others are to give.
        case needsRoom(MemoryCacheEvictionReason)
    }

    /// Stores a value, and evicts from this shard what it needs for that.
    /// - Parameter force: evict here even if this shard holds less than its share.
    @inlinable
    mutating func insert(
        _ arrival: MemoryArrival<Key, Value>, _ fingerprint: UInt32, _ ledger: borrowing MemoryLedger, shards: Int,
        force: Bool, into leavers: inout Leavers
    ) -> Step {
        if let slot = find(arrival.key, fingerprint) {
            if arrival.ticket != nil { return .superseded }
            // First of all a use, so that the entry is not itself the next to go.
            order.touch(slot)
        } else if let ticket = arrival.ticket, faded.entries[arrival.key]?.ticket != ticket {
            return .superseded
        }
        while true {
            let answer: MemoryLedger.Answer
            if let slot = find(arrival.key, fingerprint) {
                answer = ledger.reserve(cost: arrival.cost - entries[Int(slot)].cost, count: 0)
                if answer == .reserved {
                    leavers.append(replace(slot, by: arrival))
                    return .stored
                }
            } else {
                answer = ledger.reserve(cost: arrival.cost, count: 1)
                if answer == .reserved {
                    if faded.isEnabled { forget(arrival.key, into: &leavers) }
                    enter(arrival, fingerprint)
                    return .stored
                }
            }
            if answer == .costIsFull, ledger.isPurging { return .needsPurge }
            let reason: MemoryCacheEvictionReason = answer == .costIsFull ? .costLimit : .countLimit
            guard force || holdsShare(of: reason, ledger, shards: shards), let victim = order.evict() else {
                return .needsRoom(reason)
            }
            leave(victim, reason, ledger, into: &leavers)
        }
    }

    /// Whether this shard holds at least three quarters of the average: small differences are left as they are.
    @inlinable
    func holdsShare(of reason: MemoryCacheEvictionReason, _ ledger: borrowing MemoryLedger, shards: Int) -> Bool {
        if reason == .costLimit {
            return cost >= ledger.cost / shards / 4 * 3
        }
        return count >= ledger.count / shards / 4 * 3
    }

    /// Lets go of the evicted value of a key that might be found again.
    @usableFromInline
    mutating func forget(_ key: Key, into leavers: inout Leavers) {
        guard let entry = faded.remove(key) else { return }
        leavers.append(MemoryLeaver(key: key, value: nil, cost: 0, reason: nil, finder: entry.finder))
    }
}
