/// How a memory cache is made: policy, limits, times, and what it gives up under pressure.
public struct MemoryCacheConfiguration: Sendable {
    /// Which entry goes when the cache is full. Default: S3-FIFO.
    public var policy = MemoryCachePolicy.s3FIFO
    /// How much it may hold; `MemoryCache.setLimits` changes that later.
    public var limits = MemoryCacheLimits()
    /// How long an entry is valid whose insert says nothing else. Default: nil, for ever.
    public var timeToLive: Duration?
    /// The clock of all times to live. Default: the continuous clock, which also runs while the machine sleeps.
    public var clock: any Clock<Duration> = ContinuousClock()
    /// The shortest time between two sweeps that take expired entries out. Default: 60 seconds. An expired entry is
    /// never given out; the sweep frees its memory. Without entries that expire nothing is swept and nothing wakes up.
    public var expiryInterval = Duration.seconds(60)
    /// Who tells of pressure on memory. Default: the system. Nil: nobody.
    public var pressure: (any MemoryPressureSource)? = SystemMemoryPressure.shared
    /// What is given up when it does.
    public var response = MemoryPressureResponse()
    /// How many evictions wait for a reader of `evictions` who is slow. Default: 1,024.
    public var eventLimit = 1_024

    /// The defaults, with these limits and this policy.
    public init(limits: MemoryCacheLimits = MemoryCacheLimits(), policy: MemoryCachePolicy = .s3FIFO) {
        self.limits = limits
        self.policy = policy
    }
}

/// What a memory cache keeps when memory runs short, as fractions, 0…1.
public struct MemoryPressureResponse: Sendable, Hashable {
    /// At `.warning`: this part of what the cache holds at that moment, so that lasting pressure frees more and more.
    /// Default: a half. 0 empties the cache.
    public var warning: Double
    /// The fraction of the cache's limit that is always kept at `.warning`. A cache that holds no more than that
    /// removes nothing, so that lasting pressure trims a small cache once instead of emptying it step by step. The
    /// limit is that of cost, or that of entries if the cache has no limit of cost. Default: 1/64.
    public var small = 1.0 / 64
    /// At `.critical`: this part of what it holds. Default: 0.
    public var critical: Double
    /// At `.background`: this part of its limits. Default: a tenth.
    public var background: Double

    /// The parts that are kept; values outside 0…1 count as the nearer end.
    public init(warning: Double = 0.5, critical: Double = 0, background: Double = 0.1) {
        self.warning = warning
        self.critical = critical
        self.background = background
    }

    /// What to do at one level, given what is held and what may be.
    func action(
        at level: MemoryPressureLevel, cost: Int, count: Int, limits: MemoryCacheLimits
    ) -> Action {
        switch level {
        case .warning: Self.keep(warningPart(cost, count, limits), cost, count, .memoryPressure)
        case .critical: Self.keep(critical, cost, count, .memoryPressure)
        case .background: Self.keep(background, limits.cost, limits.count, .background)
        }
    }

    private func warningPart(_ cost: Int, _ count: Int, _ limits: MemoryCacheLimits) -> Double {
        let (held, limit) = limits.cost < .max ? (cost, limits.cost) : (count, limits.count)
        guard held > 0, limit < .max, small > 0 else { return warning }
        return max(warning, Double(limit) * min(small, 1) / Double(held))
    }

    enum Action: Hashable {
        case empty(MemoryCacheEvictionReason)
        case trim(cost: Int, count: Int, MemoryCacheEvictionReason)
    }

    private static func keep(
        _ part: Double, _ cost: Int, _ count: Int, _ reason: MemoryCacheEvictionReason
    ) -> Action {
        // Not a number counts as nothing.
        guard part > 0 else { return .empty(reason) }
        return .trim(cost: cost.scaled(by: part), count: count.scaled(by: part), reason)
    }
}

extension Int {
    /// This part of a number that is not negative, rounded down, and never more than the number.
    fileprivate func scaled(by part: Double) -> Int {
        part >= 1 ? self : Int(exactly: (Double(self) * part).rounded(.down)).map { Swift.min($0, self) } ?? self
    }
}
