extension MemoryStore {
    @usableFromInline
    enum Found: Sendable {
        case nothing
        case value(Value)
        case faded(FadedTable<Key, Value>.Entry)
    }

    /// After a look-up that found nothing: an expired entry goes, and an evicted value that is still in use comes back.
    // Inlinable, as every miss comes by here: without its types it cost more than the rest of the look-up.
    @inlinable
    func lookFurther(_ key: Key, _ number: Int, _ fingerprint: UInt32, now: UInt64) -> Value? {
        let (found, leavers) = withShard(number) { shard in
            var leavers = Leavers()
            let found = Self.search(&shard, key, fingerprint, now: now, ledger, into: &leavers)
            return (found, leavers)
        }
        finish(leavers)
        switch found {
        case .nothing: return nil
        case .value(let value): return value
        case .faded(let entry): return recover(key, entry, number)
        }
    }

    @inlinable
    static func search(
        _ shard: inout Shard, _ key: Key, _ fingerprint: UInt32, now: UInt64, _ ledger: borrowing MemoryLedger,
        into leavers: inout Leavers
    ) -> Found {
        if let slot = shard.find(key, fingerprint) {
            guard shard.entries[Int(slot)].deadline <= now else {
                // It came in between the two looks.
                shard.counters.misses -= 1
                if let value = shard.look(key, fingerprint, now: now) { return .value(value) }
                return .nothing
            }
            shard.order.remove(slot)
            shard.leave(slot, .expired, ledger, into: &leavers)
            return .nothing
        }
        guard let entry = shard.faded.entries[key] else { return .nothing }
        guard entry.deadline > now else {
            shard.forget(key, into: &leavers)
            return .nothing
        }
        return .faded(entry)
    }

    /// Runs the finder, under no lock, and takes the value back in unless its key has got another meanwhile.
    @usableFromInline
    func recover(_ key: Key, _ entry: FadedTable<Key, Value>.Entry, _ number: Int) -> Value? {
        guard let value = entry.finder() else {
            _ = withShard(number) { $0.faded.remove(key, ticket: entry.ticket) }
            return nil
        }
        withShard(number) { shard in
            shard.counters.misses -= 1
            shard.counters.hits += 1
            shard.counters.recovered += 1
        }
        _ = insert(
            MemoryArrival(
                key: key, value: value, cost: entry.cost, deadline: entry.deadline, finder: entry.finder,
                ticket: entry.ticket))
        return value
    }

    /// Forgets the evicted values that nobody uses any more, once enough have come to be worth it.
    @inlinable
    func sweepFaded(_ number: Int) {
        if withShard(number, { $0.faded.wantsSweep }) { sweepDead(number) }
    }

    @usableFromInline
    func sweepDead(_ number: Int) {
        let entries = withShard(number) { $0.faded.entries }
        let dead = entries.compactMap { key, entry in entry.finder() == nil ? (key: key, ticket: entry.ticket) : nil }
        _ = withShard(number) { $0.faded.sweep(dead) }
    }
}
