/// Decides whether the path to the server of a connection over HTTP/1 is dead while an answer is owed. Pure. The times
/// are nanoseconds.
///
/// - A server that works on an answer for minutes is silent, but its system answers probes of TCP, and acknowledges
///   what is sent. A server that has vanished, and a NAT that has forgotten the connection, do not.
/// - After 8 seconds without a segment from the peer's system, the probes of TCP become frequent. After 16 seconds the
///   connection is dead, if bytes are being sent again in vain, or at least two probes are without an answer.
/// - A peer that takes no bytes but answers probes is alive, for example one that reads an upload slowly.
///   `TCP_USER_TIMEOUT` would end its connection.
/// - A connection that owes no answer is not looked at, so that an idle process makes no wake-ups.
struct HTTP1Liveness {
    struct Limits: Sendable, Equatable {
        /// The silence from which the probes are frequent.
        var unprobed: UInt64 = 8_000_000_000
        /// The silence after which a path without answers is dead.
        var dead: UInt64 = 16_000_000_000
        /// The time between two looks after the first.
        var interval: UInt64 = 4_000_000_000
    }

    enum Action: Equatable {
        /// Look again at this time.
        case wait(until: UInt64)
        /// Let the system probe the peer frequently, and look again at this time.
        case probe(nextLook: UInt64)
        /// End the connection.
        case close
    }

    private let limits: Limits
    /// The time at which the exchange began.
    private var start: UInt64 = 0
    /// Whether the probes are frequent.
    private(set) var isProbing = false

    init(_ limits: Limits) { self.limits = limits }

    /// Notes the start of an exchange. Returns the time of the first look.
    mutating func started(at now: UInt64) -> UInt64 {
        start = now
        return Self.sum(now, limits.unprobed)
    }

    /// Notes the end of an exchange. Returns whether the probes are to be as seldom as before.
    mutating func rested() -> Bool {
        defer { isProbing = false }
        return isProbing
    }

    /// Decides with the state of the path.
    mutating func look(at now: UInt64, _ path: PathState) -> Action {
        // Before the exchange, nothing was owed.
        let silence = min(path.silence, now > start ? now - start : 0)
        guard silence >= limits.unprobed else { return .wait(until: Self.sum(now, limits.unprobed - silence)) }
        if silence >= limits.dead, path.retransmissions > 0 || path.unansweredProbes > 1 { return .close }
        let next = Self.sum(now, limits.interval)
        if isProbing { return .wait(until: next) }
        isProbing = true
        return .probe(nextLook: next)
    }

    private static func sum(_ time: UInt64, _ span: UInt64) -> UInt64 {
        let (sum, isTooLarge) = time.addingReportingOverflow(span)
        return isTooLarge ? .max : sum
    }
}
