import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The second level of an HTTP cache: the responses that several processes of one private cache share. A failure is a
/// miss.
///
/// A URL has one response there, the latest one, which answers the requests that its `Vary` selects.
final class SharedResponses: Sendable {
    /// The result of a look-up.
    enum LookUp: Sendable {
        case found(CacheEntry, body: Data)
        /// Nothing usable is there. With a lease, other processes wait for the response that this one fetches.
        case missing(SharedLease?)
    }

    private let level: SecondLevelCache
    private let now: @Sendable () -> Date
    private let uploads = SharedUploads()
    private let failedRemovals = Lock(FailedRemovals())

    init(_ level: SecondLevelCache, now: @escaping @Sendable () -> Date) {
        self.level = level
        self.now = now
    }

    private static func group(_ partition: String) -> String { "http \(partition)" }

    /// Returns the key of the response to GET of a URL. A digest, because a URL can have secrets.
    static func key(_ key: CacheKey) -> CacheStoreKey {
        let digest = DigestFunction.hash(Array(key.with(method: "GET").text.utf8), .sha256)
        return CacheStoreKey(group: group(key.partition), name: digest.hexadecimal)
    }

    // MARK: Shared requests and responses

    /// Returns whether another process may have the response to a request: one without any secret, to a server that is
    /// trusted and reached by the default settings.
    static func shares(_ request: CacheRequest, of exchange: NetworkExchange) -> Bool {
        request.key.method == "GET" && request.key.trust.isEmpty && request.credentials == nil
            && !request.headers.contains { Headers.isSecret($0.name) }
            && !exchange.registry.configuration.hasPartitionOfProcess
    }

    /// Returns whether other processes may use a stored response. In doubt, they do not.
    static func shares(_ entry: CacheEntry) -> Bool {
        guard entry.key.method == "GET", entry.key.trust.isEmpty, entry.properties.credentials == nil, entry.isWhole,
            !entry.properties.mustValidate
        else { return false }
        // Invalidations reach these by rules that the second level does not know.
        guard entry.groups.isEmpty, entry.search == .exact else { return false }
        // Without a named user, it may be the response to one server's address.
        if entry.directives.isPrivate, entry.key.partition.isEmpty { return false }
        return !entry.headers.contains { Headers.isSecret($0.name) }
    }

    // MARK: Reading

    /// Returns the shared response to a request, or a lease to fetch it.
    ///
    /// - Parameters:
    ///   - id: The number of the entry in this process.
    ///   - limit: The time that the request has left; nil for any.
    func lookUp(_ request: CacheRequest, id: UInt64, within limit: Duration?) async -> LookUp {
        let key = Self.key(request.key)
        var level = level
        if let limit {
            level.timeLimit = min(level.timeLimit, limit)
            level.waitLimit = min(level.waitLimit, limit)
        }
        switch await level.lookUp(key, reserves: true, now: now) {
        case .found(let value):
            guard let (entry, body) = await Self.response(value, to: request.key, id: id) else {
                await level.remove(key)
                return .missing(nil)
            }
            // One that was to be removed, and could not be.
            guard failedRemovals.withLock({ $0.allows(key, receivedAt: entry.properties.responseTime) }) else {
                return .missing(nil)
            }
            return .found(entry, body: body)
        case .missing(let isReserved): return .missing(isReserved ? SharedLease(key, self) : nil)
        case .unavailable: return .missing(nil)
        }
    }

    /// Reads and checks a shared response, like one from the disk.
    @concurrent
    private static func response(
        _ value: SharedValue, to key: CacheKey, id: UInt64
    ) async -> (CacheEntry, Data)? {
        guard let record = CacheRecord(value.value), record.items.count == 1, let item = record.items.first,
            case .inline(let body) = item.body, item.entry.key == key, shares(item.entry),
            StoredFields.isWithinLimits(item.entry.headers), item.entry.headers.allSatisfy(\.isWellFormed)
        else { return nil }
        let received = CacheTime(value.received)
        let entry = item.entry.changing { properties in
            properties.id = id
            // The times of another process's clock, no later than the age in the store allows.
            let shift = max(0, properties.responseTime.milliseconds - received.milliseconds)
            let sent = properties.requestTime.milliseconds - shift
            properties.responseTime = CacheTime(milliseconds: properties.responseTime.milliseconds - shift)
            properties.requestTime = min(CacheTime(milliseconds: sent), properties.responseTime)
        }
        return (entry, body)
    }

    // MARK: Storing

    /// Stores a response that the local store has, in the background.
    func offer(_ entry: CacheEntry, from store: any EntryStore, lease: SharedLease?) {
        let key = Self.key(entry.key)
        let length = entry.properties.storedLength
        guard Self.shares(entry), lifetime(of: entry) > .zero,
            level.accepts(Int(clamping: length), metadata: Data(), for: key), lease.map({ $0.key == key }) ?? true
        else { return }
        let generation = store.generation
        let isStarted = uploads.start(Int(length)) { [self] in
            await upload(entry, as: key, from: store)
            // An invalidation while the response was on its way.
            if !store.isValid(entry, since: generation) { await level.remove(key) }
        }
        if isStarted { lease?.end() }
    }

    private func upload(_ entry: CacheEntry, as key: CacheStoreKey, from store: any EntryStore) async {
        let length = entry.properties.storedLength
        guard let body = length == 0 ? Data() : await store.body(of: entry, range: 0..<length) else {
            return await level.release(key)
        }
        let record = CacheRecord([CacheRecord.Item(entry: entry, body: .inline(body))])
        let value = SharedValue(received: entry.properties.responseTime.date, value: record.encoded())
        await level.insert(value, for: key, lifetime: lifetime(of: entry))
    }

    /// Returns the time for which a response is of use: with a validator also after it is stale.
    private func lifetime(of entry: CacheEntry) -> Duration {
        if !entry.validators.isEmpty { return level.lifetimeLimit }
        return min(level.lifetimeLimit, entry.freshness.lifetime - entry.freshness.age(at: CacheTime(now())))
    }

    fileprivate func release(_ key: CacheStoreKey) {
        _ = uploads.start(0) { [level] in await level.release(key) }
    }

    /// Returns once the present uploads have ended.
    func finishUploads() async { await uploads.finish() }

    // MARK: Removing

    /// Removes the responses of URLs, all at once, so that a store that does not answer costs its time limit once. One
    /// that cannot be removed is not used in this process any more.
    ///
    /// - Returns: The reason why responses may be left; nil if none is.
    @discardableResult
    func remove(_ keys: [CacheKey]) async -> String? {
        let keys = Set(keys.filter(\.trust.isEmpty).map { Self.key($0) })
        if keys.isEmpty { return nil }
        // A task of its own, so that the caller's cancellation leaves nothing. It ends within the time limit of the
        // store.
        let failed = await Task { [level] in
            await withTaskGroup(of: CacheStoreKey?.self) { group in
                for key in keys { group.addTask { await level.remove(key) ? nil : key } }
                var failed: [CacheStoreKey] = []
                for await case let key? in group { failed.append(key) }
                return failed
            }
        }.value
        if failed.isEmpty { return nil }
        failedRemovals.withLock { $0.record(failed, at: CacheTime(now())) }
        return "the second level could not remove a response"
    }

    /// Removes the responses of entries that turned out to be outdated or damaged, in the background.
    func discard(_ entries: [CacheEntry]) {
        let keys = entries.map(\.key)
        if keys.isEmpty { return }
        _ = uploads.start(0) { [self] in await remove(keys) }
    }

    /// Removes the responses of a user; of all users for nil. Returns the reason why some may be left; nil if none is.
    func removeAll(partition: String?) async -> String? {
        await uploads.finish()
        // As above.
        let failure = await Task { [level] in await level.removeAll(inGroup: partition.map { Self.group($0) }) }.value
        if failure != nil { failedRemovals.withLock { $0.recordAll(at: CacheTime(now())) } }
        return failure
    }
}

/// The responses that could not be removed from the second level.
private struct FailedRemovals {
    private var times: [CacheStoreKey: CacheTime] = [:]
    /// The time of a removal of responses that are not listed; nil for none.
    private var ofAll: CacheTime?

    /// The greatest number of responses that are listed.
    private static let limit = 1_024

    mutating func record(_ keys: [CacheStoreKey], at time: CacheTime) {
        if times.count + keys.count > Self.limit { return recordAll(at: time) }
        for key in keys { times[key] = time }
    }

    mutating func recordAll(at time: CacheTime) { (times, ofAll) = ([:], time) }

    /// Returns whether a response is newer than the removals of its URL.
    func allows(_ key: CacheStoreKey, receivedAt time: CacheTime) -> Bool {
        [times[key], ofAll].compactMap(\.self).allSatisfy { time > $0 }
    }
}

/// The reservation of a fetch, for which other processes wait. It ends with the upload of the response, or with this
/// object.
final class SharedLease: Sendable {
    let key: CacheStoreKey
    private let responses: SharedResponses
    private let hasEnded = Lock(false)

    fileprivate init(_ key: CacheStoreKey, _ responses: SharedResponses) {
        self.key = key
        self.responses = responses
    }

    deinit { release() }

    /// Ends the reservation without a response.
    func release() { if end() { responses.release(key) } }

    /// Leaves the end of the reservation to an upload. Returns false if it has ended before.
    @discardableResult
    fileprivate func end() -> Bool {
        hasEnded.withLock { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
    }
}

/// Offers a response to other processes once it is stored here.
struct SharedOffer: Sendable {
    let responses: SharedResponses
    let lease: SharedLease?

    func make(_ entry: CacheEntry, from store: any EntryStore) {
        responses.offer(entry, from: store, lease: lease)
    }
}

extension Headers.Field {
    /// Whether the value has no control characters, so that a validator made of it can be sent.
    fileprivate var isWellFormed: Bool {
        !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }
    }
}
