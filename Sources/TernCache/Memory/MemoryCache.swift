/// Values in memory by key: a look-up and an insert are synchronous, from any thread and actor.
///
/// ```swift
/// let cache = MemoryCache<URL, Data>(costLimit: 100 << 20) { $0.count }
/// cache[url] = data                              // no await: a lock is held for some 30 ns
/// if let data = cache[url] { show(data) }        // in the same turn of the main actor, without a flicker
/// await cache.trim(toCost: 10 << 20)
/// ```
/// What holds at every instant: the sum of costs and the number of entries are within `limits`; an entry whose time is
/// over is not given out. Values, and the closures given to the cache, run and end under no lock: the `deinit` of a
/// value may use the cache. A key's `==` and hash alone run under one, and must not.
///
/// The synchronous calls take 20 to 200 ns. Those that may take long (trimming, removing by a condition, changing limits)
/// are the actor's, so that they run off the main actor, in batches of 256 entries between which look-ups go on.
public actor MemoryCache<Key: Hashable & Sendable, Value: Sendable> {
    @usableFromInline nonisolated let store: MemoryStore<Key, Value>
    let response: MemoryPressureResponse
    /// Reads the source of pressure until the cache is gone: cancelled by `deinit`, and holds the store weakly.
    private let listener: Task<Void, Never>?

    /// A cache of this configuration.
    /// - Parameter inUse: how evicted values are found again while they are in use elsewhere; nil: they are not.
    /// - Parameter cost: what a value costs, in the unit of the limits: bytes, with their default. Called once for each
    ///   insert that does not say it, in the caller's thread. Negative costs count as zero.
    public init(
        _ configuration: MemoryCacheConfiguration = MemoryCacheConfiguration(), inUse: InUse<Value>? = nil,
        cost: @escaping @Sendable (Value) -> Int
    ) {
        let store = MemoryStore<Key, Value>(configuration, inUse: inUse, cost: cost)
        let response = configuration.response
        self.store = store
        self.response = response
        listener = configuration.pressure.map { pressure in
            let levels = pressure.levels
            // Not a child of whoever makes the cache: it lives as long as the cache does.
            return Task.detached(priority: .utility) { [weak store] in
                for await level in levels {
                    guard let store else { return }
                    store.relieve(level, response)
                }
            }
        }
    }

    /// A cache with a limit on the sum of costs, and else the defaults.
    public init(costLimit: Int, inUse: InUse<Value>? = nil, cost: @escaping @Sendable (Value) -> Int) {
        self.init(
            MemoryCacheConfiguration(limits: MemoryCacheLimits(cost: costLimit)), inUse: inUse, cost: cost)
    }

    /// A cache with a limit on the number of entries, each of cost 1, and else the defaults.
    public init(
        countLimit: Int, policy: MemoryCachePolicy = .s3FIFO, timeToLive: Duration? = nil, inUse: InUse<Value>? = nil
    ) {
        var configuration = MemoryCacheConfiguration(
            limits: MemoryCacheLimits(cost: .max, count: countLimit), policy: policy)
        configuration.timeToLive = timeToLive
        self.init(configuration, inUse: inUse) { _ in 1 }
    }

    deinit {
        listener?.cancel()
    }

    /// What may be held.
    public nonisolated var limits: MemoryCacheLimits { store.ledger.limits }

    /// The sum of the entries' costs; never above `limits.cost`.
    public nonisolated var totalCost: Int { store.ledger.cost }

    /// The number of entries, those included whose time is over and that were not swept out yet; never above
    /// `limits.count`.
    public nonisolated var count: Int { store.ledger.count }

    /// What the cache has done and holds. The shards are asked one after the other: under load the figures are of
    /// slightly different instants.
    public nonisolated var statistics: MemoryCacheStatistics { store.statistics }

    /// The keys, in no order; those of expired entries included. For a look into the cache: it copies them all.
    public nonisolated var keys: [Key] { store.keys }

    /// The evictions from now on: entries that went without having been removed or replaced by the user.
    ///
    /// Each access gives a stream of its own that holds `eventLimit` events for a slow reader; what comes beyond is
    /// counted by one `.dropped`, in its place. In the order of happening for those of one thread. The values are not
    /// held by it. Ends with the cache, and when its reader is cancelled.
    public nonisolated var evictions: AsyncStream<MemoryCacheEvent<Key>> { store.feed.stream() }
}
