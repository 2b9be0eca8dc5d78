import Synchronization
import Tern
import TernConcurrency

/// A clock whose time moves only when a test says so: timeouts, delays and retries run at once and in a fixed order.
///
/// ```swift
/// let clock = ManualClock()
/// async let answer = work(clock: clock)     // sleeps 30 seconds inside
/// try await clock.waitForSleepers(1)        // it sleeps now
/// clock.advance(by: .seconds(30))           // and wakes
/// ```
/// Sleepers wake in the order of their deadlines, those with the same deadline in the order in which they came.
public final class ManualClock: Clock, Sendable {
    /// A point of a manual clock's time.
    public struct Instant: InstantProtocol, Sendable, Hashable {
        /// The time since the clock's zero.
        public let offset: Swift.Duration

        /// A point `offset` after the clock's zero.
        public init(offset: Swift.Duration = .zero) { self.offset = offset }

        /// The point `duration` later.
        public func advanced(by duration: Swift.Duration) -> Instant { Instant(offset: offset + duration) }

        /// The time from here to `other`; negative when `other` is earlier.
        public func duration(to other: Instant) -> Swift.Duration { other.offset - offset }

        /// Whether the left point is the earlier one.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now: Instant
        var sleepers = Waiters<Instant>()
        var watchers = Waiters<Int>()
    }

    private let state: Lock<State>

    /// A clock that stands at `now`.
    public init(now: Instant = Instant()) { state = Lock(State(now: now)) }

    /// The current time: what `advance` has made it.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero: every instant can be told from every other.
    public var minimumResolution: Swift.Duration { .zero }

    /// How many callers sleep now.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// The deadline of the sleeper that wakes first; nil when nobody sleeps.
    public var nextDeadline: Instant? { state.withLock { $0.sleepers.conditions.min() } }

    /// Returns once the clock has been advanced to `deadline`; at once if it already has.
    /// - Throws: `CancellationError` when the task is cancelled, before or during the sleep.
    public func sleep(until deadline: Instant, tolerance: Swift.Duration? = nil) async throws {
        let ticket = state.withLock { $0.sleepers.drawTicket() }
        try await Waiters<Instant>.suspend { continuation in
            let (watchers, outcome) = state.withLock { state -> ([CheckedContinuation<Bool, Never>], Bool?) in
                if Task.isCancelled { return ([], false) }
                if deadline <= state.now { return ([], true) }
                state.sleepers.add(ticket, deadline, continuation)
                let count = state.sleepers.count
                return (state.watchers.take { $0 <= count }.map(\.continuation), nil)
            }
            if let outcome { continuation.resume(returning: outcome) }
            for watcher in watchers { watcher.resume(returning: true) }
        } cancel: {
            self.state.withLock { $0.sleepers.remove(ticket) }
        }
    }

    /// Moves the time on by `duration` and wakes every sleeper whose deadline is reached.
    public func advance(by duration: Swift.Duration) { advance { $0.advanced(by: duration) } }

    /// Moves the time on to `instant` and wakes every sleeper whose deadline is reached. The time never goes back.
    public func advance(to instant: Instant) { advance { _ in instant } }

    private func advance(_ next: (Instant) -> Instant) {
        let woken = state.withLock { state in
            let target = max(state.now, next(state.now))
            state.now = target
            return state.sleepers.take { $0 <= target }
        }
        // `sorted` is stable: equal deadlines keep the order of their arrival.
        for sleeper in woken.sorted(by: { $0.condition < $1.condition }) {
            sleeper.continuation.resume(returning: true)
        }
    }

    /// Returns once at least `count` callers sleep: from then on `advance` reaches them.
    /// - Throws: `CancellationError` when the task is cancelled.
    public func waitForSleepers(_ count: Int) async throws(CancellationError) {
        let ticket = state.withLock { $0.watchers.drawTicket() }
        try await Waiters<Int>.suspend { continuation in
            let outcome = state.withLock { state -> Bool? in
                if Task.isCancelled { return false }
                if state.sleepers.count >= count { return true }
                state.watchers.add(ticket, count, continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        } cancel: {
            self.state.withLock { $0.watchers.remove(ticket) }
        }
    }
}
