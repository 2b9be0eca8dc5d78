extension Clock {
    /// Sleeps like `sleep(until:tolerance:)`, also while the process has no free file descriptor.
    ///
    /// On Linux, the timer of the Swift runtime opens descriptors when it is first used, and ends the process if there
    /// are none. There, `ContinuousClock` sleeps by ``SleepThread``. Every other clock sleeps by itself.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, before or during the sleep.
    package func sleepWithoutDescriptor(until deadline: Instant, tolerance: Instant.Duration? = nil) async throws {
        #if os(Linux)
        if self is ContinuousClock, let deadline = deadline as? ContinuousClock.Instant {
            return try await SleepThread.shared.sleep(until: deadline)
        }
        #endif
        try await sleep(until: deadline, tolerance: tolerance)
    }
}

extension Clock where Duration == Swift.Duration {
    /// Sleeps like `sleep(for:)`, also while the process has no free file descriptor.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, before or during the sleep.
    package func sleepWithoutDescriptor(for duration: Swift.Duration) async throws {
        try await sleepWithoutDescriptor(until: now.advanced(by: duration))
    }
}

#if os(Linux)
/// Wakes sleeping tasks from a thread of its own, which needs no file descriptor. The thread starts with the first
/// sleeper, and ends when there has been none for a while.
package final class SleepThread: Sendable {
    /// The end of a sleep.
    enum End: Sendable {
        case deadline, cancelled
        /// The thread could not be created.
        case noThread
    }

    package static let shared = SleepThread()

    /// The time after which a suspension of the system is noticed at the latest: the semaphore's clock stands still
    /// meanwhile, and the continuous clock does not.
    private static let longestWait = Duration.seconds(60)

    private let queue = Lock(SleepQueue<Waiter<End>>())
    private let signal = MonotonicSemaphore()
    private let idleTimeout: Duration

    /// - Parameter idleTimeout: The time for which the thread waits for another sleeper before it ends.
    package init(idleTimeout: Duration = .seconds(1)) { self.idleTimeout = idleTimeout }

    /// Whether the thread runs.
    package var isRunning: Bool { queue.withLock { $0.hasThread } }

    /// Returns at the deadline, at once if it has passed.
    ///
    /// - Throws: `CancellationError` when the task is cancelled, before or during the sleep.
    package func sleep(until deadline: ContinuousClock.Instant) async throws {
        try Task.checkCancellation()
        let waiter = Waiter<End>()
        switch queue.withLock({ $0.add(waiter, deadline) }) {
        case .none: break
        case .wake: signal.signal()
        case .start: start()
        }
        switch await waiter.wait(cancelled: .cancelled) {
        case .deadline: return
        case .cancelled:
            queue.withLock { queue in queue.remove { $0 === waiter } }
            throw CancellationError()
        case .noThread:
            try await Task.sleep(until: deadline, clock: .continuous)
        }
    }

    private func start() {
        if SystemThread.start({ self.work() }) != 0 {
            for waiter in queue.withLock({ $0.removeAllSleepers() }) { waiter.resume(returning: .noThread) }
        }
    }

    private func work() {
        var isIdle = false
        while true {
            let (due, next) = queue.withLock { queue in
                (queue.take(until: .now), queue.next(mayEnd: isIdle))
            }
            for waiter in due { waiter.resume(returning: .deadline) }
            let wait: Duration
            switch next {
            case .end: return
            case .idleTimeout: wait = idleTimeout
            case .deadline(let deadline): wait = min(ContinuousClock.now.duration(to: deadline), Self.longestWait)
            }
            let hasSignal = signal.wait(for: wait)
            isIdle = next == .idleTimeout && !hasSignal
        }
    }
}
#endif

/// The sleepers of a thread by their deadlines, and the decisions about the thread.
struct SleepQueue<Sleeper> {
    /// The action that a new sleeper requires.
    enum Action: Equatable {
        case none
        /// The thread waits for a later deadline.
        case wake
        case start
    }

    /// The next action of the thread.
    enum Next: Equatable {
        /// Waits until the first deadline.
        case deadline(ContinuousClock.Instant)
        /// Waits for another sleeper, for the idle timeout.
        case idleTimeout
        case end
    }

    /// Latest deadline first; of equal deadlines, the newest sleeper first.
    private var sleepers: [(deadline: ContinuousClock.Instant, sleeper: Sleeper)] = []
    /// Whether there is a thread.
    private(set) var hasThread = false

    mutating func add(_ sleeper: Sleeper, _ deadline: ContinuousClock.Instant) -> Action {
        // Binary search for the first one that wakes before the new sleeper.
        var (lower, upper) = (0, sleepers.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if sleepers[middle].deadline > deadline { lower = middle + 1 } else { upper = middle }
        }
        let isEarliest = lower == sleepers.count
        sleepers.insert((deadline, sleeper), at: lower)
        defer { hasThread = true }
        return !hasThread ? .start : isEarliest ? .wake : .none
    }

    mutating func remove(where isRemoved: (Sleeper) -> Bool) { sleepers.removeAll { isRemoved($0.sleeper) } }

    /// Removes the sleepers whose deadline has come, in the order of their deadlines.
    mutating func take(until now: ContinuousClock.Instant) -> [Sleeper] {
        var due: [Sleeper] = []
        while let last = sleepers.last, last.deadline <= now {
            due.append(last.sleeper)
            sleepers.removeLast()
        }
        return due
    }

    /// Returns the next step of the thread. `mayEnd`: the idle timeout has passed.
    mutating func next(mayEnd: Bool) -> Next {
        if let last = sleepers.last { return .deadline(last.deadline) }
        if mayEnd { hasThread = false }
        return mayEnd ? .end : .idleTimeout
    }

    /// Removes all sleepers, because no thread can be started.
    mutating func removeAllSleepers() -> [Sleeper] {
        hasThread = false
        defer { sleepers = [] }
        return sleepers.reversed().map(\.sleeper)
    }
}
