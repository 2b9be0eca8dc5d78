#if os(Linux)
import CTernLoop
import Synchronization

/// Measures the steps of a loop's turns: each serves one event of a socket, one message, one timer, or one end of a turn.
/// A turn has as many steps as there is work; a long step is one that delays everything else. Off unless a test turns it
/// on.
package final class StepClock: Sendable {
    /// The longest step so far in microseconds of CPU time; −1 while nothing is measured.
    private let longest = Atomic<Int64>(-1)

    package init() {}

    /// Begins to measure, and forgets what was measured before.
    package func restart() { longest.store(0, ordering: .relaxed) }

    /// The longest step since `restart()`, in microseconds of CPU time. A loop that did nothing returns 0.
    package var longestStep: Int64 { max(0, longest.load(ordering: .relaxed)) }

    /// Returns the time at which a step begins; nil while nothing is measured.
    func begin() -> Int64? { longest.load(ordering: .relaxed) < 0 ? nil : tern_loop_thread_microseconds() }

    /// Ends a step, on the loop's thread.
    func end(_ start: Int64?) {
        guard let start else { return }
        let step = tern_loop_thread_microseconds() - start
        if step > longest.load(ordering: .relaxed) { longest.store(step, ordering: .relaxed) }
    }
}
#endif
