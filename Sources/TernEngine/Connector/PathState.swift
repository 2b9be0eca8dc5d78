/// The state of the path to a peer, as the system sees it.
package struct PathState: Sendable, Equatable {
    /// The time since the last segment of the peer, in nanoseconds.
    package var silence: UInt64 = 0
    /// The number of times in a row that unacknowledged bytes have been sent again.
    package var retransmissions = 0
    /// The number of probes in a row without an answer.
    package var unansweredProbes = 0
}
