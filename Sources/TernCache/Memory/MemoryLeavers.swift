/// What left a shard. It is carried out of the shard's lock and let go there: the end of a value may run any code, and
/// that code may ask the cache.
@usableFromInline
struct MemoryLeaver<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let value: Value?
    @usableFromInline let cost: Int
    /// Nil: removed or replaced by the user, which is no eviction.
    @usableFromInline let reason: MemoryCacheEvictionReason?
    /// The way to a value still in use: a closure that somebody made, and that may own anything.
    @usableFromInline let finder: InUse<Value>.Finder?

    @inlinable
    init(
        key: Key, value: Value?, cost: Int, reason: MemoryCacheEvictionReason?, finder: InUse<Value>.Finder? = nil
    ) {
        self.key = key
        self.value = value
        self.cost = cost
        self.reason = reason
        self.finder = finder
    }
}

/// What left within one step: as a rule one entry, which then needs no array.
@usableFromInline
struct MemoryLeavers<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var first: MemoryLeaver<Key, Value>?
    @usableFromInline var rest: [MemoryLeaver<Key, Value>] = []

    @inlinable
    init() {}

    @inlinable
    mutating func append(_ leaver: MemoryLeaver<Key, Value>) {
        if first == nil { first = leaver } else { rest.append(leaver) }
    }

    /// The latest.
    @inlinable var last: MemoryLeaver<Key, Value>? { rest.last ?? first }

    /// The evictions among them, in their order.
    var evictions: [MemoryCacheEviction<Key>] {
        ([first].compactMap(\.self) + rest).compactMap { leaver in
            leaver.reason.map { MemoryCacheEviction(key: leaver.key, cost: leaver.cost, reason: $0) }
        }
    }
}
