import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CacheExchange {
    // MARK: The network

    /// The circumstances in which a request is sent.
    struct Forwarding: Sendable {
        /// The exchange, with the time that is left.
        var exchange: NetworkExchange
        /// The reason why the request is sent.
        let reason: CacheReason
        /// The entries that the store found for the request.
        var entries: [CacheEntry]
        /// The key of the requests that wait for the response.
        let key: SharingKey
        /// The exchange that identical requests wait for; nil if the response cannot be shared. If it is released
        /// without an end, it ends as `.abandoned`.
        let sender: SharedExchange?
        /// Offers the response to other processes; nil if it is not for them.
        let offer: SharedOffer?

        /// Returns the same with other entries, after those that were found turned out not to be usable.
        func with(_ entries: [CacheEntry]) -> Forwarding {
            var other = self
            other.entries = entries
            return other
        }
    }

    /// A response from the network, with the decision about it. A class, because several steps pass it on, and a copy
    /// would count 27 references.
    final class Received: Sendable {
        let response: IncomingResponse
        let decision: CachePolicy.ResponseDecision
        /// The number of the request among all requests and invalidations of the store.
        let generation: UInt64
        let trace: TraceRecord
        let forwarding: Forwarding
        /// The time at which the request was sent, in nanoseconds of `MonotonicClock`.
        let began: UInt64

        init(
            response: IncomingResponse, decision: CachePolicy.ResponseDecision, generation: UInt64,
            trace: TraceRecord, forwarding: Forwarding, began: UInt64
        ) {
            self.response = response
            self.decision = decision
            self.generation = generation
            self.trace = trace
            self.forwarding = forwarding
            self.began = began
        }

        /// The circumstances in which another request is sent after this response, with the time that is left.
        var next: Forwarding {
            var next = forwarding
            next.exchange = next.exchange.spending(since: began)
            return next
        }

        var status: Int { response.head.status }

        /// Tells those who wait for the response how it ended for them.
        func end(_ end: SharingEnd) { forwarding.sender?.end(end) }
    }

    /// Sends the request, and acts on its response.
    ///
    /// - Parameter sent: The condition to send with the request; nil for none.
    func send(
        _ sent: Condition?, _ forwarding: Forwarding
    ) async throws(NetworkError) -> IncomingResponse {
        let (sender, entries) = (forwarding.sender, forwarding.entries)
        let generation = store.beginRequest()
        let began = MonotonicClock.nanoseconds()
        let response: IncomingResponse
        do throws(NetworkError) {
            let exchange = forwarding.exchange
            let fields = request.additions(sent?.1, isRefresh: exchange.isRefresh)
            response = try await exchange.send(
                adding: fields, onHead: sender.map { headCheck(sent, forwarding, of: $0) })
        } catch {
            // A cancelled request says nothing about the server.
            sender?.end(error.isCancelled ? .abandoned : .notShared)
            if let head = error.response { await invalidate(after: self.head(of: head, since: began)) }
            if let stale = await stale(after: error, entries: entries, reason: forwarding.reason) { return stale }
            throw error
        }
        let head = head(of: response.head, since: began)
        if forwarding.exchange.isRefresh, RetryPolicy().statuses.contains(head.status),
            let delay = RetryAfter.delay(in: head.headers, now: cache.configuration.now())
        {
            await cache.pauseRefreshes(of: request.key, for: delay)
        }
        let decision = cache.policy.decide(
            after: head, to: request, sent: sent, entries: entries, id: cache.shared.nextID())
        let trace = TraceRecord(name: cache.configuration.name, .forwarded(forwarding.reason))
        trace.receive(status: head.status)
        let received = Received(
            response: response, decision: decision, generation: generation, trace: trace, forwarding: forwarding,
            began: began)
        switch decision.action {
        case .store(let entry, let replacing):
            return try await store(entry, replacing: replacing, received)
        case .update(let entries, let answer):
            return try await update(received, entries: entries, answer: answer)
        case .answer(let answer, let removed):
            return try await update(received, entries: [], answer: answer, removing: removed)
        case .combine(let combination):
            return try await combine(combination, received)
        case .invalidate(let invalidation):
            await invalidate(invalidation)
            return deliver(received, outcome: decision.reason)
        case .serveStale(let answer):
            sender?.end(.notShared)
            return await stale(answer, after: received) ?? deliver(received, outcome: .errorStatus)
        case .refetch:
            await response.readRest()
            return try await send(nil, received.next)
        case .passThrough(let outdated):
            noteUnstorable(forwarding)
            sender?.end(.notShared)
            for entry in outdated { store.outdateEarlier(than: entry, generation: generation) }
            if !outdated.isEmpty { await discard(outdated) }
            return deliver(received, outcome: decision.reason)
        }
    }

    /// Returns a function that ends the wait of equal requests as soon as the head tells that the response is not
    /// stored. The body of a response that is collected can take much longer. The decision is made early only if a
    /// request waits.
    private func headCheck(
        _ sent: Condition?, _ forwarding: Forwarding, of sender: SharedExchange
    ) -> @Sendable (ResponseHead) -> Void {
        let began = MonotonicClock.nanoseconds()
        // Not the circumstances as a whole: they have the sender, which would then keep itself, and never be abandoned.
        let (entries, key, reason) = (forwarding.entries, forwarding.key, forwarding.reason)
        return { [weak sender] head in
            sender?.whenAwaited { [weak sender] in
                let decision = cache.policy.decide(
                    after: self.head(of: head, since: began), to: request, sent: sent, entries: entries,
                    id: cache.shared.nextID())
                let isTooLarge = (head.contentLength ?? 0) > Int64(store.entryLimit)
                let isShared =
                    switch decision.action {
                    case .passThrough: false
                    case .store: !isTooLarge
                    case .combine(let combination): combination.obstacle == nil
                    default: true
                    }
                if isShared { return }
                noteUnstorable(key, after: reason)
                sender?.end(.notShared)
            }
        }
    }

    /// Returns the stale response that takes the place of an error; nil if none may.
    ///
    /// - Parameter reason: The reason why the request was sent; nil if it was not.
    func stale(
        after error: NetworkError, entries: [CacheEntry], reason: CacheReason? = nil
    ) async -> IncomingResponse? {
        // RFC 5861 §4.
        guard NetworkError.Kind.outages.contains(error.kind),
            let answer = cache.policy.staleAnswer(to: request, entries: entries, status: nil, now: cache.now)
        else { return nil }
        let outcome = answer.entry.directives.staleIfError == nil ? CacheReason.disconnected : .staleIfError
        return await serve(answer, reason.map { .staleAfterError(outcome, forwarded: $0) } ?? .hit(outcome))
    }

    /// Removes what an unsafe request invalidates although its response failed: its head arrived (RFC 9111 §4.4).
    private func invalidate(after head: CacheResponse) async {
        guard case .invalidate(let invalidation) = CachePolicy.invalidation(after: head, to: request).action else {
            return
        }
        await invalidate(invalidation)
    }

    private func invalidate(_ invalidation: CacheInvalidation) async {
        await cache.invalidate(invalidation.forScopes(of: exchange), in: store)
    }

    /// Returns the head with its times. The duration of the exchange is that of a clock that never jumps.
    private func head(of head: ResponseHead, since began: UInt64) -> CacheResponse {
        let responseTime = cache.now
        let duration = Int64(clamping: (MonotonicClock.nanoseconds() &- began) / 1_000_000)
        return CacheResponse(
            status: head.status, version: head.version, reasonPhrase: head.reasonPhrase, headers: head.headers,
            requestTime: CacheTime(milliseconds: responseTime.milliseconds - duration), responseTime: responseTime)
    }

    func deliver(
        _ received: Received, outcome: CacheReason? = nil, recorder: BodyRecording? = nil
    ) -> IncomingResponse {
        if let outcome { received.trace.record(outcome, isStored: false) }
        cache.shared.countMiss()
        var response = received.response
        response.head = response.head.traced(by: received.trace)
        guard let recorder else { return response }
        if response.isOpen { return response.recording(to: recorder) }
        recorder.takeWhole(response.wholeBody)
        return response
    }

    /// Ends the response of a server that failed, and returns a stale one; nil if its body is not in the store any
    /// more.
    private func stale(_ answer: CacheAnswer, after received: Received) async -> IncomingResponse? {
        var body = Data()
        if let range = answer.body {
            guard let found = await self.body(of: answer.entry, range: range) else { return nil }
            body = found
        }
        let end = await received.response.readRest()
        let outcome = Outcome(
            status: received.status, reason: .staleIfError, isStored: false, metrics: end?.metrics)
        let result = CacheHandling.Result.staleAfterError(.staleIfError, forwarded: received.forwarding.reason)
        return await serve(answer, result, outcome: outcome, body: body)
    }

    /// Removes outdated entries here, and then in the second level.
    func discard(_ entries: [CacheEntry]) async {
        await store.remove(entries)
        cache.secondLevel?.discard(entries)
    }

    /// Notes that equal requests need not wait for a response like this one.
    func noteUnstorable(_ forwarding: Forwarding) {
        noteUnstorable(forwarding.key, after: forwarding.reason)
    }

    private func noteUnstorable(_ key: SharingKey, after reason: CacheReason) {
        if isSharable(reason) { cache.shared.noteUnstorable(key, at: cache.now) }
    }
}

extension CacheInvalidation {
    /// Returns an invalidation for each scope of the session, because a path can have cookies that another has not.
    func forScopes(of exchange: NetworkExchange) -> [CacheInvalidation] {
        guard let own = keys.first else { return [] }
        let others = exchange.registry.cacheScopes.filter { $0.partition != own.partition || $0.trust != own.trust }
        return [self]
            + others.map { scope in
                let keys = keys.map { $0.with(partition: scope.partition, trust: scope.trust) }
                return CacheInvalidation(keys: keys, groups: groups)
            }
    }
}
