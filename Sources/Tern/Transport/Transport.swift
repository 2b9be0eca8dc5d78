package import TernConcurrency

#if os(Linux)
import TernEngine
#endif

/// Sends requests over the wire, one attempt at a time. A transport serves one `Session`. It knows attempts, not tasks:
/// retries, redirects, validation and decoding happen above it, in the stages of a request (`Stage`).
///
/// Every started transfer completes exactly once, also after `cancel` and after the transport itself is released.
package protocol Transport: AnyObject, Sendable {
    /// The serial executor of the session's actors: the transport's event loop, if it has one.
    var executor: any MessageExecutor { get }

    /// Whether the transport calls `Transfer.owner` on its executor when an attempt starts. Otherwise, the session
    /// sends the message of the owner itself, before the start.
    var announcesOwners: Bool { get }

    /// The executor on which calls run without a switch between threads: that of the event loop, if the transport has
    /// one.
    var taskExecutor: any TaskExecutor { get }

    /// Whether a body that was requested compressed arrives in chunks as it was sent, and the session decompresses it.
    var leavesStreamsCompressed: Bool { get }

    /// Returns whether a proxy receives a request to a URL whole, and can then ask for credentials (407). Returns false
    /// for a tunnel, through which a 407 comes from the server.
    func forwardsToProxy(_ target: Target) -> Bool

    /// Returns the credential of the proxy that receives a request to a URL whole; nil for a proxy without one, and for
    /// a tunnel, whose challenges the transport answers itself.
    func proxyCredential(for target: Target) -> Credential?

    /// Returns the reason why the request of an attempt cannot be sent at all; nil if it can. Called before the start.
    func refusal(of transfer: Transfer) -> TransferFailure?

    /// Starts an attempt. Progress, head, body and outcome arrive later, through `transfer`. Called with the task's
    /// lock held, so it only queues.
    func start(_ transfer: Transfer)

    /// Sends a command to a started attempt. Does nothing after its end. Commands take effect in call order. Only
    /// queues, like `start`.
    func control(_ transfer: Transfer, _ command: TransferCommand)

    /// Returns the open connections by origin, in the order of the origins. Empty for a transport that does not know
    /// its connections.
    func openConnections() async -> [Session.OpenConnections]

    /// Closes the connections that carry no attempt, and each other one after its last attempt. Called once the session
    /// is invalidated, on its executor. Only queues, like `start`.
    func drain()
}

/// A command to a running attempt.
package enum TransferCommand: Sendable, Equatable {
    /// Moves no more bytes, and stops the clocks of the idle and total limits.
    case pause
    /// Resumes a paused attempt.
    case resume
    /// Ends the attempt now, with the failure `.cancelled`.
    case cancel
    /// Delivers more bytes: the reader has taken those in the buffer.
    case demand
    /// Reads the pipe of the request's body again: it has bytes, or has ended.
    case bodyReady
    /// Lends the socket to the reader, which has called `Transfer.offer(_:)`, whenever bytes have arrived. Has no
    /// effect if the transport cannot lend it.
    case usePipe
    /// Changes the priority of an attempt that waits for a connection.
    case prioritize(Request.Priority)
}

extension Transport {
    package var taskExecutor: any TaskExecutor { globalConcurrentExecutor }

    package var leavesStreamsCompressed: Bool { false }

    package var announcesOwners: Bool { false }

    package func forwardsToProxy(_ target: Target) -> Bool { false }

    package func proxyCredential(for target: Target) -> Credential? { nil }

    package func refusal(of transfer: Transfer) -> TransferFailure? { nil }

    package func openConnections() async -> [Session.OpenConnections] { [] }

    package func drain() {}
}

/// Creates the transport of a session: the engine on Linux, URLSession on Apple's systems.
enum DefaultTransport {
    static func make(_ configuration: Session.Configuration) -> any Transport {
        #if TERN_URLSESSION || !os(Linux)
        URLSessionTransport(configuration)
        #else
        EngineTransport(configuration)
        #endif
    }

    static var eventLoopCount: Int {
        #if os(Linux) && !TERN_URLSESSION
        EventLoops.count
        #else
        0
        #endif
    }

    /// Sets the number of event loops. Returns the reason why that is not possible; nil if it is done.
    static func setEventLoopCount(_ count: Int) -> String? {
        #if os(Linux) && !TERN_URLSESSION
        guard 1...EventLoops.maximumCount ~= count else {
            return "\(count) event loops are not possible: the number is from 1 to \(EventLoops.maximumCount)"
        }
        return EventLoops.setCount(count) ? nil : "the number of event loops cannot change after the first session"
        #else
        return "this transport has no event loops"
        #endif
    }
}

/// The failure of an attempt, before the session adds the request and the response to it.
///
/// A class, because every stage of an attempt passes an optional one on, which most often is nil.
package final class TransferFailure: Error {
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

    package init(
        _ kind: NetworkError.Kind, _ reason: String, underlying: (any Error)? = nil,
        isDeadPooledConnection: Bool = false, wasNotProcessed: Bool = false
    ) {
        self.kind = kind
        self.reason = reason
        self.underlying = underlying
        self.isDeadPooledConnection = isDeadPooledConnection
        self.wasNotProcessed = wasNotProcessed
    }

    /// Returns the failure of a collected response whose body exceeds the limit in bytes.
    package static func bodyTooLarge(limit: Int) -> TransferFailure {
        TransferFailure(
            .tooLarge, "the body of the response has more than \(limit) bytes: stream it, or raise maximumBodySize")
    }

    package static let cancelled = TransferFailure(.cancelled, "the task was cancelled")

    /// Returns the same failure with the error that caused it.
    func caused(by error: any Error) -> TransferFailure {
        TransferFailure(
            kind, reason, underlying: error, isDeadPooledConnection: isDeadPooledConnection,
            wasNotProcessed: wasNotProcessed)
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
