extension MemoryStore {
    /// A value that may not come in: the old one of its key goes, so that nobody takes it for the new one.
    @usableFromInline
    func refuse(_ arrival: MemoryArrival<Key, Value>, _ number: Int, _ fingerprint: UInt32) {
        // One that came back from among the faded stays there.
        guard arrival.ticket == nil else { return }
        let leavers = withShard(number) { shard in
            var leavers = Leavers()
            _ = shard.remove(arrival.key, fingerprint, now: 0, ledger, into: &leavers)
            if let finder = arrival.finder {
                shard.faded.add(arrival.key, finder, cost: arrival.cost, deadline: arrival.deadline)
            }
            let reason = MemoryCacheEvictionReason.tooLarge
            shard.counters.evictions[reason.ordinal] += 1
            leavers.append(MemoryLeaver(key: arrival.key, value: nil, cost: arrival.cost, reason: reason))
            return leavers
        }
        finish(leavers)
    }

    /// Lets the sum fall until a value of this cost, once in, leaves it at the preferred one.
    @usableFromInline
    func purge(for cost: Int) {
        trim(toCost: max(0, ledger.preferred - cost), .costLimit)
    }

    /// One entry of a shard that holds at least the average, another than `number`. Whether there was one.
    @usableFromInline
    func makeRoom(beside number: Int, _ reason: MemoryCacheEvictionReason) -> Bool {
        for step in 1..<max(2, shardCount) {
            let other = (number + step) & shardMask
            let average = (reason == .costLimit ? ledger.cost : ledger.count) / shardCount
            let (evicted, leavers) = withShard(other) { shard in
                var leavers = Leavers()
                var isFirst = true
                let evicted = shard.evict(reason, ledger, into: &leavers) { shard in
                    defer { isFirst = false }
                    return isFirst && (reason == .costLimit ? shard.cost : shard.count) >= average
                }
                return (evicted, leavers)
            }
            finish(leavers)
            if evicted > 0 { return true }
        }
        return false
    }
}
