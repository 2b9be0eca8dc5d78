import Synchronization
import Tern
import TernConcurrency

/// A clock whose time a test controls, so that timeouts, delays and retries run without waiting and in a fixed order.
///
/// ```swift
/// let clock = ManualClock()
/// async let answer = work(clock: clock)     // sleeps 30 seconds inside
/// try await clock.waitForSleepers(1)        // it sleeps now
/// clock.advance(by: .seconds(30))           // and wakes
/// ```
///
/// Sleepers wake in the order of their deadlines, and those with the same deadline in the order of their calls.
public final class ManualClock: Clock, Sendable {
    /// An instant of a manual clock.
    public struct Instant: InstantProtocol, Sendable, Hashable {
        /// The time since the clock's zero.
        public let offset: Swift.Duration

        /// Creates an instant at an offset from the clock's zero.
        public init(offset: Swift.Duration = .zero) { self.offset = offset }

        /// Returns the instant after a duration.
        public func advanced(by duration: Swift.Duration) -> Instant { Instant(offset: offset + duration) }

        /// Returns the duration to another instant; negative if the other instant is earlier.
        public func duration(to other: Instant) -> Swift.Duration { other.offset - offset }

        /// Returns a Boolean value that indicates whether the left instant is earlier.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now: Instant
        var sleepers = Waiters<Instant>()
        var watchers = Waiters<Int>()
    }

    private let state: Lock<State>

    /// Creates a clock with its current time.
    public init(now: Instant = Instant()) { state = Lock(State(now: now)) }

    /// The current time, which only `advance` changes.
    public var now: Instant { state.withLock { $0.now } }

    /// Zero, because the clock distinguishes all instants.
    public var minimumResolution: Swift.Duration { .zero }

    /// The number of callers that sleep.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// The earliest deadline of a sleeper; nil if there is none.
    public var nextDeadline: Instant? { state.withLock { $0.sleepers.conditions.min() } }

    /// Returns when the clock reaches the deadline; immediately if it already has.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before or during the sleep.
    public func sleep(until deadline: Instant, tolerance: Swift.Duration? = nil) async throws {
        let id = state.withLock { $0.sleepers.nextID() }
        try await Waiters<Instant>.suspend { continuation in
            let (watchers, outcome) = state.withLock { state -> ([CheckedContinuation<Bool, Never>], Bool?) in
                if Task.isCancelled { return ([], false) }
                if deadline <= state.now { return ([], true) }
                state.sleepers.add(id, condition: deadline, continuation: continuation)
                let count = state.sleepers.count
                return (state.watchers.take { $0 <= count }.map(\.continuation), nil)
            }
            if let outcome { continuation.resume(returning: outcome) }
            for watcher in watchers { watcher.resume(returning: true) }
        } cancel: {
            self.state.withLock { $0.sleepers.remove(id) }
        }
    }

    /// Advances the time by a duration and wakes each sleeper whose deadline is reached.
    public func advance(by duration: Swift.Duration) { advance { $0.advanced(by: duration) } }

    /// Advances the time to an instant and wakes each sleeper whose deadline is reached. The time never goes back.
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

    /// Returns when at least `count` callers sleep. An `advance` after that reaches them.
    ///
    /// - Parameters:
    ///   - count: The number of callers.
    ///   - limit: The longest wait, in real time. 30 seconds by default. Code that ends without a sleep, because it
    ///     succeeds or fails early, would otherwise hold up its test.
    /// - Throws: ``MissingSleepers`` after the limit; `CancellationError` if the task is cancelled.
    public func waitForSleepers(_ count: Int, within limit: Swift.Duration = .seconds(30)) async throws {
        let id = state.withLock { $0.watchers.nextID() }
        // Owned and cancelled here.
        let timer = Task {
            // An error means that the wait has ended.
            guard (try? await ContinuousClock().sleepWithoutDescriptor(for: limit)) != nil else { return }
            // A short limit can pass before the wait begins.
            while !Task.isCancelled {
                if let waiter = state.withLock({ $0.watchers.remove(id) }) { return waiter.resume(returning: false) }
                await Task.yield()
            }
        }
        defer { timer.cancel() }
        do {
            try await waitForSleepers(count, as: id)
        } catch {
            if Task.isCancelled { throw error }
            throw MissingSleepers(expected: count, sleeping: sleeperCount, limit: limit)
        }
    }

    private func waitForSleepers(_ count: Int, as id: Waiters<Int>.ID) async throws(CancellationError) {
        try await Waiters<Int>.suspend { continuation in
            let outcome = state.withLock { state -> Bool? in
                if Task.isCancelled { return false }
                if state.sleepers.count >= count { return true }
                state.watchers.add(id, condition: count, continuation: continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        } cancel: {
            self.state.withLock { $0.watchers.remove(id) }
        }
    }
}

extension ManualClock {
    /// Fewer callers sleep on a clock than a test waits for.
    public struct MissingSleepers: Error, CustomStringConvertible {
        /// The number of callers that the test waits for.
        public let expected: Int
        /// The number of callers that sleep.
        public let sleeping: Int
        /// The time for which the test has waited.
        public let limit: Swift.Duration

        /// The numbers in a sentence, with what to look for.
        public var description: String {
            "\(sleeping) of \(expected) callers sleep on the manual clock after \(limit): the code under test has ended, "
                + "waits for something else, or uses another clock"
        }
    }
}
