/// An entry that left a memory cache without having been removed or replaced by its user.
public struct MemoryCacheEviction<Key: Hashable & Sendable>: Sendable {
    /// The key.
    public let key: Key
    /// The cost that became free; for `.tooLarge` of a value that never came in, what it would have cost.
    public let cost: Int
    /// Why.
    public let reason: MemoryCacheEvictionReason

    @usableFromInline
    init(key: Key, cost: Int, reason: MemoryCacheEvictionReason) {
        self.key = key
        self.cost = cost
        self.reason = reason
    }
}

/// Why an entry left a memory cache.
public enum MemoryCacheEvictionReason: Sendable, Hashable, CaseIterable {
    /// Room for a new entry, under the limit of the cost.
    case costLimit
    /// Room for a new entry, under the limit of the number.
    case countLimit
    /// Its new value is above the limit for one entry, and was not stored.
    case tooLarge
    /// Its time to live is over.
    case expired
    /// `trim` or lower limits.
    case trimmed
    /// The system, or the source given to the cache, told of pressure on memory.
    case memoryPressure
    /// The app went to the background.
    case background

    /// Its place in a shard's array of counters.
    @usableFromInline var ordinal: Int {
        switch self {
        case .costLimit: 0
        case .countLimit: 1
        case .tooLarge: 2
        case .expired: 3
        case .trimmed: 4
        case .memoryPressure: 5
        case .background: 6
        }
    }
}

/// What the stream of a memory cache's evictions delivers.
public enum MemoryCacheEvent<Key: Hashable & Sendable>: Sendable {
    /// An entry left the cache.
    case evicted(MemoryCacheEviction<Key>)
    /// So many events did not fit into this stream's buffer.
    case dropped(Int)
}
