import Tern
import TernCache
import Testing

@testable import TernHTTPCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An origin's answer to one request.
struct OriginAnswer: Sendable {
    var status = 200
    var headers: Headers
    var body: String
    /// The number of bytes that arrive before the connection is lost; nil for all.
    var cutAfter: Int?

    init(_ status: Int = 200, _ headers: Headers = [:], _ body: String = "body", cutAfter: Int? = nil) {
        self.status = status
        self.headers = headers
        self.body = body
        self.cutAfter = cutAfter
    }
}

/// The response that a caller receives, and how it came about.
struct SimulatedResponse: Sendable {
    var status: Int
    var headers: Headers
    var body: String
    /// The requests that reached the origin, with the fields that it received.
    var forwarded: [Headers]
    var reason: CacheReason
    var outcome: CacheReason?
    /// Whether the cache would refresh the response in the background.
    var refreshes = false

    /// Whether the origin saw nothing of the request.
    var isCached: Bool { forwarded.isEmpty }
    /// Whether the body came from the store after the origin's confirmation.
    var isValidated: Bool { outcome == .validated || isConfirmed }
    /// Whether the origin confirmed the response, which is not stored after that.
    var isConfirmed = false
}

/// Performs exchanges by the decisions of a `CachePolicy`, with a store in memory, a clock that the test sets, and an
/// origin that is a closure.
final class CacheSimulator {
    /// The failure of a request whose origin cannot be reached.
    struct Unreachable: Error {}
    /// The failure of a request that must not be sent.
    struct NotStored: Error { let reason: CacheReason }

    var policy = CachePolicy()
    var now: CacheTime
    let store = MemoryEntryStore(MemoryCacheConfiguration(), entryLimit: 1 << 20)
    /// The time that each exchange takes.
    var delay = Duration.zero
    private var lastID: UInt64 = 0

    /// Sun, 06 Nov 1994 08:49:37 GMT
    static let start = CacheTime(milliseconds: 784_111_777_000)

    init() { now = Self.start }

    func advance(_ seconds: Int64) { now = CacheTime(milliseconds: now.milliseconds + seconds * 1_000) }

    /// Returns a date relative to the present.
    func date(_ seconds: Int64 = 0) -> String {
        HTTPDate.text(from: Date(timeIntervalSince1970: Double(now.milliseconds / 1_000 + seconds)))
    }

    func request(
        _ method: String = "GET", _ url: String = "http://example.com/a", _ headers: Headers = [:],
        choice: Request.CacheChoice = .useProtocol, credentials: String? = nil, partition: String = "",
        trust: String = ""
    ) throws -> CacheRequest {
        let key = CacheKey(
            try Target(absolute: url), method: Request.Method(method), trust: trust, partition: partition)
        return CacheRequest(key: key, headers: headers, choice: choice, credentials: credentials)
    }

    /// Sends a GET request with fields, and answers it with a fixed response if it reaches the origin.
    @discardableResult
    func get(_ headers: Headers, _ answer: OriginAnswer) throws -> SimulatedResponse {
        try send(try request("GET", "http://example.com/a", headers)) { _ in answer }
    }

    /// Sends a GET request without fields.
    @discardableResult
    func get(_ answer: OriginAnswer) throws -> SimulatedResponse { try get([:], answer) }

    /// Sends a GET request to a URL.
    @discardableResult
    func get(url: String, _ answer: OriginAnswer) throws -> SimulatedResponse {
        try send(try request("GET", url)) { _ in answer }
    }

    /// Performs one request from call to response.
    @discardableResult
    func send(_ request: CacheRequest, _ origin: (Headers) throws -> OriginAnswer) throws -> SimulatedResponse {
        var methods = [request.key]
        if request.isHead { methods.append(request.key.with(method: "GET")) }
        let entries = methods.flatMap { store.found(for: $0) }
        let decision = policy.decide(request, entries: entries, now: now)
        switch decision.action {
        case .refuse: throw NotStored(reason: decision.reason)
        case .serve(let answer):
            if let response = response(answer, reason: decision.reason) { return response }
            throw NotStored(reason: .incomplete)
        case .serveStale(let answer, let refreshes):
            guard var response = response(answer, reason: decision.reason) else { throw NotStored(reason: .incomplete) }
            response.refreshes = refreshes
            return response
        case .fetch:
            return try exchange(request, sent: nil, entries: entries, reason: decision.reason, origin)
        case .revalidate(let conditioned, let condition):
            return try exchange(
                request, sent: (conditioned, condition), entries: entries, reason: decision.reason, origin)
        }
    }

    private func exchange(
        _ request: CacheRequest, sent: (entries: [CacheEntry], CacheCondition)?, entries: [CacheEntry],
        reason: CacheReason, _ origin: (Headers) throws -> OriginAnswer
    ) throws -> SimulatedResponse {
        let fields = request.headers.overriding(with: request.additions(sent?.1, isRefresh: false))
        let generation = store.generation
        let requestTime = now
        let answer: OriginAnswer
        do {
            answer = try origin(fields)
        } catch is Unreachable {
            guard let stale = policy.staleAnswer(to: request, entries: entries, status: nil, now: now),
                var response = response(stale, reason: reason)
            else { throw Unreachable() }
            response.forwarded = [fields]
            response.outcome = stale.entry.directives.staleIfError == nil ? .disconnected : .staleIfError
            return response
        }
        now = CacheTime(milliseconds: now.milliseconds + delay.components.seconds * 1_000)
        let head = CacheResponse(
            status: answer.status, headers: answer.headers, requestTime: requestTime, responseTime: now)
        lastID += 1
        let decision = policy.decide(after: head, to: request, sent: sent, entries: entries, id: lastID)
        let body = request.isHead || answer.status == 304 || answer.status == 204 ? "" : answer.body
        var response = SimulatedResponse(
            status: answer.status, headers: answer.headers, body: body, forwarded: [fields], reason: reason,
            outcome: decision.reason)
        switch decision.action {
        case .store(let entry, let replacing):
            let arrived = answer.cutAfter.map { String(body.prefix($0)) } ?? body
            response.body = arrived
            let finished = CachePolicy.finish(
                entry, received: Int64(arrived.utf8.count), isComplete: answer.cutAfter == nil)
            if let finished {
                store.insertNow(finished, body: Data(arrived.utf8), replacing: replacing, generation: generation)
            } else {
                response.outcome = .incomplete
            }
        case .update(let updated, let answer):
            store.updateNow(updated, generation: generation)
            if let answer, var served = self.response(answer, reason: reason) {
                served.forwarded = [fields]
                served.outcome = decision.reason
                response = served
            }
        case .answer(let answer, let removed):
            if var served = self.response(answer, reason: reason) {
                served.forwarded = [fields]
                served.outcome = decision.reason
                response = served
            }
            removeNow(removed)
        case .combine(let combination):
            let stored =
                store.bodyNow(
                    of: combination.stored, range: 0..<combination.stored.properties.storedLength) ?? Data()
            var whole = Data()
            for piece in combination.pieces {
                switch piece {
                case .stored(let range): whole += Array(stored)[Int(range.lowerBound)..<Int(range.upperBound)]
                case .received(let range): whole += Array(body.utf8)[Int(range.lowerBound)..<Int(range.upperBound)]
                }
            }
            if combination.obstacle == nil {
                store.insertNow(
                    combination.entry, body: whole, replacing: [combination.stored], generation: generation)
            } else {
                removeNow([combination.stored])
            }
            if combination.answersCaller, let form = CacheAnswer.form(of: combination.entry, for: request, now: now),
                var served = self.response(
                    CacheAnswer(combination.entry, form: form, to: request, at: now, isValidated: true),
                    reason: reason, body: whole)
            {
                served.forwarded = [fields]
                served.outcome = decision.reason
                response = served
            }
        case .invalidate(let invalidation):
            invalidateNow(invalidation)
        case .serveStale(let answer):
            if var served = self.response(answer, reason: reason) {
                served.forwarded = [fields]
                served.outcome = decision.reason
                return served
            }
        case .refetch:
            var again = try exchange(request, sent: nil, entries: entries, reason: reason, origin)
            again.forwarded.insert(fields, at: 0)
            return again
        case .passThrough(let outdated):
            removeNow(outdated)
        }
        return response
    }

    private func removeNow(_ entries: [CacheEntry]) { store.removeNow(entries) }

    private func invalidateNow(_ invalidation: CacheInvalidation) { store.invalidateNow(invalidation) }

    /// - Parameter body: The whole body; nil to read it from the store.
    private func response(_ answer: CacheAnswer, reason: CacheReason, body given: Data? = nil) -> SimulatedResponse? {
        var body = ""
        if let range = answer.body {
            guard let data = given ?? store.bodyNow(of: answer.entry, range: range) else { return nil }
            body = String(decoding: data, as: UTF8.self)
        }
        return SimulatedResponse(
            status: answer.status, headers: answer.headers, body: body, forwarded: [], reason: reason,
            isConfirmed: answer.isValidated && !answer.isStored)
    }
}
