public import Synchronization

/// The sums over all shards, and the limits on them. A reservation succeeds only while the limit holds, so that no
/// interleaving of threads ever exceeds it.
///
/// A shard adds the entries that it reserved, and releases the entries that it removed, before its lock is released. A
/// thread that holds all shards empty therefore also sees sums of zero.
@usableFromInline
struct MemoryLedger: ~Copyable, Sendable {
    @usableFromInline let costSum = Atomic<Int>(0)
    @usableFromInline let countSum = Atomic<Int>(0)
    @usableFromInline let costLimit: Atomic<Int>
    @usableFromInline let countLimit: Atomic<Int>
    @usableFromInline let entryCost: Atomic<Int>
    @usableFromInline let costAfterPurge: Atomic<Int>

    @usableFromInline
    enum Reservation: Sendable {
        case reserved
        case costIsFull
        case countIsFull
    }

    init(_ limits: MemoryCacheLimits) {
        costLimit = Atomic(limits.cost)
        countLimit = Atomic(limits.count)
        entryCost = Atomic(min(limits.entryCost, limits.cost))
        costAfterPurge = Atomic(min(limits.costAfterPurge, limits.cost))
    }

    /// The sum of all entries' costs.
    @inlinable var cost: Int { costSum.load(ordering: .relaxed) }
    /// The number of all entries.
    @inlinable var count: Int { countSum.load(ordering: .relaxed) }

    @usableFromInline var purgeTarget: Int { costAfterPurge.load(ordering: .relaxed) }

    var limits: MemoryCacheLimits {
        MemoryCacheLimits(
            cost: costLimit.load(ordering: .relaxed), count: countLimit.load(ordering: .relaxed),
            entryCost: entryCost.load(ordering: .relaxed), costAfterPurge: costAfterPurge.load(ordering: .relaxed))
    }

    func setLimits(_ limits: MemoryCacheLimits) {
        costLimit.store(limits.cost, ordering: .relaxed)
        countLimit.store(limits.count, ordering: .relaxed)
        entryCost.store(min(limits.entryCost, limits.cost), ordering: .relaxed)
        costAfterPurge.store(min(limits.costAfterPurge, limits.cost), ordering: .relaxed)
    }

    /// Returns whether an entry of this cost can be stored at all.
    @inlinable
    func admits(_ cost: Int) -> Bool {
        cost <= entryCost.load(ordering: .relaxed) && countLimit.load(ordering: .relaxed) > 0
    }

    /// Whether an insert above the limit of cost frees more than it needs.
    @inlinable var isPurging: Bool {
        costAfterPurge.load(ordering: .relaxed) < costLimit.load(ordering: .relaxed)
    }

    /// Reserves a cost and a number of entries, or neither. `more` is negative when a cheaper value replaces another.
    @inlinable
    func reserve(cost more: Int, count entries: Int) -> Reservation {
        guard Self.add(more, to: costSum, limit: costLimit) else { return .costIsFull }
        guard Self.add(entries, to: countSum, limit: countLimit) else {
            costSum.subtract(more, ordering: .relaxed)
            return .countIsFull
        }
        return .reserved
    }

    @inlinable
    func release(cost less: Int, count entries: Int) {
        costSum.subtract(less, ordering: .relaxed)
        countSum.subtract(entries, ordering: .relaxed)
    }

    @inlinable
    static func add(_ more: Int, to sum: borrowing Atomic<Int>, limit: borrowing Atomic<Int>) -> Bool {
        guard more > 0 else {
            sum.add(more, ordering: .relaxed)
            return true
        }
        let limit = limit.load(ordering: .relaxed)
        var current = sum.load(ordering: .relaxed)
        while current <= limit - more {
            let (exchanged, original) = sum.weakCompareExchange(
                expected: current, desired: current + more, ordering: .relaxed)
            if exchanged { return true }
            current = original
        }
        return false
    }
}
