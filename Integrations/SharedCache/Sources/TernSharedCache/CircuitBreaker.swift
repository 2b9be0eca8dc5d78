/// Decides whether an operation may use a server: after some failures in a row, none does for a while. Then one
/// operation tries.
struct CircuitBreaker: Sendable {
    private let failureLimit: Int
    private let pause: Duration
    private var failures = 0
    private var opened: ContinuousClock.Instant?
    /// The start of the operation that tries whether the server answers again.
    private var probe: ContinuousClock.Instant?

    init(failureLimit: Int, pause: Duration) {
        self.failureLimit = max(1, failureLimit)
        self.pause = pause
    }

    /// Returns whether an operation would be refused now.
    func isOpen(at now: ContinuousClock.Instant) -> Bool {
        guard let opened else { return false }
        if opened.duration(to: now) < pause { return true }
        // An operation that never reports does not close the server out for ever.
        return probe.map { $0.duration(to: now) < pause } ?? false
    }

    /// Returns whether an operation may begin. While the server counts as unreachable, one at a time may, after the
    /// pause.
    mutating func mayBegin(at now: ContinuousClock.Instant) -> Bool {
        if isOpen(at: now) { return false }
        if opened != nil { probe = now }
        return true
    }

    /// Records that the server answered.
    mutating func succeed() {
        failures = 0
        opened = nil
        probe = nil
    }

    /// Records that the server could not be reached, or did not answer in time.
    mutating func fail(at now: ContinuousClock.Instant) {
        failures += 1
        probe = nil
        if failures >= failureLimit { opened = now }
    }
}
