/// A value on its way into the cache.
@usableFromInline
struct MemoryArrival<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let value: Value
    @usableFromInline let cost: Int
    /// On the cache's clock; `.max`: never.
    @usableFromInline let deadline: UInt64
    @usableFromInline let finder: InUse<Value>.Finder?
    /// Of a value that comes back from among the faded: it enters only if it is still remembered under this number.
    @usableFromInline let ticket: UInt64?

    @inlinable
    init(
        key: Key, value: Value, cost: Int, deadline: UInt64, finder: InUse<Value>.Finder?, ticket: UInt64? = nil
    ) {
        self.key = key
        self.value = value
        self.cost = cost
        self.deadline = deadline
        self.finder = finder
        self.ticket = ticket
    }
}
