import TernConcurrency

/// The time limits of an attempt, in nanoseconds. Pure: the transport reports the events of the attempt and the
/// time.
struct AttemptClock {
    /// The time after which an attempt without a `queue` limit looks whether streams that last long hold all
    /// connections.
    private static let impliedQueueLimit: UInt64 = 30_000_000_000

    private let queueLimit: UInt64?
    private let connectLimit: UInt64?
    private var idleLimit: UInt64?
    /// The limit on the whole attempt, and its name.
    private var wholeLimit: UInt64?
    private var wholePhase = Timeouts.Phase.total
    /// When the attempt was handed over, moved on by every pause.
    private var startedAt: UInt64
    /// When the attempt asks for a connection; nil once it has.
    private(set) var startsAt: UInt64?
    /// When the attempt began to wait for a connection that becomes free; nil while it does not.
    private var queuedAt: UInt64?
    private var connectStartedAt: UInt64?
    private var lastActivity: UInt64?
    private var pausedAt: UInt64?
    /// The reader of the response, or the producer of the body, holds the attempt up: not the server's fault.
    private var isHeldUp = false

    init(_ timeouts: Timeouts, now: UInt64) {
        queueLimit = timeouts.queue?.wholeNanoseconds
        connectLimit = timeouts.connect?.wholeNanoseconds
        idleLimit = timeouts.idle?.wholeNanoseconds
        if let end = timeouts.end { (wholeLimit, wholePhase) = (end.after.wholeNanoseconds, end.limit) }
        startedAt = now
    }

    /// Nanoseconds since the attempt was handed over, without pauses.
    func elapsed(_ now: UInt64) -> UInt64 { (pausedAt ?? now) - min(startedAt, pausedAt ?? now) }

    /// The attempt asks for a connection later.
    mutating func delayStart(by delay: Duration, _ now: UInt64) {
        startsAt = Self.sum(now, delay.wholeNanoseconds)
    }

    /// Returns whether the time has come to ask for a connection. True once.
    mutating func takeStart(_ now: UInt64) -> Bool {
        guard pausedAt == nil, let startsAt, startsAt <= now else { return false }
        self.startsAt = nil
        return true
    }

    /// The attempt begins on the wire: it waits for a connection no longer.
    mutating func connecting(_ now: UInt64) {
        queuedAt = nil
        if connectStartedAt == nil { connectStartedAt = now }
    }

    /// The attempt waits for a connection that becomes free, or waits again.
    mutating func queued(_ now: UInt64) {
        connectStartedAt = nil
        lastActivity = nil
        queuedAt = now
    }

    /// Whether the `queue` limit holds only while streams that last long hold all connections.
    var isQueueLimitImplied: Bool { queueLimit == nil }

    mutating func connected(_ now: UInt64) {
        queuedAt = nil
        connectStartedAt = nil
        lastActivity = now
    }

    /// The connection carries another protocol, which has limits of its own.
    mutating func upgraded() {
        idleLimit = nil
        wholeLimit = nil
    }

    mutating func moved(_ now: UInt64) { lastActivity = now }

    /// Withdrawn from the wire before it was connected.
    mutating func withdrawn() {
        queuedAt = nil
        connectStartedAt = nil
        lastActivity = nil
    }

    mutating func paused(_ now: UInt64) {
        if pausedAt == nil { pausedAt = now }
    }

    mutating func resumed(_ now: UInt64) {
        guard let paused = pausedAt else { return }
        let pause = now - min(now, paused)
        pausedAt = nil
        startedAt += pause
        if let start = queuedAt { queuedAt = start + pause }
        if let start = connectStartedAt { connectStartedAt = start + pause }
        if lastActivity != nil { lastActivity = now }
    }

    mutating func heldUp(_ held: Bool, _ now: UInt64) {
        if isHeldUp, !held, lastActivity != nil { lastActivity = now }
        isHeldUp = held
    }

    /// The limit that has run out.
    func expired(_ now: UInt64) -> Timeouts.Phase? {
        if let wholeDeadline, wholeDeadline <= now { return wholePhase }
        if let queueDeadline, queueDeadline <= now { return .queue }
        if let connectDeadline, connectDeadline <= now { return .connect }
        if let idleDeadline, idleDeadline <= now { return .idle }
        return nil
    }

    /// The earliest limit that can run out, or the time to ask for a connection; `.max` while there is none.
    var nextDeadline: UInt64 {
        let start = pausedAt == nil ? startsAt ?? .max : .max
        return min(start, wholeDeadline ?? .max, queueDeadline ?? .max, connectDeadline ?? .max, idleDeadline ?? .max)
    }

    private var wholeDeadline: UInt64? {
        guard pausedAt == nil, let wholeLimit else { return nil }
        return Self.sum(startedAt, wholeLimit)
    }

    private var queueDeadline: UInt64? {
        guard pausedAt == nil, let queuedAt else { return nil }
        return Self.sum(queuedAt, queueLimit ?? Self.impliedQueueLimit)
    }

    private var connectDeadline: UInt64? {
        guard pausedAt == nil, let connectLimit, let connectStartedAt else { return nil }
        return Self.sum(connectStartedAt, connectLimit)
    }

    private var idleDeadline: UInt64? {
        guard pausedAt == nil, !isHeldUp, let idleLimit, let lastActivity else { return nil }
        return Self.sum(lastActivity, idleLimit)
    }

    private static func sum(_ start: UInt64, _ limit: UInt64) -> UInt64 {
        let (sum, overflow) = start.addingReportingOverflow(limit)
        return overflow ? .max : sum
    }
}
