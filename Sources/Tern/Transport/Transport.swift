package import TernConcurrency

/// Sends requests over the wire, one attempt at a time. A transport serves one `Session`. It knows attempts, not tasks:
/// retries, redirects, validation and decoding happen above it, in the stages of a request (`Stage`).
///
/// Every started attempt completes exactly once, also after `cancel` and after the transport itself is released.
package protocol Transport: AnyObject, Sendable {
    /// The serial executor of the session's actors: the transport's event loop, if it has one.
    var executor: any MessageExecutor { get }

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
    func refusal(of attempt: Attempt) -> FailureCause?

    /// Starts an attempt. Progress, head, body and outcome arrive later, through `attempt`. Called with the task's
    /// lock held, so it only queues.
    func start(_ attempt: Attempt)

    /// Sends a command to a started attempt. Does nothing after its end. Commands take effect in call order. Only
    /// queues, like `start`.
    func control(_ attempt: Attempt, _ command: AttemptCommand)

    /// Returns the open connections by origin, in the order of the origins. Empty for a transport that does not know
    /// its connections.
    func openConnections() async -> [Session.OpenConnections]

    /// Opens connections for requests like that of an attempt, which is not sent, until there are `count` of them.
    /// Returns false for a transport that cannot do so. Only queues, like `start`.
    func preconnect(_ attempt: Attempt, count: Int) -> Bool

    /// Closes the connections that carry no attempt, and each other one after its last attempt. Called once the session
    /// is invalidated, on its executor. Only queues, like `start`.
    func drain()
}

/// A command to a running attempt.
package enum AttemptCommand: Sendable, Equatable {
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
    /// Lends the socket to the reader, which has called `Attempt.offer(_:)`, whenever bytes have arrived. Has no
    /// effect if the transport cannot lend it.
    case usePipe
    /// Changes the priority of an attempt that waits for a connection.
    case prioritize(Request.Priority)
}

extension Transport {
    package var taskExecutor: any TaskExecutor { globalConcurrentExecutor }

    package var leavesStreamsCompressed: Bool { false }

    package func forwardsToProxy(_ target: Target) -> Bool { false }

    package func proxyCredential(for target: Target) -> Credential? { nil }

    package func refusal(of attempt: Attempt) -> FailureCause? { nil }

    package func openConnections() async -> [Session.OpenConnections] { [] }

    package func preconnect(_ attempt: Attempt, count: Int) -> Bool { false }

    package func drain() {}
}
