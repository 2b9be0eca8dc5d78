import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Lists a session's live tasks and publishes their events.
///
/// A task is in the registry from its creation until its end. At its end, the task leaves the registry, then its value is
/// delivered, then `Event.completed` is published.
public actor TaskRegistry {
    nonisolated let taskTable: TaskTable
    nonisolated let executor: any SerialExecutor

    init(_ taskTable: TaskTable, executor: any SerialExecutor) {
        self.taskTable = taskTable
        self.executor = executor
    }

    /// The executor of the transport: its event loop, if it has one.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// The live tasks, in the order of their creation.
    public var all: [AnySessionTask] { taskTable.records.map { AnySessionTask($0) } }

    /// The number of live tasks.
    public var count: Int { taskTable.records.count }

    /// The present state and progress of every live task, in the order of their creation.
    public var snapshot: [Snapshot] { taskTable.records.map { Snapshot($0) } }

    /// Returns the live task of a number; nil if it has ended.
    public func task(_ id: TaskID) -> AnySessionTask? { taskTable.record(id).map { AnySessionTask($0) } }

    /// Returns the states of one live task. The current one comes first, and the terminal one is never lost. The stream is
    /// empty for a task that is not live.
    public func states(of id: TaskID) -> AsyncStream<Session.TaskState> {
        guard let record = taskTable.record(id) else { return AsyncStream { nil } }
        return record.states.stream()
    }

    /// Cancels every live task. Returns at once; call `Session.drained()` to wait for their ends.
    public func cancelAll() {
        for record in taskTable.records { record.cancel() }
    }

    /// The events of the session's tasks from now on. Each access returns a new stream that holds up to 1,024 events for a
    /// slow reader. One `.dropped` takes the place of further events and counts them. The stream ends after
    /// `.sessionInvalidated`, and when the session is released and its last task has ended.
    ///
    /// To follow one task to its end without loss, read its `states`.
    public nonisolated var events: AsyncStream<Event> { taskTable.subscribe() }
}

extension TaskRegistry {
    /// An event of a session's tasks.
    public enum Event: Sendable {
        /// A task was started, or resumed after a pause.
        case resumed(AnySessionTask)
        /// A running task was paused.
        case suspended(AnySessionTask)
        /// The file of a download was moved to its destination.
        case fileMoved(AnySessionTask, to: URL)
        /// The file of a download could not be moved to its destination.
        case moveFailed(AnySessionTask, NetworkError)
        /// A task has ended and its value was delivered.
        case completed(Completion)
        /// The session takes no more tasks, and its last one has ended. This is the last event of the stream.
        case sessionInvalidated(Session.ID)
        /// The number of events that did not fit into this stream's buffer.
        case dropped(Int)
    }

    /// The end of a task, without its body or decoded value. Those are read through the task's own handle.
    public struct Completion: Sendable {
        /// The task.
        public let task: AnySessionTask
        /// The head of its response; nil without one.
        public let response: ResponseHead?
        /// The error; nil if the task has a value.
        public let error: NetworkError?
        /// The file of a download; nil for other tasks and without a file.
        public let file: URL?
        /// The type of the task's value.
        public let valueType: any Any.Type
        /// The measurements of the task.
        public let metrics: TaskMetrics?

        init(_ task: AnySessionTask, error: NetworkError?, file: URL?) {
            self.task = task
            self.error = error
            self.file = file
            response = task.record.head
            valueType = task.record.valueType
            metrics = task.record.metrics
        }
    }

    /// A live task at one moment.
    public struct Snapshot: Sendable {
        /// The task's number.
        public let id: TaskID
        /// The session's identity.
        public let sessionID: Session.ID
        /// The task's label.
        public let label: String?
        /// The request; nil for a task that the system kept from an earlier run.
        public let request: Request?
        /// The task's state.
        public let state: Session.TaskState
        /// The task's priority.
        public let priority: Request.Priority
        /// The progress of the request's body.
        public let uploadProgress: Session.Progress
        /// The progress of the response's body.
        public let progress: Session.Progress

        init(_ record: TaskRecord) {
            id = record.id
            sessionID = record.context.id
            label = record.label
            request = record.request
            state = record.state
            priority = record.priority
            uploadProgress = record.meter.upload
            progress = record.meter.download
        }
    }
}

extension TaskRegistry: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the requests of all tasks.
    nonisolated public var customMirror: Mirror { Mirror(self, children: [:]) }
}
