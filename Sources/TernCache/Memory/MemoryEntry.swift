/// A value to be inserted, with its key and terms.
@usableFromInline
struct NewEntry<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let value: Value
    @usableFromInline let cost: Int
    /// The time of expiry on the cache's clock; `.max` for none.
    @usableFromInline let deadline: UInt64
    @usableFromInline let reference: WeakReferences<Value>.Reference?
    /// The generation of a recovered value, which is only stored if the table still holds that generation. Nil for any
    /// other value.
    @usableFromInline let generation: UInt64?

    @inlinable
    init(
        key: Key, value: Value, cost: Int, deadline: UInt64, reference: WeakReferences<Value>.Reference?,
        generation: UInt64? = nil
    ) {
        self.key = key
        self.value = value
        self.cost = cost
        self.deadline = deadline
        self.reference = reference
        self.generation = generation
    }
}

/// An entry that left a shard. It is released outside the shard's lock, because the `deinit` of a value can run any
/// code, which can use the cache.
@usableFromInline
struct RemovedEntry<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let value: Value?
    @usableFromInline let cost: Int
    /// The reason of the eviction. Nil if the user removed or replaced the entry.
    @usableFromInline let reason: MemoryCacheEvictionReason?
    /// The reference of the value: a user's closure, which can own anything.
    @usableFromInline let reference: WeakReferences<Value>.Reference?

    @inlinable
    init(
        key: Key, value: Value?, cost: Int, reason: MemoryCacheEvictionReason?,
        reference: WeakReferences<Value>.Reference? = nil
    ) {
        self.key = key
        self.value = value
        self.cost = cost
        self.reason = reason
        self.reference = reference
    }
}

/// The entries that left a shard in one step. Usually there is one, which then needs no array.
@usableFromInline
struct RemovedEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var first: RemovedEntry<Key, Value>?
    @usableFromInline var rest: [RemovedEntry<Key, Value>] = []

    @inlinable
    init() {}

    @inlinable
    mutating func append(_ entry: RemovedEntry<Key, Value>) {
        if first == nil { first = entry } else { rest.append(entry) }
    }

    @inlinable var last: RemovedEntry<Key, Value>? { rest.last ?? first }

    /// The evictions among the entries, in their order.
    var evictions: [MemoryCacheEviction<Key>] {
        ([first].compactMap(\.self) + rest).compactMap { entry in
            entry.reason.map { MemoryCacheEviction(key: entry.key, cost: entry.cost, reason: $0) }
        }
    }
}
