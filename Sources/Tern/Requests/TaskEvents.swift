#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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

    /// The end of a task.
    ///
    /// A completion that waits in a stream of events keeps no body alive: it finds the value through the task's own
    /// handle, and without one it has none.
    public struct Completion: Sendable {
        /// The task.
        public let task: AnySessionTask
        /// The head of its response; nil without one.
        public let response: ResponseHead?
        /// The error; nil if the task has a value.
        public let error: NetworkError?
        /// The file of a download, or of a response that a policy made one of; nil for other tasks and without a file.
        public let file: URL?
        /// The type of the task's value.
        public let valueType: any Any.Type
        /// The measurements of the task.
        public let metrics: TaskMetrics?
        private var observed: (any Sendable)?

        /// The value of the task, such as `Response<Data>` for `Session.task(for:)`; nil for a task that failed, and
        /// for a stream.
        ///
        /// An observer (`SessionObserver.didObserve(_:)`) receives the value of each task. In a stream of events, it is
        /// nil once no typed handle of the task is left, and always for a call without a handle, such as `client.get`.
        public var value: (any Sendable)? { observed ?? task.control.result?.deliveredValue }

        /// Returns the same completion with the value.
        func carrying(_ value: (any Sendable)?) -> Completion {
            var completion = self
            completion.observed = value
            return completion
        }

        init(_ task: AnySessionTask, error: NetworkError?, file: URL?) {
            self.task = task
            self.error = error
            response = task.control.head
            self.file = file ?? response?.file
            valueType = task.control.valueType
            metrics = task.control.metrics
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

        init(_ task: any TaskControl) {
            id = task.id
            sessionID = task.sessionID
            label = task.label
            request = task.request
            state = task.state
            priority = task.priority
            uploadProgress = task.meter.upload
            progress = task.meter.download
        }
    }
}
