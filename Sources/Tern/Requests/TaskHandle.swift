import TernConcurrency

/// A handle to a task whose value type is not known, from the events and snapshots of a registry.
public struct AnySessionTask: TaskHandle {
    let record: TaskRecord

    init(_ record: TaskRecord) { self.record = record }

    /// Returns the task's value as `type`. A typed handle of the task must still exist.
    ///
    /// - Throws: The task's error; an error of kind `.unsupported` if no typed handle is left, the task is a stream, or
    ///   its value has another type.
    public func value<T: Sendable>(as type: T.Type) async throws(NetworkError) -> T {
        guard let result = record.result else {
            throw NetworkError(.unsupported, reason: "no handle holds the value of task \(id) any more")
        }
        guard let value = try await result.endOrCancellation().get().erased as? T else {
            // The type is right and the value is missing: the reader of a stream has the body.
            let isStream = record.valueType == T.self
            let reason =
                isStream
                ? "is a stream: its reader has the body" : "has a value of type \(record.valueType), not \(type)"
            throw NetworkError(.unsupported, reason: "task \(id) \(reason)")
        }
        return value
    }

    /// The type of the task's value.
    public var valueType: any Any.Type { record.valueType }

    /// The handle itself.
    public var erased: AnySessionTask { self }
}

extension AnySessionTask: CustomStringConvertible, CustomReflectable {
    /// The task's number, its state, its request and its label; the values of the query are hidden.
    public var description: String {
        "task \(id), \(state)" + (request.map { ": \($0)" } ?? "") + (label.map { " [\($0)]" } ?? "")
    }

    /// An empty mirror. Without it, `dump` would show everything that the task holds.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The properties and commands of every handle to a task, regardless of the type of its value.
///
/// Each access to a stream returns a new stream. It begins with the current element, keeps the newest one for a slow
/// reader, always delivers the last one, and ends when the task ends.
public protocol TaskHandle: Sendable, Identifiable where ID == TaskID {
    /// The same task without its type.
    var erased: AnySessionTask { get }
}

extension TaskHandle {
    private var record: TaskRecord { erased.record }

    /// The number of the task, unique in its session.
    public var id: TaskID { record.id }

    /// The session that the task belongs to.
    public var sessionID: Session.ID { record.registry.sessionID }

    /// A name for logs, events and errors. It is that of the request at first, and can be set at any time.
    public var label: String? {
        get { record.label }
        nonmutating set { record.label = newValue }
    }

    /// The request that the task was created with; nil for a task that the system kept from an earlier run.
    public var request: Request? { record.request }

    /// The state of the task.
    public var state: Session.TaskState { record.state }

    /// The states from now on. The current one comes first, and the terminal one is never lost.
    public var states: AsyncStream<Session.TaskState> { record.states.stream() }

    /// The priority among the tasks that wait for a connection. Setting it acts on a task that still waits.
    public var priority: Request.Priority {
        get { record.priority }
        nonmutating set { record.priority = newValue }
    }

    /// The progress of the response's body: at most about 100 elements a second, and always the last one.
    public var progress: AsyncStream<Session.Progress> { record.meter.downloadStream }

    /// The progress of the request's body: at most about 100 elements a second, and always the last one.
    public var uploadProgress: AsyncStream<Session.Progress> { record.meter.uploadStream }

    /// The present progress of the response's body, without a stream. Its speed is nil.
    public var progressNow: Session.Progress { record.meter.download }

    /// The present progress of the request's body, without a stream. Its speed is nil.
    public var uploadProgressNow: Session.Progress { record.meter.upload }

    /// The head of the response, as soon as it arrives; nil when the task ends, or the caller is cancelled, without
    /// one.
    public var response: ResponseHead? { get async { await record.waitForHead() } }

    /// The measurements of the task's last attempt; nil before its end.
    public var metrics: TaskMetrics? { record.metrics }

    /// The data that continue a resumable download, once it was cancelled or failed. While it runs, they describe the
    /// bytes that have arrived, in case the process is killed. nil for other tasks, and for a download that has
    /// succeeded.
    public var resumeData: ResumeData? { record.resumeData }

    /// Starts the task, or resumes it after a pause. Has no effect on a task that is running or has ended.
    public func resume() { record.resume() }

    /// Pauses the task. Its time limits stop until `resume()`. Has no effect on a task that is not running.
    public func pause() { record.pause() }

    /// Ends the task with an error of kind `.cancelled`. Has no effect on a task that has ended.
    public func cancel() { record.cancel() }
}
