import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CacheExchange {
    // MARK: The network

    /// The errors after which a stale response may be used: the server could not be reached, or did not answer (RFC 5861
    /// §4).
    private static let disconnections: Set<NetworkError.Kind> = [
        .dns, .proxy, .connectionRefused, .connectionFailed, .connectTimedOut, .idleTimedOut, .totalTimedOut,
        .connectionLost,
    ]

    /// Sends the request, and acts on its response.
    ///
    /// - Parameters:
    ///   - reason: The reason why the request is sent.
    ///   - sender: Those who wait for the response; nil if nobody can.
    func send(
        _ sent: Condition?, entries: [CacheEntry], _ reason: CacheReason, through exchange: NetworkExchange,
        sender: SharedExchange?
    ) async throws(NetworkError) -> IncomingResponse {
        let generation = store.generation
        let began = MonotonicClock.nanoseconds()
        let response: IncomingResponse
        do throws(NetworkError) {
            response = try await exchange.send(adding: sent?.1.headers ?? [:])
        } catch {
            // A cancelled request says nothing about the server.
            if !error.isCancelled { sender?.end(.notShared) }
            if Self.disconnections.contains(error.kind),
                let answer = cache.policy.staleAnswer(to: request, entries: entries, status: nil, now: cache.now)
            {
                let outcome = answer.entry.directives.staleIfError == nil ? CacheReason.disconnected : .staleIfError
                if let stale = await serve(answer, .hit(outcome)) { return stale }
            }
            throw error
        }
        let head = head(of: response.head, since: began)
        let decision = cache.policy.decide(
            after: head, to: request, sent: sent, entries: entries, id: cache.shared.nextID())
        let trace = TraceRecord(name: cache.configuration.name, .forwarded(reason))
        trace.receive(status: head.status)
        let arrival = Arrived(response: response, decision: decision, generation: generation, trace: trace)
        switch decision.action {
        case .store(let entry, let replacing):
            return try await store(entry, replacing: replacing, arrival, sender: sender)
        case .update(let entries, let answer, let isKept):
            return try await update(entries, answer, isKept: isKept, arrival, reason, exchange, sender)
        case .combine(let combination) where combination.answersCaller:
            return try await complete(combination, arrival, reason, exchange, sender)
        case .combine(let combination):
            let recorder = BodyRecording(
                .combination(combination), arrival, cache: cache, store: store, sender: sender)
            return deliver(arrival, recorder: recorder)
        case .invalidate(let invalidation):
            await store.invalidate(invalidation)
            return deliver(arrival, outcome: decision.reason)
        case .serveStale(let answer):
            sender?.end(.notShared)
            guard let range = answer.body else { return await stale(answer, nil, arrival) ?? deliver(arrival) }
            guard let body = await body(of: answer.entry, range: range) else {
                return deliver(arrival, outcome: .errorStatus)
            }
            return await stale(answer, body, arrival) ?? deliver(arrival)
        case .refetch:
            await response.readRest()
            return try await send(nil, entries: entries, reason, through: exchange, sender: sender)
        case .passThrough(let outdated):
            sender?.end(.notShared)
            if !outdated.isEmpty { await store.remove(outdated) }
            return deliver(arrival, outcome: decision.reason)
        }
    }

    /// A response from the network with the decision about it.
    struct Arrived: Sendable {
        let response: IncomingResponse
        let decision: CachePolicy.ResponseDecision
        /// The number of invalidations when the request was sent.
        let generation: UInt64
        let trace: TraceRecord
    }

    /// Returns the head with its times. The duration of the exchange is that of a clock that never jumps.
    private func head(of head: ResponseHead, since began: UInt64) -> CacheResponse {
        let responseTime = cache.now
        let duration = Int64(clamping: (MonotonicClock.nanoseconds() &- began) / 1_000_000)
        return CacheResponse(
            status: head.status, version: head.version, reasonPhrase: head.reasonPhrase, headers: head.headers,
            requestTime: CacheTime(milliseconds: responseTime.milliseconds - duration), responseTime: responseTime)
    }

    private func deliver(
        _ arrival: Arrived, outcome: CacheReason? = nil, recorder: BodyRecording? = nil
    ) -> IncomingResponse {
        if let outcome { arrival.trace.finish(outcome, isStored: false) }
        cache.shared.countMiss()
        var response = arrival.response
        response.head = response.head.traced(by: arrival.trace)
        return recorder.map { response.recording(to: $0) } ?? response
    }

    /// Ends the response of a server that failed, and returns a stale one.
    private func stale(_ answer: CacheAnswer, _ body: Data?, _ arrival: Arrived) async -> IncomingResponse? {
        await arrival.response.readRest()
        return await serve(
            answer, .hit(.staleIfError), outcome: (arrival.response.head.status, .staleIfError), body: body)
    }

    // MARK: Storing

    /// Stores a response while it is delivered.
    private func store(
        _ entry: CacheEntry, replacing: [CacheEntry], _ arrival: Arrived, sender: SharedExchange?
    ) async throws(NetworkError) -> IncomingResponse {
        var entry = entry
        do throws(NetworkError) {
            if let choice = try await exchange.storing(of: arrival.response.head) {
                guard choice.isAllowed else {
                    sender?.end(.notShared)
                    await store.remove(replacing)
                    return deliver(arrival, outcome: .policy)
                }
                entry = entry.changing { properties in
                    properties.lifetimeLimit = choice.maximumLifetime
                    properties.userInfo = Self.limited(choice.userInfo)
                }
            }
        } catch {
            sender?.end(.notShared)
            await arrival.response.discard()
            throw error
        }
        if exchange.deliversDecodedBodies { entry = entry.withoutCoding }
        if entry.properties.storedLength > cache.entryByteLimit {
            sender?.end(.notShared)
            await store.remove(replacing)
            return deliver(arrival, outcome: .bodyTooLarge)
        }
        // A reader that reads at its own pace does not hold up others.
        if arrival.response.isOpen, !exchange.isCollected { sender?.end(.notShared) }
        let recorder = BodyRecording(
            .response(entry, replacing: replacing), arrival, cache: cache, store: store, sender: sender)
        if !arrival.response.isOpen {
            recorder.takeWhole(arrival.response.wholeBody)
            return deliver(arrival)
        }
        return deliver(arrival, recorder: recorder)
    }

    private static func limited(_ userInfo: [String: String]) -> [String: String] {
        let sorted = userInfo.sorted { $0.key < $1.key }.prefix(CacheEntry.userInfoLimit)
        return Dictionary(uniqueKeysWithValues: sorted.map { ($0.key, $0.value) })
    }

    /// Updates entries after 304 or after a response to HEAD, and answers with one of them.
    private func update(
        _ entries: [CacheEntry], _ answer: CacheAnswer?, isKept: Bool, _ arrival: Arrived, _ reason: CacheReason,
        _ exchange: NetworkExchange, _ sender: SharedExchange?
    ) async throws(NetworkError) -> IncomingResponse {
        await store.update(entries)
        guard let answer else { return deliver(arrival, outcome: arrival.decision.reason) }
        await arrival.response.readRest()
        let served = await serve(
            answer, .forwarded(reason), outcome: (arrival.response.head.status, arrival.decision.reason))
        if !isKept { await store.remove(entries) }
        guard let served else {
            // The body was evicted after the look-up.
            return try await send(nil, entries: [], reason, through: exchange, sender: sender)
        }
        sender?.end(isKept ? .stored : .notShared)
        return served
    }

    /// Completes a stored part by the received one, and answers with the whole.
    private func complete(
        _ combination: CacheCombination, _ arrival: Arrived, _ reason: CacheReason, _ exchange: NetworkExchange,
        _ sender: SharedExchange?
    ) async throws(NetworkError) -> IncomingResponse {
        let own = combination.stored.properties.storedLength
        let stored = await body(of: combination.stored, range: 0..<own)
        let received = await arrival.response.readBody(upTo: cache.entryByteLimit, within: nil)
        if exchange.isCancelled { throw exchange.error(.cancelled, "the task was cancelled") }
        guard let stored, let received, let whole = combination.body(stored: stored, received: received),
            let form = CacheAnswer.form(of: combination.entry, for: request, now: cache.now)
        else { return try await send(nil, entries: [], reason, through: exchange, sender: sender) }
        let isStored = await store.insert(
            combination.entry, body: whole, replacing: [combination.stored], generation: arrival.generation)
        sender?.end(isStored ? .stored : .notShared)
        let answer = CacheAnswer(combination.entry, form: form, to: request, at: cache.now, isValidated: true)
        let outcome = (status: Int?.some(206), arrival.decision.reason)
        guard let served = await serve(answer, .forwarded(reason), outcome: outcome, body: whole) else {
            return try await send(nil, entries: [], reason, through: exchange, sender: nil)
        }
        return served
    }
}

extension CacheCombination {
    /// Returns the combined bytes; nil if bytes are missing.
    func body(stored: Data, received: Data) -> Data? {
        var whole = Data()
        for piece in pieces {
            let (source, range) =
                switch piece {
                case .stored(let range): (stored, range)
                case .received(let range): (received, range)
                }
            guard range.upperBound <= Int64(source.count) else { return nil }
            let start = source.startIndex
            whole += source[start + Int(range.lowerBound)..<start + Int(range.upperBound)]
        }
        return Int64(whole.count) == entry.properties.storedLength ? whole : nil
    }
}

extension CacheEntry {
    /// The entry of a body that was decompressed before it came to the cache.
    var withoutCoding: CacheEntry {
        guard headers.contains("Content-Encoding") else { return self }
        return changing { properties in
            properties.headers.remove("Content-Encoding")
            properties.headers.remove("Content-Length")
        }
    }
}
