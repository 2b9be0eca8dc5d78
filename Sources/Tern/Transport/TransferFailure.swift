/// Why an attempt failed, before the session adds the request and the response to it.
package struct TransferFailure: Error {
    package var kind: NetworkError.Kind
    /// A sentence without secrets: what happened, and with whom.
    package var reason: String
    package var underlying: (any Error)?
    /// A pooled connection was found dead before any byte of the response: the one case in which the session itself may
    /// send a safe request again.
    package var isDeadPooledConnection = false

    package init(_ kind: NetworkError.Kind, _ reason: String, underlying: (any Error)? = nil) {
        self.kind = kind
        self.reason = reason
        self.underlying = underlying
    }

    /// Returns the failure of a collected response whose body exceeds the limit in bytes.
    package static func bodyTooLarge(limit: Int) -> TransferFailure {
        TransferFailure(
            .tooLarge, "the body of the response has more than \(limit) bytes: stream it, or raise maximumBodySize")
    }

    package static let cancelled = TransferFailure(.cancelled, "the task was cancelled")
}

/// The process or the system has no free descriptor (EMFILE, ENFILE). Such a failure is not retried: a wait needs a
/// descriptor, too, and without one the runtime's timer ends the process.
struct OutOfDescriptors: Error, CustomStringConvertible {
    var description: String { "no descriptor is free" }
}
