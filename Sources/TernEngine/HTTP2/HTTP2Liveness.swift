/// Decides when the server of a silent connection is asked for a sign of life (PING, RFC 9113 §6.7), and when the
/// connection is dead. Pure. The times are nanoseconds.
///
/// - A connection with streams in flight that receives nothing sends PING after 15 seconds, and again after each
///   further silence of 60 and then of 300 seconds. 15 seconds leave time for the answer within the idle limit of a
///   request, 60 seconds by default. The silences grow because servers end connections whose client sends PING often
///   without need: gRPC's accept one in 5 minutes, with two exceptions between two frames of a response.
/// - A connection that received nothing for 5 seconds or more sends PING together with its first stream. A NAT or a
///   server that has forgotten the connection is then noticed long before the limits of the request.
/// - The connection is dead if nothing arrives for 10 seconds after PING: a lost packet is repeated several times
///   within them. While the peer's system acknowledges bytes of an upload, PING can still be on its way, and the limit
///   starts again.
/// - A connection without streams in flight sends nothing, so that an idle process makes no wake-ups.
struct HTTP2Liveness {
    struct Limits: Sendable, Equatable {
        /// The silences before the first, the second and each further PING.
        var silences: [UInt64] = [15_000_000_000, 60_000_000_000, 300_000_000_000]
        /// The time for an answer.
        var answer: UInt64 = 10_000_000_000
        /// The age of the last byte from which the first stream is sent with PING.
        var unused: UInt64 = 5_000_000_000
    }

    enum Action: Equatable {
        case wait
        /// Send PING.
        case ping
        /// Close the connection, which is dead.
        case close
    }

    private let limits: Limits
    /// The time of the last byte, or of the first stream after it.
    private var lastActivity: UInt64
    /// The number of PINGs since the last frame of a response.
    private var pings = 0
    private var answerDeadline: UInt64?
    /// The number of bytes that the peer's system had acknowledged at PING.
    private var acknowledged = 0

    init(_ limits: Limits, now: UInt64) {
        self.limits = limits
        lastActivity = now
    }

    /// The time at which `expired(at:acknowledged:)` has something to decide, while streams are in flight.
    var deadline: UInt64 {
        if let answerDeadline { return answerDeadline }
        guard let last = limits.silences.last else { return .max }
        return Self.sum(lastActivity, pings < limits.silences.count ? limits.silences[pings] : last)
    }

    /// Notes bytes of the server.
    mutating func received(at now: UInt64) {
        lastActivity = now
        answerDeadline = nil
    }

    /// Notes a frame of a response.
    mutating func responseProgressed() { pings = 0 }

    /// Notes a new stream. Returns whether PING is to be sent with it.
    mutating func started(isFirst: Bool, at now: UInt64, acknowledged: @autoclosure () -> Int) -> Bool {
        guard isFirst else { return false }
        let isUnused = now >= Self.sum(lastActivity, limits.unused)
        lastActivity = max(now, lastActivity)
        if isUnused { askForAnswer(at: now, acknowledged: acknowledged()) }
        return isUnused
    }

    /// Notes that no stream is in flight.
    mutating func rested() { answerDeadline = nil }

    /// Decides at the deadline.
    ///
    /// - Parameter acknowledged: The number of bytes that the peer's system has acknowledged so far.
    mutating func expired(at now: UInt64, acknowledged: Int) -> Action {
        guard now >= deadline else { return .wait }
        guard answerDeadline != nil else {
            askForAnswer(at: now, acknowledged: acknowledged)
            return .ping
        }
        guard acknowledged > self.acknowledged else { return .close }
        askForAnswer(at: now, acknowledged: acknowledged)
        pings -= 1
        return .wait
    }

    private mutating func askForAnswer(at now: UInt64, acknowledged: Int) {
        pings += 1
        answerDeadline = Self.sum(now, limits.answer)
        self.acknowledged = acknowledged
    }

    private static func sum(_ time: UInt64, _ span: UInt64) -> UInt64 {
        let (sum, isTooLarge) = time.addingReportingOverflow(span)
        return isTooLarge ? .max : sum
    }
}
