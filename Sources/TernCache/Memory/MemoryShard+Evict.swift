extension MemoryShard {
    /// The most entries that leave within one hold of the lock: look-ups are not to wait for a long trim.
    static var batch: Int { 256 }

    /// Takes one entry out, at its user's wish.
    @inlinable
    mutating func remove(
        _ key: Key, _ fingerprint: UInt32, now: UInt64, _ ledger: borrowing MemoryLedger, into leavers: inout Leavers
    ) -> Value? {
        if faded.isEnabled { forget(key, into: &leavers) }
        guard let slot = find(key, fingerprint) else { return nil }
        order.remove(slot)
        let isExpired = entries[Int(slot)].deadline <= now
        leave(slot, isExpired ? .expired : nil, ledger, into: &leavers)
        return isExpired ? nil : leavers.last?.value
    }

    /// Evicts in the policy's order while `holds`, a batch at most.
    mutating func evict(
        _ reason: MemoryCacheEvictionReason, _ ledger: borrowing MemoryLedger, into leavers: inout Leavers,
        while holds: (borrowing Self) -> Bool
    ) -> Int {
        var evicted = 0
        while evicted < Self.batch, holds(self), let slot = order.evict() {
            leave(slot, reason, ledger, into: &leavers)
            evicted += 1
        }
        if evicted > 0, count == 0 { shrink() }
        return evicted
    }

    /// Takes out entries whose time is over, from slot `start` on, a batch at most.
    /// - Returns: where to go on, nil at the end; and the earliest deadline that was passed over.
    mutating func expire(
        from start: Int, now: UInt64, _ ledger: borrowing MemoryLedger, into leavers: inout Leavers
    ) -> (next: Int?, earliest: UInt64) {
        var earliest = UInt64.max
        var expired = 0
        for place in start..<max(start, entries.count) where entries[place].key != nil {
            guard entries[place].deadline <= now else {
                earliest = min(earliest, entries[place].deadline)
                continue
            }
            if expired == Self.batch { return (place, earliest) }
            expired += 1
            order.remove(Slot(place))
            leave(Slot(place), .expired, ledger, into: &leavers)
        }
        return (nil, earliest)
    }

    /// Takes everything out at once: what was in it, to be let go of outside the lock.
    mutating func empty(_ ledger: borrowing MemoryLedger) -> Self {
        var old = Self(policy: order.policy, tracksUse: faded.isEnabled)
        swap(&self, &old)
        ledger.release(cost: old.cost, count: old.count)
        swap(&counters, &old.counters)
        return old
    }

    /// An empty shard gives its arrays back.
    private mutating func shrink() {
        index = SlotIndex()
        entries = []
        free = []
        finders = []
        order.shrink()
    }
}
