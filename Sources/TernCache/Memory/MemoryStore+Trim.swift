extension MemoryStore {
    /// Evicts entries in the policy's order, from each shard in proportion to its content, until the sum of costs is at
    /// most `target`.
    func trim(toCost target: Int, reason: MemoryCacheEvictionReason) {
        trim(to: target, reason: reason, sum: { $0.cost }, part: { $0.cost })
    }

    /// Evicts entries in the same way until their number is at most `target`.
    func trim(toCount target: Int, reason: MemoryCacheEvictionReason) {
        trim(to: target, reason: reason, sum: { $0.count }, part: { $0.count })
    }

    private func trim(
        to target: Int, reason: MemoryCacheEvictionReason, sum: (borrowing MemoryLedger) -> Int,
        part: (borrowing Shard) -> Int
    ) {
        // A negative target cannot be reached, and a sum of zero has no shares.
        let target = max(0, target)
        var total = sum(ledger)
        while total > target {
            var evicted = 0
            let share = Double(target) / Double(total)
            for number in 0...shardMask {
                let goal = Int(Double(withShard(number) { part($0) }) * share)
                evicted += evict(from: number, reason: reason) { part($0) > goal }
            }
            let rest = sum(ledger)
            // Sums beyond 2⁵³ can round to no eviction at all. Then each shard evicts one entry. If that finds none,
            // the shards are empty.
            if evicted == 0 {
                for number in 0...shardMask where sum(ledger) > target {
                    var isFirst = true
                    evicted += evict(from: number, reason: reason) { _ in
                        defer { isFirst = false }
                        return isFirst
                    }
                }
                if evicted == 0 { return }
            }
            total = rest
        }
    }

    /// Evicts everything. Values that are still in use elsewhere can be recovered.
    func evictAll(reason: MemoryCacheEvictionReason) {
        for number in 0...shardMask { _ = evict(from: number, reason: reason) { _ in true } }
    }

    /// Evicts entries of one shard while `condition` is true, and releases the lock after each batch.
    private func evict(
        from number: Int, reason: MemoryCacheEvictionReason, while condition: (borrowing Shard) -> Bool
    ) -> Int {
        var total = 0
        while true {
            let (evicted, removed) = withShard(number) { shard in
                var removed = Removed()
                let evicted = shard.evict(for: reason, ledger: ledger, into: &removed, while: condition)
                return (evicted, removed)
            }
            release(removed)
            total += evicted
            if evicted < Shard.batch { break }
        }
        if weakReferences != nil { sweepRecoverable(shard: number) }
        return total
    }

    /// Reduces the sum so that a value of this cost, once stored, leaves it at `costAfterPurge`.
    @usableFromInline
    func purge(for cost: Int) {
        trim(toCost: max(0, ledger.purgeTarget - cost), reason: .costLimit)
    }

    /// Evicts one entry of another shard than `number` that holds at least the average. Returns false if there is none.
    @usableFromInline
    func makeRoom(beside number: Int, reason: MemoryCacheEvictionReason) -> Bool {
        for step in 1..<max(2, shardCount) {
            let other = (number + step) & shardMask
            let average = (reason == .costLimit ? ledger.cost : ledger.count) / shardCount
            let (evicted, removed) = withShard(other) { shard in
                var removed = Removed()
                var isFirst = true
                let evicted = shard.evict(for: reason, ledger: ledger, into: &removed) { shard in
                    defer { isFirst = false }
                    return isFirst && (reason == .costLimit ? shard.cost : shard.count) >= average
                }
                return (evicted, removed)
            }
            release(removed)
            if evicted > 0 { return true }
        }
        return false
    }

    /// Evicts the entries that the response defines for a level of memory pressure.
    func trim(for level: MemoryPressureLevel, response: MemoryPressureResponse) {
        let action = response.action(at: level, cost: ledger.cost, count: ledger.count, limits: ledger.limits)
        switch action {
        case .empty(let reason):
            evictAll(reason: reason)
        case .trim(let cost, let count, let reason):
            trim(toCost: cost, reason: reason)
            trim(toCount: count, reason: reason)
        }
    }

    /// Removes all expired entries. Returns the earliest deadline of the other entries, or `.max` if there is none.
    func removeExpired() -> UInt64 {
        let now = clock.now()
        var earliest = UInt64.max
        for number in 0...shardMask {
            var start: Int? = 0
            while let from = start {
                let (passed, removed) = withShard(number) { shard in
                    var removed = Removed()
                    let passed = shard.removeExpired(from: from, now: now, ledger: ledger, into: &removed)
                    return (passed, removed)
                }
                release(removed)
                earliest = min(earliest, passed.earliest)
                start = passed.next
            }
        }
        return earliest
    }

    /// The keys of all entries, in no order. Each shard is read at one moment.
    var keys: [Key] {
        (0...shardMask).flatMap { number in
            withShard(number) { shard in shard.entries.compactMap(\.key) }
        }
    }

    /// The keys of all entries and of the evicted values that may still be in use.
    var allKeys: [Key] {
        (0...shardMask).flatMap { number in
            withShard(number) { shard in shard.entries.compactMap(\.key) + shard.recoverable.entries.keys }
        }
    }
}
