import TernConcurrency

/// The live tasks of a session, which any thread adds, removes and reads.
///
/// The one place of the order between the ends of tasks and those who wait for them. Each function is one step under one
/// lock: a task whose end comes after `watch(_:)` reports it, and one whose end came before is not among its results.
/// Nothing is released with the lock held, because the release of a task or a session can lead back here.
package struct TaskTable: ~Copyable, Sendable {
    private let live = Lock(LiveTasks<TaskRecord>())

    /// Whether the session takes tasks.
    package var isOpen: Bool { live.withLock { $0.isOpen } }

    /// Whether every task has left.
    package var isEmpty: Bool { live.withLock { $0.isEmpty } }

    /// The tasks, in any order: also those that have ended and are about to leave.
    var tasks: [TaskRecord] { live.withLock { $0.tasks } }

    /// Returns the task of a number, also if it has ended and is about to leave; nil without one.
    func task(_ id: TaskID) -> TaskRecord? { live.withLock { $0.task(id.number) } }

    /// Adds a task. Returns false if the session takes no more.
    func join(_ task: TaskRecord) -> Bool {
        live.withLock { $0.join(task, number: task.id.number, isStarted: task.startsImmediately) }
    }

    /// Holds a task from its first `resume` on.
    func start(_ task: TaskRecord) { live.withLock { $0.start(task, number: task.id.number) } }

    /// Removes a task. Returns the object that is to receive its number; nil if nobody waits for an end.
    func leave(_ id: TaskID) -> (any ExecutorMessage)? {
        let (_, watcher) = live.withLock { ($0.leave(id.number), $0.watcher) }
        return watcher
    }

    /// Takes no more tasks.
    func close() { live.withLock { $0.close() } }

    /// Returns the numbers of the tasks, and lets `leave(_:)` return the watcher from now on. It keeps the watcher.
    /// Without a task, it has no effect.
    func watch(_ watcher: any ExecutorMessage) -> Set<UInt64> { live.withLock { $0.watch(watcher) } }

    /// Lets `leave(_:)` return nil from now on.
    func stopWatching() { _ = live.withLock { $0.stopWatching() } }
}
