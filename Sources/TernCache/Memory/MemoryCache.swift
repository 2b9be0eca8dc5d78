import TernConcurrency

/// A cache of values in memory by key. Look-ups and inserts are synchronous, from any thread and actor.
///
/// ```swift
/// let cache = MemoryCache<URL, Data>(costLimit: 100 << 20) { $0.count }
/// cache[url] = data                              // no await: a lock is held for some 30 ns
/// if let data = cache[url] { show(data) }        // in the same turn of the main actor, without a flicker
/// await cache.trim(toCost: 10 << 20)
/// ```
/// At every instant, the sum of costs and the number of entries are within `limits`, and an expired entry is not
/// returned. Values, and the closures given to the cache, run and are released without a lock held, so the `deinit` of
/// a value may use the cache. Only the `==` and the hash of a key run under a lock, and must not use the cache.
///
/// The synchronous calls take 20 to 200 ns. Calls that can take long (trimming, removing by a condition, changing
/// limits) are isolated to the actor, so that they run off the main actor, in batches of 256 entries. Look-ups continue
/// between the batches.
public actor MemoryCache<Key: Hashable & Sendable, Value: Sendable> {
    @usableFromInline nonisolated let store: MemoryStore<Key, Value>
    let response: MemoryPressureResponse
    /// Reads the source of memory pressure until the cache is released. `deinit` cancels it; it holds the store weakly.
    private let listener: Task<Void, Never>?

    /// Creates a cache with a configuration.
    /// - Parameter weakReferences: The weak references to evicted values. With nil, the cache does not find these
    ///   again.
    /// - Parameter cost: Returns the cost of a value, in the unit of the limits: bytes, for the default limits. Called
    ///   once for each insert without a cost, in the caller's thread. Negative costs count as zero.
    public init(
        _ configuration: MemoryCacheConfiguration = MemoryCacheConfiguration(),
        weakReferences: WeakReferences<Value>? = nil,
        cost: @escaping @Sendable (Value) -> Int
    ) {
        let store = MemoryStore<Key, Value>(configuration, weakReferences: weakReferences, cost: cost)
        let response = configuration.response
        self.store = store
        self.response = response
        listener = configuration.pressure.map { pressure in
            let levels = pressure.levels
            // Not a child of the task that creates the cache, because it lives as long as the cache does.
            return Task.detached(priority: .utility) { [weak store] in
                for await level in levels {
                    guard let store else { return }
                    store.trim(for: level, response: response)
                }
            }
        }
    }

    /// Creates a cache with a limit on the sum of costs, and the defaults for the rest.
    public init(costLimit: Int, weakReferences: WeakReferences<Value>? = nil, cost: @escaping @Sendable (Value) -> Int)
    {
        self.init(
            MemoryCacheConfiguration(limits: MemoryCacheLimits(cost: costLimit)), weakReferences: weakReferences,
            cost: cost)
    }

    /// Creates a cache with a limit on the number of entries, each of cost 1, and the defaults for the rest.
    public init(
        countLimit: Int, policy: MemoryCachePolicy = .s3FIFO, timeToLive: Duration? = nil,
        weakReferences: WeakReferences<Value>? = nil
    ) {
        var configuration = MemoryCacheConfiguration(
            limits: MemoryCacheLimits(cost: .max, count: countLimit), policy: policy)
        configuration.timeToLive = timeToLive
        self.init(configuration, weakReferences: weakReferences) { _ in 1 }
    }

    deinit {
        listener?.cancel()
    }

    /// The limits of the content.
    public nonisolated var limits: MemoryCacheLimits { store.ledger.limits }

    /// The sum of the entries' costs. Never above `limits.cost`.
    public nonisolated var totalCost: Int { store.ledger.cost }

    /// The number of entries, including expired entries that are not swept yet. Never above `limits.count`.
    public nonisolated var count: Int { store.ledger.count }

    /// The counters of the cache. The shards are read one after another: under load, the figures are of slightly
    /// different instants.
    public nonisolated var statistics: MemoryCacheStatistics { store.statistics }

    /// The keys, in no order, including those of expired entries. Copies all keys: intended for debugging.
    public nonisolated var keys: [Key] { store.keys }

    /// The evictions from now on: entries that left without being removed or replaced by the user.
    ///
    /// Each access returns a stream of its own, which holds up to `eventLimit` events for a slow reader. One `.dropped`
    /// element counts the events that do not fit, in their place. Evictions of one thread arrive in their order. The
    /// stream does not hold the values. It ends with the cache, and when its reader is cancelled.
    public nonisolated var evictions: AsyncStream<MemoryCacheEvent<Key>> { store.evictionEvents.stream() }
}

// MARK: - Synchronous access

extension MemoryCache {
    /// Returns the value of a key, and counts as a use. Returns nil if there is none, or if it has expired.
    ///
    /// A cache that was created with `WeakReferences` also finds an evicted value that is still in use elsewhere, and
    /// stores it again. Synchronous, from any thread.
    @inlinable
    public nonisolated func value(for key: Key) -> Value? { store.value(for: key) }

    /// The value of a key. Setting nil removes the value; setting a value inserts it with the defaults.
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

    /// Stores a value in place of an older value of the key, and makes room for it first.
    ///
    /// A value that costs more than `limits.entryCost` is not stored. The old value of its key is removed nevertheless,
    /// because it is no longer the value of that key. Synchronous, from any thread.
    /// - Parameter cost: The cost of the value; nil uses the cache's cost function. Negative values count as zero.
    /// - Parameter timeToLive: The time for which the value is valid; nil uses the configuration's.
    /// - Returns: True if the value was stored.
    @inlinable @discardableResult
    public nonisolated func insert(
        _ value: Value, for key: Key, cost: Int? = nil, timeToLive: Duration? = nil
    ) -> Bool {
        store.insert(value, for: key, cost: cost, timeToLive: timeToLive)
    }

    /// Removes the value of a key, including an evicted value that could be found again because it is in use.
    ///
    /// Synchronous, from any thread.
    /// - Returns: The value that was held; nil if there was none, or if it had expired.
    @inlinable @discardableResult
    public nonisolated func remove(_ key: Key) -> Value? { store.remove(key) }

    /// Returns whether the cache holds a valid value of a key. Counts neither as a use nor as a look-up in the
    /// statistics, and does not see evicted values that are still in use elsewhere.
    @inlinable
    public nonisolated func contains(_ key: Key) -> Bool { store.contains(key) }

    /// Removes all entries, in one step for each shard, without sending evictions. Synchronous, from any thread; the
    /// values are released in the caller's thread.
    public nonisolated func removeAll() { store.removeAll() }
}

// MARK: - Trimming

extension MemoryCache {
    /// Evicts entries in the policy's order until the sum of costs is at most `cost`. Entries of cost zero may stay.
    ///
    /// With four shards, each evicts in proportion to its content, which can be one entry of each more than needed.
    public func trim(toCost cost: Int) { store.trim(toCost: cost, reason: .trimmed) }

    /// Evicts entries in the policy's order until at most `count` are left.
    public func trim(toCount count: Int) { store.trim(toCount: count, reason: .trimmed) }

    /// Removes all expired entries. The cache also does this by itself, at most once in each `expiryInterval` of the
    /// configuration.
    public func removeExpired() { _ = store.removeExpired() }

    /// Removes every entry whose key meets a condition, including evicted values that are still in use. The condition
    /// runs without a lock held, once for each key that is held at the start.
    public func removeAll(where condition: @Sendable (Key) -> Bool) {
        for key in store.allKeys where condition(key) { _ = store.remove(key) }
    }

    /// Changes the limits, and evicts what exceeds them before it returns. Negative values count as zero.
    ///
    /// The number of shards stays the same: give a limit of few entries to `init` instead.
    public func setLimits(_ limits: MemoryCacheLimits) {
        store.ledger.setLimits(limits)
        store.trim(toCost: limits.cost, reason: .trimmed)
        store.trim(toCount: limits.count, reason: .trimmed)
    }

    /// Evicts the entries that the configuration's `response` defines for a level of memory pressure. The cache calls
    /// it for each level that its source of memory pressure reports. An app can also call it, for example with
    /// `.background`.
    public func trim(for level: MemoryPressureLevel) { store.trim(for: level, response: response) }
}
