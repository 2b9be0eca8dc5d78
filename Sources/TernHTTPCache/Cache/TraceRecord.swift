import Tern
import TernConcurrency

/// The record of how the cache handles one response, while that happens. The public trace is made when it is read.
final class TraceRecord: CacheTraceSource {
    private struct State {
        var handling: CacheHandling
        var storing: CacheReason?
    }

    private let name: String
    private let age: Duration?
    private let source: CacheTrace.Source
    private let state: Lock<State>

    /// Creates the record of a request that is sent.
    init(name: String, _ result: CacheHandling.Result) {
        self.name = name
        age = nil
        source = .network
        state = Lock(State(handling: CacheHandling(result: result)))
    }

    /// Creates the record of a stored response.
    init(name: String, _ result: CacheHandling.Result, answer: CacheAnswer, at now: CacheTime, isShared: Bool) {
        self.name = name
        age = answer.age
        if answer.isValidated {
            source = .validated
        } else {
            source = answer.entry.isFresh(at: now) ? .stored : .stale
        }
        var handling = CacheHandling(result: result)
        handling.isCollapsed = isShared
        let freshness = answer.entry.freshness
        if freshness.basis != .none { handling.timeToLive = freshness.lifetime - freshness.age(at: now) }
        state = Lock(State(handling: handling))
    }

    /// Records the status of the server's response.
    func receive(status: Int?) { state.withLock { $0.handling.forwardedStatus = status } }

    /// Records the result of storing.
    func record(_ reason: CacheReason, isStored: Bool) {
        state.withLock { state in
            state.storing = reason
            state.handling.outcome = reason
            state.handling.isStored = isStored
        }
    }

    var trace: CacheTrace {
        let state = state.withLock { $0 }
        let handling = state.handling
        let reason =
            switch handling.result {
            case .hit(let reason), .forwarded(let reason), .staleAfterError(let reason, _): reason
            }
        return CacheTrace(
            source: source, reason: reason.rawValue, explanation: reason.text, storing: state.storing?.rawValue,
            isStored: handling.isStored, isShared: handling.isCollapsed, age: age, timeToLive: handling.timeToLive,
            cacheStatus: handling.text(name: name))
    }
}
