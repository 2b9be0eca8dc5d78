public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
