public import Tern
public import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Stores responses by the rules of RFC 9111 for a private cache, and answers requests with them.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.cache = .memory()
/// let client = try Client(baseURL: "https://api.example.com", session: Session(configuration: configuration))
/// let response = try await client.response(for: try client.request(.get, "articles/7"))
/// print(response.cacheTrace?.description ?? "")   // stored: the stored response is fresh; age 42 s
/// ```
///
/// Several sessions can share a cache. Each stored response belongs to the partition of its session
/// (`Session.Configuration.partition`) and to its trust policies, so one user's response is never another's, and an
/// exchange under weaker trust never answers a request under stricter trust.
///
/// The cache runs once for each exchange with a server, inside the loop that follows redirects and challenges, so
/// redirects are cached, too. Interceptors run outside the cache, and see stored responses like any others. Equal
/// requests that are made at the same time are sent once: the others wait for the response, each for its time limit
/// `idle` at most.
///
/// A failure of the store is a miss: it never fails a request. Stored bodies have the form in which the server sent
/// them, and are decompressed for each reader.
///
/// A stored response has metrics without bytes on the wire and with 0 transactions. Its progress reports the stored
/// bytes. Observers learn of its head, and not of a request, because none is sent. Policies are asked for its
/// disposition. The time limits of the request do not apply.
public actor HTTPCache {
    /// The settings of a cache.
    public struct Configuration: Sendable {
        /// The maximum number of bytes of all stored responses. 32 MiB in memory and 256 MiB on the disk by default.
        public var byteLimit: Int?
        /// The maximum number of bytes of one stored body. Longer bodies pass through and are not stored. By default 4
        /// MiB in memory, and 64 MiB on the disk or a quarter of `byteLimit` if that is less.
        ///
        /// On the disk, a body of more than 256 KiB that is read as a stream is written while it arrives. The disk
        /// never slows its reader: if more than 2 MiB of one response, or 32 MiB of all, wait for the disk, the
        /// response is not stored, and its trace gives `store-busy`.
        public var entryByteLimit: Int?
        /// The time after the end of its lifetime during which a stale response is used if the server cannot be
        /// reached. If nil, the default, only the `stale-if-error` of the response permits this. A response with
        /// `must-revalidate` or `no-cache` is never used this way (RFC 9111 §4.2.4).
        public var staleWhenDisconnected: Duration?
        /// The name of the cache in `CacheTrace.cacheStatus` (RFC 9211). `Tern` by default.
        public var name = "Tern"
        /// The second level behind the memory or the disk, which several processes share; nil, the default, for none.
        /// The processes are one private cache.
        ///
        /// In doubt, a response stays in its process. Shared are whole responses to GET without any secret field in the
        /// request or the response (`Authorization`, `Cookie`, `Set-Cookie` and others), without trust or route
        /// settings of their own, and without `No-Vary-Search` and `Cache-Groups`. The partition of the session is a
        /// part of their keys. Those with `private` are shared only in a partition with a name, and those of a session
        /// whose partition is valid in its process only never are.
        public var secondLevel: SecondLevelCache?
        /// Returns the present time, by which the age of responses is measured. The system's clock by default. For
        /// tests.
        public var now: @Sendable () -> Date = { Date() }

        /// Creates settings with the defaults stated at each property.
        public init() {}
    }

    /// The kind of the store.
    enum Place: Sendable {
        case memory
        case disk(URL)
        /// A folder, or memory if another process uses the folder.
        case diskOrMemory(URL)
    }

    nonisolated let configuration: Configuration
    nonisolated let policy: CachePolicy
    nonisolated let place: Place
    /// The state that requests use without a wait for the actor.
    nonisolated let shared: CacheState
    /// The responses that several processes share; nil without a second level.
    nonisolated let secondLevel: SharedResponses?
    /// The refreshes of stale responses in the background: one for each key.
    private var refreshes: [CacheKey: Task<Void, Never>] = [:]
    /// The waits that servers have asked for after a refresh.
    private var refreshPauses = ExpiringKeys<CacheKey>()

    /// The opening of the folder, after which requests find its store; nil for none.
    private var publishing: Task<Void, Never>?

    private init(_ place: Place, _ configuration: Configuration) {
        self.place = place
        self.configuration = configuration
        policy = CachePolicy(staleWhenDisconnected: configuration.staleWhenDisconnected)
        shared = CacheState()
        secondLevel = configuration.secondLevel.map { SharedResponses($0, now: configuration.now) }
        guard case .memory = place else { return }
        shared.open(with: Self.memoryStore(configuration))
    }

    deinit {
        for refresh in refreshes.values { refresh.cancel() }
        shared.statistics.finish { $0 }
    }

    /// The maximum number of bytes of one stored body on the disk.
    nonisolated var diskEntryLimit: Int { configuration.entryByteLimit ?? min(64 << 20, diskLimit / 4) }

    private nonisolated var diskLimit: Int { configuration.byteLimit ?? 256 << 20 }

    // MARK: Creating a cache

    /// Returns a cache in memory. It evicts responses under memory pressure.
    public static func memory(_ configuration: Configuration = Configuration()) -> HTTPCache {
        HTTPCache(.memory, configuration)
    }

    /// Returns a cache in a folder, which is created if necessary. Only the user of the process can read its files.
    ///
    /// The folder belongs to one process at a time. Caches of one process with the same folder share its content, and
    /// the `byteLimit` of the one that opens it first applies. It is opened by the first request, or by ``open()``,
    /// which tells why that fails. While it cannot be opened, nothing is stored, and requests use the network. They try
    /// again, once a second at most.
    ///
    /// Stored responses survive the end of the process, also by `kill -9`. A damaged one is a miss. The heads and the
    /// bodies up to 8 KiB that were used last are also kept in memory, at most 8 MiB for each folder.
    public static func disk(folder: URL, _ configuration: Configuration = Configuration()) -> HTTPCache {
        HTTPCache(.disk(folder), configuration)
    }

    /// The cache that sessions of the process can share: a folder in the user's folder of caches, named after the
    /// program. If the folder cannot be opened, for example in a second process of the same program, memory is used
    /// instead.
    ///
    /// Removals then throw ``Failure``, because the responses in the folder stay.
    public static let shared = HTTPCache(.diskOrMemory(sharedFolder), Configuration())

    /// The folder of ``shared``. A tool opens it with `disk(folder:_:)` to learn whether another process uses it.
    public static var sharedFolder: URL { DiskCache.standardFolder("tern-http") }

    private static func memoryStore(_ configuration: Configuration) -> MemoryEntryStore {
        var memory = MemoryCacheConfiguration()
        memory.limits.cost = configuration.byteLimit ?? 32 << 20
        return MemoryEntryStore(memory, entryLimit: configuration.entryByteLimit ?? 4 << 20)
    }

    // MARK: The store

    /// Opens the folder of the cache. Returns at once if it is open, and for a cache in memory.
    ///
    /// - Throws: `HTTPCache.Failure` if the folder cannot be opened: because another process uses it, or because of
    ///   the file system. A later call tries again.
    public func open() async throws(Failure) {
        if shared.store != nil { return }
        let folder: URL
        switch place {
        case .memory: return
        case .disk(let url), .diskOrMemory(let url): folder = url
        }
        var disk = DiskCache.Configuration()
        disk.byteLimit = diskLimit
        let result = await SharedDiskCaches.cache(at: folder, disk)
        if shared.store != nil { return }
        switch result {
        case .success(let disk):
            if let publishing { return await publishing.value }
            let store = DiskEntryStore(disk, entryLimit: diskEntryLimit)
            // Owned here, so that it runs once. It ends by itself.
            let task = Task { [shared] in await shared.openFolder(with: store) }
            publishing = task
            await task.value
            publishing = nil
        case .failure(let error):
            if case .diskOrMemory = place {
                return shared.open(with: Self.memoryStore(configuration), after: error.reason)
            }
            throw Failure(reason: error.reason)
        }
    }

    /// The reason why a cache cannot use its folder.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// One sentence.
        public let reason: String
        /// Creates a reason.
        public init(reason: String) { self.reason = reason }
        /// The reason.
        public var description: String { reason }
    }

    /// Returns the store, which the first calls open; nil while it cannot be opened.
    ///
    /// - Parameter isForced: Whether the call tries to open the folder also if that has just failed.
    nonisolated func store(isForced: Bool = false) async -> (any EntryStore)? {
        if let store = shared.store { return store }
        if !isForced, !shared.mayOpen(at: MonotonicClock.nanoseconds()) { return nil }
        do {
            try await open()
        } catch {
            // The trace of the response has the reason store-unavailable, and `open()` throws this error.
            shared.openingFailed(at: MonotonicClock.nanoseconds())
        }
        return shared.store
    }

    // MARK: Refreshing

    /// Refreshes a stale response in the background, once for each key at a time.
    func refresh(with exchange: CacheExchange) {
        let key = exchange.request.key
        guard refreshes[key] == nil, !refreshPauses.contains(key, at: now) else { return }
        // Ends with the exchange, whose time limits apply. Cancelled with the session's tasks.
        refreshes[key] = Task { [weak self] in
            // Another refresh can have ended between the look-up of this request and this call.
            if await exchange.isServedStale() { await exchange.exchange.refresh() }
            await self?.refreshEnded(key)
        }
    }

    /// Refreshes a response no more until its server takes requests again (`Retry-After`, RFC 9110 §10.2.3).
    func pauseRefreshes(of key: CacheKey, for delay: Duration) { refreshPauses.add(key, for: delay, at: now) }

    private func refreshEnded(_ key: CacheKey) { refreshes[key] = nil }

    /// Returns when no refresh runs. For tests.
    func refreshed() async {
        while let refresh = refreshes.values.first { await refresh.value }
    }
}

extension Session.Configuration {
    /// The cache of responses; nil, the default, for none.
    ///
    /// ```swift
    /// configuration.cache = .memory()
    /// configuration.cache = .disk(folder: folder)
    /// configuration.cache = .shared
    /// ```
    public var cache: HTTPCache? {
        get { exchangeCache as? HTTPCache }
        set { exchangeCache = newValue }
    }
}
