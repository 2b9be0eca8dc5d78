extension MemoryCache {
    /// The value of this key, which counts as a use; nil if there is none, or if its time is over.
    ///
    /// A value that was evicted but is still in use elsewhere is found too, and taken back, if the cache was made with
    /// an `InUse`. Synchronous, from any thread.
    @inlinable
    public nonisolated func value(for key: Key) -> Value? { store.value(for: key) }

    /// The value of this key; setting nil removes it, setting a value inserts it with the defaults.
    @inlinable
    public nonisolated subscript(key: Key) -> Value? {
        get { store.value(for: key) }
        set {
            if let newValue {
                _ = store.insert(newValue, for: key, cost: nil, timeToLive: nil)
            } else {
                _ = store.remove(key)
            }
        }
    }

    /// Stores a value, in the place of an older one of this key, and makes room for it first.
    ///
    /// A value that costs more than `limits.entryCost` is not stored, and the old value of its key goes all the same: it
    /// is not the value of that key any more. Synchronous, from any thread.
    /// - Parameter cost: what it costs; nil: what the cache's cost function says. Negative values count as zero.
    /// - Parameter timeToLive: how long it is valid; nil: what the configuration says.
    /// - Returns: whether it was stored.
    @inlinable @discardableResult
    public nonisolated func insert(
        _ value: Value, for key: Key, cost: Int? = nil, timeToLive: Duration? = nil
    ) -> Bool {
        store.insert(value, for: key, cost: cost, timeToLive: timeToLive)
    }

    /// Takes out the value of this key, also from among those that could be found again because they are in use.
    ///
    /// Synchronous, from any thread.
    /// - Returns: the value that was held; nil if there was none, or if its time was over.
    @inlinable @discardableResult
    public nonisolated func remove(_ key: Key) -> Value? { store.remove(key) }

    /// Whether a value of this key is held and valid. Neither a use nor a look-up of the statistics; does not see
    /// evicted values that are still in use elsewhere.
    @inlinable
    public nonisolated func contains(_ key: Key) -> Bool { store.contains(key) }

    /// Takes everything out, in one step for each shard. No evictions are told. Synchronous, from any thread; the values
    /// end in the caller's thread.
    public nonisolated func removeAll() { store.removeAll() }
}
