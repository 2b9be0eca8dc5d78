/// An entry that left a memory cache without being removed or replaced by its user.
public struct MemoryCacheEviction<Key: Hashable & Sendable>: Sendable {
    /// The key of the entry.
    public let key: Key
    /// The cost that was freed. For a value that was not stored because it is `.tooLarge`, its cost.
    public let cost: Int
    /// The reason of the eviction.
    public let reason: MemoryCacheEvictionReason

    @usableFromInline
    init(key: Key, cost: Int, reason: MemoryCacheEvictionReason) {
        self.key = key
        self.cost = cost
        self.reason = reason
    }
}

/// The reason why an entry left a memory cache.
public enum MemoryCacheEvictionReason: Sendable, Hashable, CaseIterable {
    /// A new entry needed room under the limit of cost.
    case costLimit
    /// A new entry needed room under the limit of entries.
    case countLimit
    /// The new value exceeds the limit for one entry, and was not stored.
    case tooLarge
    /// The time to live has passed.
    case expired
    /// A call of `trim`, or lowered limits.
    case trimmed
    /// Memory pressure, reported by the system or by the source given to the cache.
    case memoryPressure
    /// The app moved to the background.
    case background
}

/// An element of the stream of a memory cache's evictions.
public enum MemoryCacheEvent<Key: Hashable & Sendable>: Sendable {
    /// An entry left the cache.
    case evicted(MemoryCacheEviction<Key>)
    /// The number of events that did not fit into this stream's buffer.
    case dropped(Int)
}

/// The counters of a memory cache since its creation, and the size of its content.
public struct MemoryCacheStatistics: Sendable, Hashable {
    /// Look-ups that returned a value, including `recovered`.
    public internal(set) var hits = 0
    /// Look-ups that returned no value.
    public internal(set) var misses = 0
    /// Hits on evicted values that were found again, because they were still in use elsewhere.
    public internal(set) var recovered = 0
    /// Values that were stored, including replacements.
    public internal(set) var insertions = 0
    /// Evicted entries by reason. A reason that did not occur is absent.
    public internal(set) var evictions: [MemoryCacheEvictionReason: Int] = [:]
    /// The number of entries.
    public internal(set) var count = 0
    /// The sum of the entries' costs.
    public internal(set) var cost = 0

    /// Hits divided by look-ups, 0…1; nil before the first look-up.
    public var hitRatio: Double? {
        hits + misses == 0 ? nil : Double(hits) / Double(hits + misses)
    }

    /// The number of evicted entries, for any reason.
    public var evictionCount: Int { evictions.values.reduce(0, +) }
}
