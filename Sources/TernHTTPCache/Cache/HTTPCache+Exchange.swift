package import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension HTTPCache: ExchangeCache {
    /// Returns the response to a request: look up → decide → serve, or send → decide → store.
    package nonisolated func response(to exchange: NetworkExchange) async throws(NetworkError) -> IncomingResponse {
        let start = MonotonicClock.nanoseconds()
        let request = CacheRequest(exchange)
        guard let store = await store() else { return try await responseWithoutStore(to: exchange, request) }
        return try await CacheExchange(
            cache: self, store: store, exchange: exchange, request: request, start: start
        ).response()
    }

    private nonisolated func responseWithoutStore(
        to exchange: NetworkExchange, _ request: CacheRequest
    ) async throws(NetworkError) -> IncomingResponse {
        if request.choice == .onlyStored || request.directives.onlyIfCached {
            throw exchange.error(
                .notStored, "no stored response is available, because the cache cannot open its folder")
        }
        var response: IncomingResponse
        do throws(NetworkError) {
            response = try await exchange.send(adding: request.additions(nil, isRefresh: exchange.isRefresh))
        } catch {
            if let head = error.response { await invalidateMissed(after: head, to: exchange, request) }
            throw error
        }
        await invalidateMissed(after: response.head, to: exchange, request)
        let trace = TraceRecord(name: configuration.name, .forwarded(.nothingStored))
        trace.finish(.storeUnavailable, isStored: false)
        response.head = response.head.traced(by: trace)
        return response
    }

    /// Removes what an unsafe request invalidates, although the folder was not open when it began.
    private nonisolated func invalidateMissed(
        after head: ResponseHead, to exchange: NetworkExchange, _ request: CacheRequest
    ) async {
        let response = CacheResponse(
            status: head.status, headers: head.headers, requestTime: now, responseTime: now)
        guard case .invalidate(let own) = CachePolicy.invalidation(after: response, to: request).action else { return }
        let all = own.forScopes(of: exchange)
        if let store = shared.missed(all) { return await invalidate(all, in: store) }
        await secondLevel?.remove(all.flatMap(\.keys))
    }

    /// Removes responses from the store and from the second level.
    nonisolated func invalidate(_ invalidations: [CacheInvalidation], in store: any EntryStore) async {
        await remove {
            var failure: String?
            for invalidation in invalidations { failure = await store.invalidate(invalidation) ?? failure }
            return failure
        } secondLevel: {
            await $0.remove(invalidations.flatMap(\.keys))
        }
    }

    /// Removes responses from the store, then from the second level, and from the store once more: a look-up in the
    /// second level can have brought an outdated response back meanwhile.
    ///
    /// - Returns: The reason why responses may be left; nil if none is.
    @discardableResult
    nonisolated func remove(
        store removeHere: () async -> String?, secondLevel removeThere: (SharedResponses) async -> String?
    ) async -> String? {
        let failure = await removeHere()
        guard let secondLevel else { return failure }
        let other = await removeThere(secondLevel)
        return await removeHere() ?? other
    }

    /// The present time.
    nonisolated var now: CacheTime { CacheTime(configuration.now()) }
}

extension CacheRequest {
    init(_ exchange: NetworkExchange) {
        let key = CacheKey(
            exchange.target, method: exchange.request.method, trust: exchange.scope.trust,
            partition: exchange.scope.partition)
        self.init(
            key: key, headers: exchange.headers, choice: exchange.request.cache, credentials: exchange.credentials)
    }
}

/// One request on its way through the cache. `CachePolicy` decides; these functions look up, send and store.
struct CacheExchange: Sendable {
    let cache: HTTPCache
    let store: any EntryStore
    let exchange: NetworkExchange
    let request: CacheRequest
    /// The time of the request, in nanoseconds of `MonotonicClock`.
    let start: UInt64
    /// The number of times that the request began anew because its cookies or its authorization changed while it
    /// waited.
    var restarts = 0

    /// The number of times that a body may be missing from the store before the request is sent.
    private static let retryLimit = 2
    /// The number of look-ups that a request repeats because an equal one was stored meanwhile.
    private static let lookUpLimit = 3
    /// The number of times that a request begins anew. It is then sent with the cookies and the authorization of its
    /// look-up.
    private static let restartLimit = 3

    /// The condition that is sent with a request, and the entries that it is about.
    typealias Condition = (entries: [CacheEntry], CacheCondition)

    // MARK: Before the network

    func response() async throws(NetworkError) -> IncomingResponse {
        var exchange = exchange
        var isShared = false
        // The requests whose end this one has waited for.
        var awaited: Set<SharingKey> = []
        var retries = 0
        var lookUps = 0
        var hasAskedSecondLevel = false
        var hasAwaitedWrites = false
        while true {
            let storedCount = cache.shared.storedCount
            let endedInserts = store.endedInserts(for: request.key)
            let entries = await entries()
            if exchange.isCancelled { throw exchange.wasCancelled }
            let decision = cache.policy.decide(request, entries: entries, now: cache.now)
            let sent: Condition?
            switch decision.action {
            case .refuse:
                if await awaitsWrite(&hasAwaitedWrites, &exchange, after: endedInserts) { continue }
                throw exchange.error(
                    .notStored,
                    "no stored response can be used, and the request must not be sent: \(decision.reason.text)")
            case .serve(let answer), .serveStale(let answer, _):
                if let response = await serve(answer, .hit(decision.reason), of: exchange, isShared: isShared) {
                    if case .serveStale(_, revalidateInBackground: true) = decision.action {
                        await cache.refresh(with: self)
                    }
                    return response
                }
                // The body was evicted after the look-up. The next look-up does not find the entry.
                retries += 1
                if retries <= Self.retryLimit { continue }
                if request.choice == .onlyStored || request.directives.onlyIfCached {
                    throw exchange.error(.notStored, CacheReason.storeUnavailable.text)
                }
                sent = nil
            case .fetch:
                sent = nil
            case .revalidate(let conditioned, let condition):
                // A body that is too large to be stored is not completed, because that would not be stored either.
                let isTooLarge = condition.missing != nil && (conditioned.first?.total ?? 0) > store.entryLimit
                sent = isTooLarge ? nil : (conditioned, condition)
            }
            if isSharable(decision.reason), await awaitsWrite(&hasAwaitedWrites, &exchange, after: endedInserts) {
                continue
            }
            var role: SharingRole?
            let key = sharingKey(among: entries)
            if isSharable(decision.reason), !cache.shared.isUnstorable(key, at: cache.now) {
                if awaited.contains(key) {
                    role = cache.shared.begin(key).map { .sender($0) }
                } else {
                    role = cache.shared.join(key, after: lookUps < Self.lookUpLimit ? storedCount : nil)
                    if role == nil {
                        lookUps += 1
                        continue
                    }
                }
            }
            if case .waiter(let waiter, let joined)? = role {
                let began = MonotonicClock.nanoseconds()
                let leave = joined?.isJoined(by: exchange)
                defer { leave?() }
                let end = try await wait(waiter, for: key, of: exchange)
                if end == .timedOut {
                    let reason = "the total time limit passed while the request waited for an identical request"
                    let error = exchange.error(.totalTimedOut, reason)
                    if let stale = await stale(after: error, entries: entries) { return stale }
                    throw error
                }
                exchange = exchange.spending(.nanoseconds(Int64(MonotonicClock.nanoseconds() &- began)))
                if end != .abandoned { awaited.insert(key) }
                isShared = end == .stored
                continue
            }
            var sender: SharedExchange?
            if case .sender(let own)? = role {
                sender = own
                own.begin(exchange)
                // Nobody waits for a task that moves no byte.
                exchange.whenPaused { [weak own] in own?.end(.abandoned) }
            }
            var offer = cache.secondLevel.flatMap { shared in
                SharedResponses.shares(request, of: exchange) ? SharedOffer(responses: shared, lease: nil) : nil
            }
            if let shared = offer?.responses, !hasAskedSecondLevel, isSharable(decision.reason, amongProcesses: true) {
                hasAskedSecondLevel = true
                let found = try await askSecondLevel(shared, &exchange, entries: entries)
                if found.isFilled {
                    sender?.end(.stored)
                    continue
                }
                offer = SharedOffer(responses: shared, lease: found.lease)
            }
            // Other requests can have received cookies or an authorization meanwhile.
            if restarts < Self.restartLimit, let changed = exchange.ofAnotherUser {
                sender?.end(.abandoned)
                // Other processes do not wait for this one.
                offer = nil
                return try await CacheExchange(
                    cache: cache, store: store, exchange: changed, request: CacheRequest(changed), start: start,
                    restarts: restarts + 1
                ).response()
            }
            let forwarding = Forwarding(
                exchange: exchange, reason: decision.reason, entries: entries, key: key, sender: sender, offer: offer)
            return try await send(sent, forwarding)
        }
    }

    /// Returns the key of the requests that the response to this one can answer, as far as stored responses tell which
    /// fields select one: requests for different variants do not wait for each other.
    private func sharingKey(among entries: [CacheEntry]) -> SharingKey {
        var names: Set<String> = []
        for case .names(let own) in entries.map(\.vary) { names.formUnion(own) }
        let fields = names.sorted().map {
            VarySelection.Field(name: $0, value: VarySelection.value(of: $0, in: request.headers))
        }
        return SharingKey(key: request.key, credentials: request.credentials, variant: VarySelection(fields: fields))
    }

    /// Waits once for the responses that are being written, if one of them is for this request: a large one cannot be
    /// read before that, and hides those that it outdates. The wait counts for the time limits of the request. Returns
    /// whether the look-up is to be repeated.
    ///
    /// - Parameter ended: `endedInserts(for:)` before the look-up. A response whose write has ended since was hidden
    ///   from it.
    private func awaitsWrite(
        _ hasAwaited: inout Bool, _ exchange: inout NetworkExchange, after ended: UInt64
    ) async -> Bool {
        guard !hasAwaited else { return false }
        guard store.isInserting(request.key) else {
            hasAwaited = store.endedInserts(for: request.key) != ended
            return hasAwaited
        }
        hasAwaited = true
        let began = MonotonicClock.nanoseconds()
        let limit = [exchange.remainingTime, exchange.idleTime].compactMap { $0 }.min()
        await exchange.wait { [cache, exchange] in
            await cache.shared.written(within: limit) { try await exchange.sleep(for: $0) }
        }
        exchange = exchange.spending(.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- began)))
        return true
    }

    /// Returns whether equal requests may share the response: whole ones to GET that were not asked for anew.
    ///
    /// - Parameter amongProcesses: Whether another process may have a newer response. That of a stored one that must be
    ///   validated can be the same.
    func isSharable(_ reason: CacheReason, amongProcesses: Bool = false) -> Bool {
        guard request.key.method == "GET", request.range == nil, !request.isConditional else { return false }
        if amongProcesses { return [.nothingStored, .noVariant, .stale].contains(reason) }
        return [.nothingStored, .noVariant, .stale, .mustValidate, .partial].contains(reason)
    }

    /// Looks into the second level, and stores here what is newer there than the stored responses. The rules then
    /// decide on it like on any other stored response.
    ///
    /// - Returns: True if something was stored, and otherwise the lease of the fetch if there is one.
    private func askSecondLevel(
        _ shared: SharedResponses, _ exchange: inout NetworkExchange, entries: [CacheEntry]
    ) async throws(NetworkError) -> (isFilled: Bool, lease: SharedLease?) {
        let began = MonotonicClock.nanoseconds()
        let generation = store.beginRequest()
        let result = await shared.lookUp(request, id: cache.shared.nextID(), within: exchange.remainingTime)
        exchange = exchange.spending(.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- began)))
        if exchange.isCancelled { throw exchange.wasCancelled }
        switch result {
        case .missing(let lease):
            return (false, lease)
        case .found(let entry, let body):
            let own = entries.filter { $0.isCandidate(for: request) && $0.isSelected(by: request) }
            guard entry.isCandidate(for: request), entry.isSelected(by: request), body.count <= store.entryLimit,
                own.allSatisfy({ $0.isOlder(than: entry) })
            else { return (false, nil) }
            let isStored = await store.insert(entry, body: body, replacing: own, generation: generation)
            return (isStored, nil)
        }
    }

    /// Waits for an equal request: within the total time limit, and not longer than for a silent server.
    ///
    /// - Returns: `.notShared` after the limit `idle`, because the other request can have a longer one.
    private func wait(
        _ waiter: Waiter<SharingEnd>, for key: SharingKey, of exchange: NetworkExchange
    ) async throws(NetworkError) -> SharingEnd {
        let state = cache.shared
        let (total, idle) = (exchange.remainingTime, exchange.idleTime)
        let limit = [total, idle].compactMap { $0 }.min()
        let endAtLimit = limit == total ? SharingEnd.timedOut : .notShared
        // Owned and cancelled here.
        let timer = limit.map { limit in
            Task {
                // An error means that the wait ended in time.
                guard (try? await exchange.sleep(for: limit)) != nil else { return }
                state.leave(waiter, of: key, endAtLimit)
            }
        }
        defer { timer?.cancel() }
        let end = await exchange.wait(for: waiter) { state.leave(waiter, of: key, .cancelled) }
        if end == .cancelled { throw exchange.wasCancelled }
        return end
    }

    /// Returns a Boolean value that indicates whether a stale response that is stored now answers the request.
    func isServedStale() async -> Bool {
        let entries = await entries()
        if case .serveStale = cache.policy.decide(request, entries: entries, now: cache.now).action { return true }
        return false
    }

    func entries() async -> [CacheEntry] {
        let own = await entries(for: request.key)
        return request.isHead ? own + (await entries(for: request.key.with(method: "GET"))) : own
    }

    private func entries(for key: CacheKey) async -> [CacheEntry] {
        // In memory without a suspension.
        if let entries = store.entriesNow(for: key) { return entries }
        return await store.entries(for: key)
    }

    // MARK: Stored responses

    /// The exchange with the server before a stored response was used.
    struct Outcome {
        /// The status of the server's response; nil if none arrived.
        let status: Int?
        let reason: CacheReason
        /// Whether the store has the server's response afterwards.
        let isStored: Bool
        /// The measurements of the exchange.
        let metrics: TaskMetrics?
    }

    /// Returns a stored response; nil if its body is not in the store any more.
    func serve(
        _ answer: CacheAnswer, _ result: CacheHandling.Result, of current: NetworkExchange? = nil,
        outcome: Outcome? = nil, body given: Data? = nil, isShared: Bool = false
    ) async -> IncomingResponse? {
        let exchange = current ?? exchange
        var body = Data()
        if let range = answer.body {
            guard let found = if let given { given } else { await self.body(of: answer.entry, range: range) } else {
                return nil
            }
            // Chunks of the body count from 0.
            body = found.startIndex == 0 ? found : Data(found)
        }
        let now = cache.now
        let trace = TraceRecord(name: cache.configuration.name, result, answer: answer, at: now, isShared: isShared)
        if let outcome {
            trace.receive(status: outcome.status)
            trace.finish(outcome.reason, isStored: outcome.isStored)
        }
        cache.shared.count(result, answer, bytes: body.count, outcome: outcome?.reason)
        let head = ResponseHead(
            status: answer.status, version: answer.entry.properties.version, target: exchange.target,
            reason: answer.status == answer.entry.status ? answer.entry.properties.reasonPhrase : "",
            headers: answer.headers)
        // Bytes that cannot be decompressed would be an error for each reader until the response is stale.
        let stored = StoredBody(bytes: body, start: start, exchange: outcome?.metrics) {
            [store, cache, entry = answer.entry] in
            let number = cache.shared.beginWrite()
            // Ends with the removal.
            Task {
                await store.remove([entry])
                await cache.secondLevel?.remove([entry.key])
                cache.shared.endWrite(number)
            }
        }
        return exchange.answer(head.traced(by: trace), body: stored)
    }

    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data? {
        if let body = store.bodyNow(of: entry, range: range) { return body }
        return await store.body(of: entry, range: range)
    }
}

extension NetworkExchange {
    /// The error of a cancelled task.
    var wasCancelled: NetworkError { error(.cancelled, "the task was cancelled") }
}
