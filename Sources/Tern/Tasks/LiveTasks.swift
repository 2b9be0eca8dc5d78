import TernConcurrency

/// The tasks of a session that have not ended, and the object that learns of their ends. Pure: `TaskTable` guards it
/// with a lock, and notifies the watcher.
struct LiveTasks<Task: AnyObject & Sendable> {
    private struct WaitingTask {
        /// Weak: until a task is first resumed, its handles alone hold it, because nothing else could start it.
        weak var task: Task?
    }

    private var waiting: [UInt64: WaitingTask] = [:]
    private var started = NumberTable<Task>()
    /// Whether the session takes tasks.
    private(set) var isOpen = true
    /// Learns of the end of each task; nil if nobody waits for one.
    private(set) var watcher: (any ExecutorMessage)?

    var isEmpty: Bool { started.isEmpty && waiting.isEmpty }

    /// The tasks, in any order: also those that have ended and are about to leave.
    var tasks: [Task] { waiting.values.compactMap(\.task) + started.values }

    func task(_ number: UInt64) -> Task? { started[number] ?? waiting[number]?.task }

    // MARK: Tasks

    /// Adds a task. Returns false if the session takes no more.
    ///
    /// - Parameter isStarted: Pass false for a task that waits for its first `resume`, which is held weakly.
    mutating func join(_ task: Task, number: UInt64, isStarted: Bool) -> Bool {
        guard isOpen else { return false }
        if isStarted { started[number] = task } else { waiting[number] = WaitingTask(task: task) }
        return true
    }

    /// Holds a task from its first `resume` on.
    mutating func start(_ task: Task, number: UInt64) {
        waiting[number] = nil
        started[number] = task
    }

    /// Removes a task. Returns it if it was held, so that the caller releases it without the lock.
    mutating func leave(_ number: UInt64) -> Task? {
        if let task = started.removeValue(for: number) { return task }
        if !waiting.isEmpty { waiting[number] = nil }
        return nil
    }

    /// Takes no more tasks.
    mutating func close() { isOpen = false }

    // MARK: The watcher

    /// Returns the numbers of the tasks, and reports the end of each to an object from now on. Without a task, nothing
    /// is reported.
    mutating func watch(_ watcher: any ExecutorMessage) -> Set<UInt64> {
        let numbers = Set(started.numbers).union(waiting.keys)
        if !numbers.isEmpty { self.watcher = watcher }
        return numbers
    }

    /// Reports no more ends. Returns the watcher, so that the caller releases it without the lock.
    mutating func stopWatching() -> (any ExecutorMessage)? {
        defer { watcher = nil }
        return watcher
    }
}
