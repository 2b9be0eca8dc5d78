#if os(Linux)
import CTernLoop

/// A counting semaphore whose waits have a time limit by a clock that nobody can set. For threads of their own: it
/// blocks.
///
/// `DispatchSemaphore.wait(timeout:)` waits by the wall clock on Linux, also for a `DispatchTime`. When the clock is
/// set back by an hour, the wait grows by that hour.
package final class MonotonicSemaphore: Sendable {
    private let semaphore = tern_semaphore_create()

    /// Creates a semaphore with the count 0.
    package init() {}

    deinit { tern_semaphore_destroy(semaphore) }

    /// Adds 1 to the count, and wakes a thread that waits.
    package func signal() { tern_semaphore_signal(semaphore) }

    /// Waits until the count is above 0, and takes 1 from it. Returns false if the time has passed before. The time
    /// stands still while the system is suspended.
    package func wait(for duration: Duration) -> Bool { tern_semaphore_wait(semaphore, duration.wholeNanoseconds) }
}
#endif
