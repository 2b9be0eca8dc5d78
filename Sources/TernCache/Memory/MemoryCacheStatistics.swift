/// What a memory cache has done since it was made, and what it holds.
public struct MemoryCacheStatistics: Sendable, Hashable {
    /// Look-ups that gave a value, `recovered` included.
    public internal(set) var hits = 0
    /// Look-ups that gave none.
    public internal(set) var misses = 0
    /// Hits on values that had been evicted and were found again, because they were still in use elsewhere.
    public internal(set) var recovered = 0
    /// Values that were stored, replacements included.
    public internal(set) var insertions = 0
    /// Entries that left, by reason; a reason that never came is not in it.
    public internal(set) var evictions: [MemoryCacheEvictionReason: Int] = [:]
    /// The entries that are held.
    public internal(set) var count = 0
    /// The sum of their costs.
    public internal(set) var cost = 0

    /// Hits divided by look-ups, 0…1; nil before the first look-up.
    public var hitRatio: Double? {
        hits + misses == 0 ? nil : Double(hits) / Double(hits + misses)
    }

    /// Entries that left for any reason.
    public var evictionCount: Int { evictions.values.reduce(0, +) }
}

/// What one shard counts.
@usableFromInline
struct ShardCounters: Sendable {
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    @usableFromInline var recovered = 0
    @usableFromInline var insertions = 0
    /// By the reasons' ordinals.
    @usableFromInline var evictions: [Int]

    @usableFromInline
    init() {
        evictions = [Int](repeating: 0, count: MemoryCacheEvictionReason.allCases.count)
    }
}

extension MemoryCacheStatistics {
    mutating func add(_ shard: ShardCounters) {
        hits += shard.hits
        misses += shard.misses
        recovered += shard.recovered
        insertions += shard.insertions
        for reason in MemoryCacheEvictionReason.allCases where shard.evictions[reason.ordinal] > 0 {
            evictions[reason, default: 0] += shard.evictions[reason.ordinal]
        }
    }
}
