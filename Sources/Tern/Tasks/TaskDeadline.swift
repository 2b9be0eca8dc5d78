import TernConcurrency

/// The end of the time that `Timeouts.total` gives a task, from its start to its value. Pauses do not count. Pure.
struct TaskDeadline: Sendable {
    /// The whole limit.
    let limit: Duration
    /// When the task started, in nanoseconds of `MonotonicClock`.
    private let startedAt: UInt64
    /// The sum of the pauses that have ended, in nanoseconds.
    private var pauses: UInt64 = 0
    private var pausedAt: UInt64?

    init(_ limit: Duration, now: UInt64) {
        self.limit = limit
        startedAt = now
    }

    mutating func pause(_ now: UInt64) {
        if pausedAt == nil { pausedAt = now }
    }

    mutating func resume(_ now: UInt64) {
        pauses = paused(now)
        pausedAt = nil
    }

    /// Returns the time of all pauses, in nanoseconds.
    func paused(_ now: UInt64) -> UInt64 { pauses + (pausedAt.map { now - min($0, now) } ?? 0) }

    /// Returns the time that is left, at least zero.
    func left(_ now: UInt64) -> Duration {
        let spent = now - min(startedAt, now) - min(paused(now), now - min(startedAt, now))
        return max(.zero, limit - .nanoseconds(Int64(clamping: spent)))
    }
}

extension TaskRecord {
    /// The time by which a wait in code of the caller may end later than the task's limit. The waits of Tern itself end
    /// at the limit, and their errors say more.
    private static let grace = Duration.milliseconds(50)
    private static let shortestWait = Duration.milliseconds(10)

    /// The rest of `Timeouts.total`; nil without a limit.
    var timeLeft: Duration? { deadline?.left(MonotonicClock.nanoseconds()) }

    /// Returns a Swift task that does `action` when the time of the task is over, unless it is cancelled before; nil
    /// without a limit. Owned and cancelled by the caller.
    func atDeadline(
        after grace: Duration = .zero, _ action: @escaping @Sendable (TaskRecord) -> Void
    ) -> Task<Void, Never>? {
        guard let deadline else { return nil }
        return Task { [weak self, clock = registry.clock] in
            let start = MonotonicClock.nanoseconds()
            var (wait, pauses) = (deadline.left(start) + grace, deadline.paused(start))
            repeat {
                // An error means that the wait is not needed any more.
                guard (try? await clock.sleepWithoutDescriptor(for: wait)) != nil else { return }
                // The time of pauses is waited for again.
                let sum = self?.deadline?.paused(MonotonicClock.nanoseconds()) ?? pauses
                wait = .nanoseconds(Int64(clamping: sum - min(pauses, sum)))
                if wait > .zero { wait = max(wait, Self.shortestWait) }
                pauses = sum
            } while wait > .zero
            if let self { action(self) }
        }
    }

    /// Returns a Swift task that ends code of the caller that still waits when the time of the task is over.
    func endingAtDeadline() -> Task<Void, Never>? {
        atDeadline(after: Self.grace) { $0.expire() }
    }

    /// Returns the error of a task whose time is over.
    func deadlineError(_ request: Request?) -> NetworkError {
        let limit = deadline.map { "\($0.limit)" } ?? "its limit"
        let reason = "not done within \(limit) in all (Timeouts.total), \(Self.words(requestCount: requestCount))"
        guard let request else { return NetworkError(.totalTimedOut, reason: reason) }
        return NetworkError(FailureCause(.totalTimedOut, reason), request: request)
    }

    private static func words(requestCount: Int) -> String {
        switch requestCount {
        case 0:
            "before the request was sent: an interceptor, such as one that refreshes a token, a policy or a provider of "
                + "credentials had not finished"
        case 1: "after 1 request"
        default: "after \(requestCount) requests"
        }
    }
}
