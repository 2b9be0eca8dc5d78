/// How much a memory cache may hold. Held at every instant: what would not fit is made room for before it comes in.
public struct MemoryCacheLimits: Sendable, Hashable {
    /// The highest sum of the entries' costs, in the unit of the cache's cost function: bytes, as a rule. Default: what
    /// `MemoryBudget.current` recommends, in bytes.
    public var cost: Int
    /// The highest number of entries. Default: no limit.
    public var count: Int
    /// The highest cost of one entry. A value above it is not stored, and the old value of its key is removed. Default:
    /// `cost`.
    public var entryCost: Int
    /// What is left after a purge: when an insert would exceed `cost`, entries go until the sum, the new one included,
    /// is at most this. Default: `cost`, so that no more goes than must.
    public var preferredCost: Int

    /// Limits; negative values count as zero.
    public init(
        cost: Int = MemoryBudget.current.recommendedCost, count: Int = .max, entryCost: Int? = nil,
        preferredCost: Int? = nil
    ) {
        self.cost = max(0, cost)
        self.count = max(0, count)
        self.entryCost = max(0, entryCost ?? cost)
        self.preferredCost = max(0, preferredCost ?? cost)
    }
}
