public import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension HTTPCache {
    // MARK: Statistics

    /// The numbers of a cache since its creation.
    public struct Statistics: Sendable, Hashable {
        /// The number of responses that came from the store, fresh or stale, and were not confirmed by a server.
        public internal(set) var hits = 0
        /// The number of those that were stale.
        public internal(set) var staleHits = 0
        /// The number of stored responses that a server confirmed.
        public internal(set) var validations = 0
        /// The number of responses that came from a server.
        public internal(set) var misses = 0
        /// The number of responses that were stored.
        public internal(set) var stored = 0
        /// The number of bytes of bodies that were answered from the store; all bytes of a body that was completed.
        public internal(set) var bytesSaved = 0

        /// Creates numbers of zero.
        public init() {}
    }

    /// The numbers since the creation of the cache.
    public nonisolated var statistics: Statistics { shared.statistics.current }

    /// The numbers as they change. Each access returns a new stream, which begins with the present numbers. A slow
    /// reader receives the latest numbers. The stream ends when the cache is released.
    public nonisolated var statisticsUpdates: AsyncStream<Statistics> { shared.statistics.stream() }

    // MARK: Entries

    /// A stored response.
    public struct Entry: Sendable, Hashable {
        /// The URL of the request, with its port.
        public let url: String
        /// The method of the request: GET or HEAD.
        public let method: String
        /// The status code.
        public let status: Int
        /// The header fields as they are stored.
        public let headers: Headers
        /// The number of stored bytes of the body, as the server sent them.
        public let storedBytes: Int64
        /// A Boolean value that indicates whether the whole body is stored. A part is completed by a request for the
        /// rest.
        public let isWhole: Bool
        /// The time at which the response arrived or was last confirmed.
        public let responseTime: Date
        /// The present age.
        public let age: Duration
        /// The time for which the response is still fresh; negative if it is stale.
        public let timeToLive: Duration
        /// The fields of the request that selected the response, by the `Vary` of the response.
        public let variesBy: [String]
        /// The texts that a `SessionPolicy` stored with the response.
        public let userInfo: [String: String]
    }

    /// Returns the stored responses whose URLs begin with a text, of all partitions, in the order of their URLs. On the
    /// disk, a URL of more than about 900 bytes may be left out. Waits for the responses that are being written, which
    /// requests find already.
    ///
    /// - Parameter prefix: The beginning of the URLs with a whole host, as in `https://api.example.com/v1/`; empty for
    ///   all.
    public nonisolated func entries(matching prefix: String = "") async -> [Entry] {
        guard let store = await store(isForced: true) else { return [] }
        await shared.written()
        // A text that is no URL matches no stored one, and is compared as it is.
        let target = try? Target(absolute: prefix)
        let wanted = target.map { CacheKey($0).url } ?? prefix
        let now = now
        var entries: [Entry] = []
        for key in await store.keys() where key.url.hasPrefix(wanted) {
            entries += await store.entries(at: key).map { Entry($0, at: now) }
        }
        return entries.sorted { $0.url == $1.url ? $0.responseTime < $1.responseTime : $0.url < $1.url }
    }

    /// Returns when each response that has arrived is stored or given up, or the caller is cancelled. Call it before
    /// the program ends: a response is written to the disk after its last byte, and its reader does not wait for that.
    ///
    /// The same applies to the second level.
    public nonisolated func flush() async {
        await shared.written()
        await secondLevel?.finishUploads()
    }

    // MARK: Removing

    /// Removes the stored responses of a URL in the partition of a session. A response whose request is under way is
    /// not stored.
    ///
    /// Responses to requests with a trust policy, cookies or a socket path of their own stay: ``clear(_:)`` removes
    /// them. The second level is included; other processes keep what they have in memory and on their disks. The same
    /// applies to the other removals.
    ///
    /// - Throws: ``Failure`` for a URL that cannot be requested, and if responses may be left, because the folder
    ///   cannot be opened or the disk fails.
    public nonisolated func remove(_ url: String, of session: Session) async throws(Failure) {
        let target: Target
        do throws(NetworkError) { target = try Request(.get, url).target } catch { throw Failure(reason: error.reason) }
        let store = try await openStore()
        let keys = session.tasks.cacheScopes.map { CacheKey(target, trust: $0.trust, partition: $0.partition) }
        let failure = await remove {
            var failure: String?
            // All of them, also after a failure.
            for key in keys {
                failure = await store.invalidate(CacheInvalidation(keys: [key], groups: [])) ?? failure
            }
            return failure
        } secondLevel: {
            await $0.remove(keys)
        }
        try Self.check(failure)
        try checkFolder()
    }

    /// Removes the responses of a user: of all sessions whose configuration names this partition. Call it at logout. A
    /// response whose request is under way is not stored.
    ///
    /// - Throws: ``Failure`` if responses may be left, because the folder cannot be opened or the disk fails.
    public nonisolated func clear(partition: String) async throws(Failure) {
        let store = try await openStore()
        try await clear(CachePartition.names(of: partition), in: store)
        try checkFolder()
    }

    /// Removes the responses of a session's partition, which other sessions can share. A response whose request is
    /// under way is not stored.
    ///
    /// - Throws: ``Failure`` if responses may be left, because the folder cannot be opened or the disk fails.
    public nonisolated func clear(_ session: Session) async throws(Failure) {
        let store = try await openStore()
        try await clear(session.tasks.cacheScopes.map(\.partition), in: store)
        try checkFolder()
    }

    private nonisolated func clear(_ partitions: [String], in store: any EntryStore) async throws(Failure) {
        var failure: String?
        // All of them, also after a failure.
        for partition in partitions {
            let other = await remove {
                await store.removeAll(partition: partition)
            } secondLevel: {
                await $0.removeAll(partition: partition)
            }
            failure = other ?? failure
        }
        try Self.check(failure)
    }

    /// Removes all responses. A response whose request is under way is not stored. In the second level, this removes
    /// all values of its store, those of other caches included.
    ///
    /// - Throws: ``Failure`` if responses may be left, because the folder cannot be opened or the disk fails.
    public nonisolated func removeAll() async throws(Failure) {
        let store = try await openStore()
        let failure = await remove {
            await store.removeAll()
        } secondLevel: {
            await $0.removeAll(partition: nil)
        }
        try Self.check(failure)
        try checkFolder()
    }

    private nonisolated func openStore() async throws(Failure) -> any EntryStore {
        if let store = shared.store { return store }
        try await open()
        guard let store = shared.store else { throw Failure(reason: CacheReason.storeUnavailable.text) }
        return store
    }

    /// Throws the reason why a cache that uses memory in place of its folder cannot remove what is in the folder.
    private nonisolated func checkFolder() throws(Failure) { try Self.check(shared.folderFailure) }

    private static func check(_ failure: String?) throws(Failure) {
        if let failure { throw Failure(reason: "stored responses may be left: \(failure)") }
    }
}

extension HTTPCache.Entry: CustomStringConvertible, CustomReflectable {
    /// One line: the method, the URL without the values of its query, the status, and the number of bytes.
    public var description: String { "\(method) \(Target.redact(url)): \(status), \(storedBytes) bytes" }

    /// The parts of ``description``. Without this mirror, `dump` would show the whole URL.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "method": method, "url": Target.redact(url), "status": status, "headers": headers,
                "storedBytes": storedBytes,
            ])
    }
}

extension HTTPCache.Entry {
    init(_ entry: CacheEntry, at now: CacheTime) {
        let names: [String] = if case .names(let names) = entry.vary { names } else { [] }
        self.init(
            url: entry.key.url, method: entry.key.method, status: entry.status, headers: entry.headers,
            storedBytes: entry.properties.storedLength, isWhole: entry.isWhole,
            responseTime: entry.properties.responseTime.date, age: entry.freshness.age(at: now),
            timeToLive: entry.freshness.lifetime - entry.freshness.age(at: now), variesBy: names,
            userInfo: entry.properties.userInfo)
    }
}

extension CacheState {
    /// Counts a response from the store.
    func count(_ result: CacheHandling.Result, _ answer: CacheAnswer, bytes: Int, outcome: CacheReason?) {
        statistics.update { old in
            var new = old
            if outcome == .validated || answer.isValidated {
                new.validations += 1
            } else {
                new.hits += 1
                switch result {
                case .hit(let reason) where reason != .fresh && reason != .immutable: new.staleHits += 1
                case .staleAfterError: new.staleHits += 1
                case .hit, .forwarded: break
                }
            }
            new.bytesSaved += bytes
            return new
        }
    }

    func countMiss() {
        statistics.update { old in
            var new = old
            new.misses += 1
            return new
        }
    }

    func countStored() {
        statistics.update { old in
            var new = old
            new.stored += 1
            return new
        }
    }
}

// MARK: Explanations

/// The answer that a cache would give to a request now (`HTTPCache.explain(_:of:)`).
public struct CacheExplanation: Sendable, Hashable {
    /// The action of the cache.
    public enum Action: String, Sendable, Hashable, CaseIterable {
        /// Answers with a fresh stored response.
        case serve
        /// Answers with a stale stored response.
        case serveStale
        /// Asks the server whether the stored response is still valid.
        case validate
        /// Sends the request.
        case send
        /// Fails with an error of kind `.notStored`.
        case fail
    }

    /// The action of the cache.
    public let action: Action
    /// The reason, such as `fresh` or `nothing-stored`.
    public let reason: String
    /// The reason in words.
    public let explanation: String
    /// The header fields that the cache would add to the request.
    public let conditions: Headers
    /// The stored responses of the URL: all variants, also those that the request does not select.
    public let entries: [HTTPCache.Entry]
}

extension CacheExplanation: CustomStringConvertible {
    /// One line: the action and its reason.
    public var description: String { "\(action.rawValue): \(explanation)" }
}

extension HTTPCache {
    /// Tells what the cache would do with a request now. Nothing is sent, and nothing is changed.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - session: The session that would send it. Its interceptors are not asked.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for a request that cannot be sent.
    public nonisolated func explain(
        _ request: Request, of session: Session
    ) async throws(NetworkError) -> CacheExplanation {
        let exchange = try NetworkExchange(explaining: request, of: session)
        let own = CacheRequest(exchange)
        guard let store = await store() else {
            let reason = CacheReason.storeUnavailable
            return CacheExplanation(
                action: .send, reason: reason.rawValue, explanation: reason.text, conditions: [:], entries: [])
        }
        let start = MonotonicClock.nanoseconds()
        let lookup = CacheExchange(cache: self, store: store, exchange: exchange, request: own, start: start)
        let (entries, now) = (await lookup.entries(), now)
        let decision = policy.decide(own, entries: entries, now: now)
        var conditions = Headers()
        let action: CacheExplanation.Action
        switch decision.action {
        case .serve: action = .serve
        case .serveStale: action = .serveStale
        case .revalidate(_, let condition):
            action = .validate
            conditions = condition.headers
        case .fetch: action = .send
        case .refuse: action = .fail
        }
        return CacheExplanation(
            action: action, reason: decision.reason.rawValue, explanation: decision.reason.text,
            conditions: conditions, entries: entries.map { Entry($0, at: now) })
    }
}
