import TernConcurrency

/// The failure of an attempt, before the session adds the request and the response to it.
///
/// A class, because every stage of an attempt passes an optional one on, which most often is nil.
package final class FailureCause: Error {
    package let kind: NetworkError.Kind
    /// A sentence without secrets that says what happened, and with which host.
    package let reason: String
    package let underlying: (any Error)?
    /// Whether a pooled connection was dead before any byte of the response arrived. Only then does the session itself
    /// send a safe request again.
    package let isDeadPooledConnection: Bool
    /// Whether the server stated that it has not processed the request. Then a request of any method is sent again, if
    /// its body can be (RFC 9113 §8.7).
    package let wasNotProcessed: Bool
    /// The error code of HTTP/2 with which the server reset the stream or ended the connection; nil without one.
    package let http2Code: UInt32?

    package init(
        _ kind: NetworkError.Kind, _ reason: String, underlying: (any Error)? = nil,
        isDeadPooledConnection: Bool = false, wasNotProcessed: Bool = false, http2Code: UInt32? = nil
    ) {
        self.kind = kind
        self.reason = reason
        self.underlying = underlying
        self.isDeadPooledConnection = isDeadPooledConnection
        self.wasNotProcessed = wasNotProcessed
        self.http2Code = http2Code
    }

    /// Returns the failure of a collected response whose body exceeds the limit in bytes.
    package static func bodyTooLarge(limit: Int) -> FailureCause {
        FailureCause(
            .tooLarge, "the body of the response has more than \(limit) bytes: stream it, or raise maximumBodySize")
    }

    /// Returns the failure of a request whose time was over while it waited for the response to an equal one.
    package static func waitingTimedOut(_ limit: Timeouts.Phase) -> FailureCause {
        let (kind, name): (NetworkError.Kind, _) =
            limit == .attempt ? (.attemptTimedOut, "limit of one attempt") : (.totalTimedOut, "total limit")
        return FailureCause(kind, "the time \(name) passed while the request waited for an identical request")
    }

    package static let cancelled = FailureCause(.cancelled, "the task was cancelled")

    /// Returns the same failure with the error that caused it.
    func caused(by error: any Error) -> FailureCause {
        FailureCause(
            kind, reason, underlying: error, isDeadPooledConnection: isDeadPooledConnection,
            wasNotProcessed: wasNotProcessed, http2Code: http2Code)
    }
}

/// The error of a process or a system without a free descriptor (EMFILE, ENFILE), and without an idle connection that
/// could be closed. It is not retried: the wait before a retry can need a descriptor, too. On a clock other than
/// `ContinuousClock`, the runtime's timer ends the process then.
struct OutOfDescriptors: Error, CustomStringConvertible {
    var description: String { "no descriptor is free" }
}

extension NetworkError {
    /// Whether a connection or a file could not be opened because the process or the system has no free descriptor.
    package var isOutOfDescriptors: Bool {
        if let failure = underlying as? FileFailure { return SpareDescriptors.isLack(failure.code) }
        return underlying is OutOfDescriptors
    }
}
