/// A value of a memory cache, with its key and terms.
@usableFromInline
struct MemoryEntry<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let value: Value
    @usableFromInline let cost: Int
    /// The time of expiry on the cache's clock; `.max` for none.
    @usableFromInline let deadline: UInt64
    /// The weak reference to the value; nil if the cache does not look for values in use.
    @usableFromInline let reference: WeakReferences<Value>.Reference?

    @inlinable
    init(key: Key, value: Value, cost: Int, deadline: UInt64, reference: WeakReferences<Value>.Reference?) {
        self.key = key
        self.value = value
        self.cost = cost
        self.deadline = deadline
        self.reference = reference
    }

    /// Returns the value if it has not expired.
    @inlinable
    func value(at now: UInt64) -> Value? { deadline > now ? value : nil }
}

/// The entries that left a cache in one step, and the references of values that can no longer be recovered. They are
/// released without a lock held, because the `deinit` of a value can run any code, which can use the cache.
@usableFromInline
struct RemovedEntries<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// The entries, with the reason of an eviction. It is nil if the user removed or replaced the entry.
    @usableFromInline var entries: [(entry: MemoryEntry<Key, Value>, reason: MemoryCacheEvictionReason?)] = []
    /// The references of the values that cannot be recovered any more.
    @usableFromInline var references: [WeakReferences<Value>.Reference] = []

    @inlinable
    init() {}

    /// The evictions among the entries, in their order.
    var evictions: [MemoryCacheEvent<Key>] {
        entries.compactMap { entry, reason in
            reason.map { .evicted(MemoryCacheEviction(key: entry.key, cost: entry.cost, reason: $0)) }
        }
    }
}
