import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The table of a session's live tasks, and the stream of what happens to them.
///
/// A task stands here from its creation until its end. At the end the task leaves the registry, then its value is
/// delivered, then `Event.completed` is told.
public actor TaskRegistry {
    nonisolated let ledger: TaskLedger
    nonisolated let executor: any SerialExecutor

    init(_ ledger: TaskLedger, executor: any SerialExecutor) {
        self.ledger = ledger
        self.executor = executor
    }

    /// The transport's loop, where it has one.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    /// The live tasks, in the order of their creation.
    public var all: [AnySessionTask] { ledger.records.map { AnySessionTask($0) } }

    /// The number of live tasks.
    public var count: Int { ledger.records.count }

    /// What every live task is and has moved at this moment, in the order of their creation.
    public var snapshot: [Snapshot] { ledger.records.map { Snapshot($0) } }

    /// The live task of this number; nil when it has ended.
    public func task(_ id: TaskID) -> AnySessionTask? { ledger.record(id).map { AnySessionTask($0) } }

    /// The states of one live task, the current one first, the terminal one never lost, then the end. An empty stream
    /// for a task that is not live.
    public func states(of id: TaskID) -> AsyncStream<Session.TaskState> {
        guard let record = ledger.record(id) else { return AsyncStream { nil } }
        return record.states.stream()
    }

    /// Cancels every live task. Returns at once; `Session.drained()` waits for their ends.
    public func cancelAll() {
        for record in ledger.records { record.cancel() }
    }

    /// What happens to the session's tasks from now on. Each access gives a stream of its own that holds up to 1,024
    /// events for a slow reader; what comes beyond is counted by one `.dropped`, in its place. Ends after
    /// `.sessionInvalidated`, and when the session is gone and its last task has ended.
    ///
    /// To follow one task to its end without loss, read its `states`.
    public nonisolated var events: AsyncStream<Event> { ledger.subscribe() }
}

extension TaskRegistry {
    /// What can happen to a session's tasks.
    public enum Event: Sendable {
        /// A task was started, or taken up after a pause.
        case resumed(AnySessionTask)
        /// A running task was paused.
        case suspended(AnySessionTask)
        /// A download's file is in its place.
        case fileMoved(AnySessionTask, to: URL)
        /// A download's file could not be put in its place.
        case moveFailed(AnySessionTask, NetworkError)
        /// A task has ended and its value was delivered.
        case completed(Completion)
        /// The session takes no more tasks, and its last one has ended. The stream ends after this.
        case sessionInvalidated(Session.ID)
        /// So many events did not fit into this stream's buffer.
        case dropped(Int)
    }

    /// How a task ended. Bodies and decoded values are not held here: they are reached through the task's own handle.
    public struct Completion: Sendable {
        /// The task.
        public let task: AnySessionTask
        /// The head of its response, if one came.
        public let response: ResponseHead?
        /// Why it failed; nil when it has a value.
        public let error: NetworkError?
        /// The file of a download that has one.
        public let file: URL?
        /// The type that the task's decoder gives.
        public let valueType: any Any.Type
        /// What was measured.
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
        /// What the task is doing.
        public let state: Session.TaskState
        /// Its place among what is queued.
        public let priority: Request.Priority
        /// How far the request's body is sent.
        public let uploadProgress: Session.Progress
        /// How far the response's body has come.
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
