#if os(Linux)
import TernConcurrency
import TernEngine

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The failures of the engine as those of an attempt.
extension EngineAttempt {
    private var host: String { "\(attempt.request.target.host):\(attempt.request.target.port)" }

    /// Returns the failure of an exchange; nil for a whole response. A failure of the attempt's own comes first.
    func failure(for error: EngineError?, isDeadConnection: Bool) -> FailureCause? {
        // Most exchanges, without a copy.
        if error == nil, failure == nil { return nil }
        if let failure { return failure }
        guard let error else { return nil }
        if isDeadConnection {
            return FailureCause(
                .connectionLost,
                "\(host) closed a kept-alive connection while the request was sent on it; the server may have acted",
                isDeadPooledConnection: true)
        }
        return failure(for: error)
    }

    private func failure(for error: EngineError) -> FailureCause {
        switch error.kind {
        case .truncatedBody:
            return FailureCause(.truncatedBody, "the body from \(host) ended after \(receivedText)")
        case .connectionLost where head != nil:
            let reason = "the connection to \(host) was lost after \(receivedText): \(error.reason)"
            return FailureCause(.connectionLost, reason, http2Code: error.http2Code)
        case .connectionLost where error.code == ETIMEDOUT:
            let reason = "the connection to \(host) was lost; the server may have acted: \(error.reason)"
            return FailureCause(.connectionLost, reason, http2Code: error.http2Code)
        case .connectionLost:
            let reason = "\(host) closed the connection without a response; the server may have acted: \(error.reason)"
            return FailureCause(.connectionLost, reason, http2Code: error.http2Code)
        case .notProcessed:
            let reason = "\(host) did not process the request: \(error.reason)"
            return FailureCause(.connectionLost, reason, wasNotProcessed: true, http2Code: error.http2Code)
        case .malformedResponse:
            return FailureCause(.malformedResponse, "the response from \(host) is malformed: \(error.reason)")
        case .outOfDescriptors:
            return FailureCause(.connectionFailed, error.reason, underlying: OutOfDescriptors())
        default:
            return FailureCause(Self.kind(error.kind), error.reason, http2Code: error.http2Code)
        }
    }

    static func kind(_ kind: EngineError.Kind) -> NetworkError.Kind {
        switch kind {
        case .dns: .dns
        case .connectionRefused: .connectionRefused
        case .connectionFailed, .outOfDescriptors: .connectionFailed
        case .connectTimedOut: .connectTimedOut
        case .proxy: .proxy
        case .tls: .tls
        case .untrustedServer: .untrustedServer
        case .refusedByPolicy: .pinMismatch
        case .malformedResponse: .malformedResponse
        case .tooLarge: .tooLarge
        case .connectionLost, .notProcessed: .connectionLost
        case .truncatedBody: .truncatedBody
        case .invalidRequest: .invalidRequest
        case .cancelled: .cancelled
        }
    }

    /// Returns the failure of an attempt that has reached a time limit.
    func timeout(_ phase: Timeouts.Phase) -> FailureCause {
        switch phase {
        case .connect:
            return FailureCause(
                .connectTimedOut, "no connection to \(host) within \(Self.text(attempt.request.timeouts.connect))")
        case .queue:
            let limit = attempt.request.timeouts.queue ?? .seconds(30)
            let count = exchange.flatMap { table.pool.connectionsInUse(for: $0).count } ?? 0
            let use = count == 0 ? "the session's connections are in use" : "\(count) are in use"
            return FailureCause(
                .queueTimedOut, "no connection to \(host) was free for \(limit); \(use); nothing was sent")
        case .idle:
            let limit = Self.text(attempt.request.timeouts.idle)
            return FailureCause(
                .idleTimedOut, "no byte moved to or from \(host) for \(limit), after \(receivedText)")
        case .attempt:
            let limit = Self.text(attempt.request.timeouts.attempt)
            return FailureCause(
                .attemptTimedOut, "the attempt was not done within \(limit), after \(receivedText) from \(host)")
        case .total:
            let limit = Self.text(attempt.request.timeouts.total)
            return FailureCause(.totalTimedOut, "not done within \(limit), after \(receivedText) from \(host)")
        }
    }

    private static func text(_ limit: Duration?) -> String { limit.map { "\($0)" } ?? "its limit" }
}
#endif
