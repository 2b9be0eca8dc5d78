extension MemoryStore {
    /// Evicts in the policy's order, from each shard in proportion to what it holds, until the sum of costs is at most
    /// `target`.
    func trim(toCost target: Int, _ reason: MemoryCacheEvictionReason) {
        trim(reason, to: target, sum: { $0.cost }, part: { $0.cost })
    }

    /// The same for the number of entries.
    func trim(toCount target: Int, _ reason: MemoryCacheEvictionReason) {
        trim(reason, to: target, sum: { $0.count }, part: { $0.count })
    }

    private func trim(
        _ reason: MemoryCacheEvictionReason, to target: Int, sum: (borrowing MemoryLedger) -> Int,
        part: (borrowing Shard) -> Int
    ) {
        // Below zero there is nothing to reach, and with a sum of zero no share to reckon.
        let target = max(0, target)
        var total = sum(ledger)
        while total > target {
            var evicted = 0
            let share = Double(target) / Double(total)
            for number in 0...shardMask {
                let goal = Int(Double(withShard(number) { part($0) }) * share)
                evicted += evict(number, reason) { part($0) > goal }
            }
            let rest = sum(ledger)
            // Rounding, with sums beyond 2⁵³: then one of each. And where nothing is left, others hold nothing either.
            if evicted == 0 {
                for number in 0...shardMask where sum(ledger) > target {
                    var isFirst = true
                    evicted += evict(number, reason) { _ in
                        defer { isFirst = false }
                        return isFirst
                    }
                }
                if evicted == 0 { return }
            }
            total = rest
        }
    }

    /// Evicts everything; what is still in use elsewhere can be found again.
    func evictAll(_ reason: MemoryCacheEvictionReason) {
        for number in 0...shardMask { _ = evict(number, reason) { _ in true } }
    }

    /// Evicts from one shard while `holds`, the lock let go after each batch.
    private func evict(
        _ number: Int, _ reason: MemoryCacheEvictionReason, while holds: (borrowing Shard) -> Bool
    ) -> Int {
        var total = 0
        while true {
            let (evicted, leavers) = withShard(number) { shard in
                var leavers = Leavers()
                let evicted = shard.evict(reason, ledger, into: &leavers, while: holds)
                return (evicted, leavers)
            }
            finish(leavers)
            total += evicted
            if evicted < Shard.batch { break }
        }
        if inUse != nil { sweepFaded(number) }
        return total
    }

    func removeAll() {
        for number in 0...shardMask {
            // The end of the old shard, and of all its values, comes after the lock.
            _ = withShard(number) { $0.empty(ledger) }
        }
    }

    /// All keys that are held, at one moment of each shard, in no order.
    var keys: [Key] {
        (0...shardMask).flatMap { number in
            withShard(number) { shard in shard.entries.compactMap(\.key) }
        }
    }

    /// Those of evicted values too that may still be in use.
    var allKeys: [Key] {
        (0...shardMask).flatMap { number in
            withShard(number) { shard in shard.entries.compactMap(\.key) + shard.faded.entries.keys }
        }
    }

    /// Takes out what has expired. The earliest deadline that is left; `.max` if there is none.
    func removeExpired() -> UInt64 {
        let now = clock.now()
        var earliest = UInt64.max
        for number in 0...shardMask {
            var start: Int? = 0
            while let from = start {
                let (passed, leavers) = withShard(number) { shard in
                    var leavers = Leavers()
                    let passed = shard.expire(from: from, now: now, ledger, into: &leavers)
                    return (passed, leavers)
                }
                finish(leavers)
                earliest = min(earliest, passed.earliest)
                start = passed.next
            }
        }
        return earliest
    }
}
