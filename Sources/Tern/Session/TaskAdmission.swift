import Synchronization

/// Decides whether a session takes a task, and counts the tasks that it took and that have not ended. Any thread can ask,
/// so that a task that is created after the session was invalidated fails at once.
package struct TaskAdmission: ~Copyable, Sendable {
    private static let closed: UInt64 = 1 << 63

    /// The number of tasks, and in its highest bit whether the session takes no more.
    private let state = Atomic<UInt64>(0)

    /// A Boolean value that indicates whether the session has no task.
    package var isIdle: Bool { state.load(ordering: .acquiring) & ~Self.closed == 0 }

    /// A Boolean value that indicates whether the session takes no more tasks.
    var isClosed: Bool { state.load(ordering: .relaxed) & Self.closed != 0 }

    /// Takes a task. Returns false if the session takes no more.
    func admit() -> Bool {
        var current = state.load(ordering: .relaxed)
        while current & Self.closed == 0 {
            let (isDone, found) = state.weakCompareExchange(
                expected: current, desired: current + 1, ordering: .acquiringAndReleasing)
            if isDone { return true }
            current = found
        }
        return false
    }

    /// Ends a task that was taken. Returns whether it was the last one.
    func end() -> Bool {
        state.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue & ~Self.closed == 0
    }

    /// Takes no more tasks.
    func close() { _ = state.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing) }
}
