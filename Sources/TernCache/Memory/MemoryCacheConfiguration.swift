/// The configuration of a memory cache: policy, limits, times, and the response to memory pressure.
public struct MemoryCacheConfiguration: Sendable {
    /// The policy that selects the entry to evict when the cache is full. Default: S3-FIFO.
    public var policy = MemoryCachePolicy.s3FIFO
    /// The limits of the content. `MemoryCache.setLimits` changes them later.
    public var limits = MemoryCacheLimits()
    /// The time for which an entry is valid if its insert specifies none. Default: nil, without expiry.
    public var timeToLive: Duration?
    /// The clock of all times to live. Default: the continuous clock, which also runs while the machine sleeps.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// The shortest time between two sweeps that remove expired entries. Default: 60 seconds. An expired entry is never
    /// returned; the sweep frees its memory. A cache without entries that expire never sweeps and never wakes the
    /// process.
    public var expiryInterval = Duration.seconds(60)
    /// The source of memory pressure. Default: the system. Nil: none.
    public var pressure: (any MemoryPressureSource)? = SystemMemoryPressure.shared
    /// The response to memory pressure.
    public var response = MemoryPressureResponse()
    /// The number of evictions that are held for a slow reader of `evictions`. Default: 1,024.
    public var eventLimit = 1_024

    /// Creates a configuration with these limits and this policy, and the defaults for the rest.
    public init(limits: MemoryCacheLimits = MemoryCacheLimits(), policy: MemoryCachePolicy = .s3FIFO) {
        self.limits = limits
        self.policy = policy
    }
}

/// The fractions, 0…1, that a memory cache keeps under memory pressure.
public struct MemoryPressureResponse: Sendable, Hashable {
    /// The fraction that is kept at `.warning`, of the content at that moment, so that lasting pressure frees more and
    /// more. Default: 0.5. Zero empties the cache.
    public var warning: Double
    /// The fraction of the cache's limit that is always kept at `.warning`. A cache that holds no more than that
    /// removes nothing, so that lasting pressure trims a small cache once instead of emptying it step by step. The
    /// limit is that of cost, or that of entries if the cache has no limit of cost. Default: 1/64.
    public var minimumKept = 1.0 / 64
    /// The fraction that is kept at `.critical`, of the content at that moment. Default: 0.
    public var critical: Double
    /// The fraction that is kept at `.background`, of the cache's limits. Default: 0.1.
    public var background: Double

    /// Creates a response from the fractions to keep. Values outside 0…1 count as the nearer bound.
    public init(warning: Double = 0.5, critical: Double = 0, background: Double = 0.1) {
        self.warning = warning
        self.critical = critical
        self.background = background
    }

    /// Returns the action for a level of pressure, from the content and the limits.
    func action(
        at level: MemoryPressureLevel, cost: Int, count: Int, limits: MemoryCacheLimits
    ) -> Action {
        switch level {
        case .warning:
            Self.keep(
                warningFraction(cost: cost, count: count, limits: limits), cost: cost, count: count,
                reason: .memoryPressure)
        case .critical: Self.keep(critical, cost: cost, count: count, reason: .memoryPressure)
        case .background: Self.keep(background, cost: limits.cost, count: limits.count, reason: .background)
        }
    }

    private func warningFraction(cost: Int, count: Int, limits: MemoryCacheLimits) -> Double {
        let (held, limit) = limits.cost < .max ? (cost, limits.cost) : (count, limits.count)
        guard held > 0, limit < .max, minimumKept > 0 else { return warning }
        return max(warning, Double(limit) * min(minimumKept, 1) / Double(held))
    }

    enum Action: Hashable {
        case empty(MemoryCacheEvictionReason)
        case trim(cost: Int, count: Int, MemoryCacheEvictionReason)
    }

    private static func keep(
        _ fraction: Double, cost: Int, count: Int, reason: MemoryCacheEvictionReason
    ) -> Action {
        // NaN counts as zero.
        guard fraction > 0 else { return .empty(reason) }
        return .trim(cost: cost.scaled(by: fraction), count: count.scaled(by: fraction), reason)
    }
}

extension Int {
    /// Returns this fraction of a non-negative number, rounded down, and never more than the number.
    fileprivate func scaled(by fraction: Double) -> Int {
        fraction >= 1
            ? self : Int(exactly: (Double(self) * fraction).rounded(.down)).map { Swift.min($0, self) } ?? self
    }
}

/// The limits of a memory cache. They hold at every instant: the cache makes room for an entry before it stores it.
public struct MemoryCacheLimits: Sendable, Hashable {
    /// The maximum sum of the entries' costs, in the unit of the cache's cost function: usually bytes. Default: the
    /// recommendation of `MemoryBudget.current`, in bytes.
    public var cost: Int
    /// The maximum number of entries. Default: no limit.
    public var count: Int
    /// The maximum cost of one entry. A value above it is not stored, and the old value of its key is removed. Default:
    /// `cost`.
    public var entryCost: Int
    /// The sum of costs after a purge. When an insert would exceed `cost`, entries are evicted until the sum, including
    /// the new entry, is at most this value. Default: `cost`, so that no more entries than necessary are evicted.
    public var costAfterPurge: Int

    /// Creates limits. Negative values count as zero.
    public init(
        cost: Int = MemoryBudget.current.recommendedCost, count: Int = .max, entryCost: Int? = nil,
        costAfterPurge: Int? = nil
    ) {
        self.cost = max(0, cost)
        self.count = max(0, count)
        self.entryCost = max(0, entryCost ?? cost)
        self.costAfterPurge = max(0, costAfterPurge ?? cost)
    }
}

/// The policy that selects the entry to evict from a full memory cache.
public enum MemoryCachePolicy: String, Sendable, Hashable, CaseIterable {
    /// S3-FIFO: entries that are used once do not displace entries that are used often. It has the better hit ratio on
    /// nearly all real traces (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023), and the
    /// faster hit.
    case s3FIFO
    /// Least recently used: the strict order of access, over the whole cache.
    case lru
}
