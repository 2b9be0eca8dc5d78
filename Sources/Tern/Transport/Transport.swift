/// The seam between the life of a request and the wire. One transport serves one `Session`; it knows attempts, not
/// tasks: retries, validation and decoding happen above it.
///
/// Every started transfer completes exactly once, also after `cancel` and after the transport itself is released.
package protocol Transport: Sendable {
    /// The serial executor of the actors above: the transport's own loop where it has one.
    var executor: any SerialExecutor { get }

    /// A Boolean value that indicates whether a body that was requested compressed arrives in chunks as it was sent,
    /// and the session decompresses it.
    var leavesStreamsCompressed: Bool { get }

    /// Returns whether a proxy receives a request to a URL whole, and can then ask for credentials (407). Returns false
    /// for a tunnel, through which a 407 comes from the server.
    func forwardsToProxy(_ target: Target) -> Bool

    /// Whether starting a transfer of this order can succeed at all; a failure is reported before anything is sent.
    func refusal(of order: TransferOrder) -> TransferFailure?

    /// Starts an attempt. Progress, head, body and outcome arrive through `transfer`, later: this is called with the
    /// task's lock held, so it only queues.
    func start(_ transfer: Transfer)

    /// Acts on a started attempt; a no-op after its end. Commands take effect in call order. Only queues, like `start`.
    func control(_ transfer: Transfer, _ command: TransferCommand)
}

/// What can be asked of a running attempt.
package enum TransferCommand: Sendable, Equatable {
    /// Move no more bytes, and stop the idle and the total clock.
    case pause
    /// Take up a paused attempt.
    case resume
    /// End now; the outcome is the failure `.cancelled`.
    case cancel
    /// The reader has taken what was buffered: more may come.
    case demand
    /// The body's pipe has bytes again, or has ended.
    case bodyReady
    /// Acts on what is still queued.
    case prioritize(Request.Priority)
}

extension Transport {
    package var leavesStreamsCompressed: Bool { false }

    package func forwardsToProxy(_ target: Target) -> Bool { false }

    package func refusal(of order: TransferOrder) -> TransferFailure? { nil }
}
