import TernConcurrency

/// What every handle to a task offers, whatever its value.
///
/// Streams: each access gives a stream of its own that begins with the current element, keeps the newest for a slow
/// reader, always delivers the last one, and ends, however the task ends.
public protocol TaskHandle: Sendable, Identifiable where ID == TaskID {
    /// The same task without its type.
    var erased: AnySessionTask { get }
}

extension TaskHandle {
    private var record: TaskRecord { erased.record }

    /// The number of the task, unique in its session.
    public var id: TaskID { record.id }

    /// The session that the task belongs to.
    public var sessionID: Session.ID { record.context.id }

    /// A name for logs, events and errors; the request's at first. May be set at any time.
    public var label: String? {
        get { record.label }
        nonmutating set { record.label = newValue }
    }

    /// The request as it was given; nil for a task that the system kept from an earlier run.
    public var request: Request? { record.request }

    /// What the task is doing.
    public var state: Session.TaskState { record.state }

    /// The states from now on, the current one first, the terminal one never lost.
    public var states: AsyncStream<Session.TaskState> { record.states.stream() }

    /// The place among what is queued. Setting it acts on a task that still waits for a connection.
    public var priority: Request.Priority {
        get { record.priority }
        nonmutating set { record.priority = newValue }
    }

    /// How far the response's body has come: at most about a hundred elements a second, the last one in any case.
    public var progress: AsyncStream<Session.Progress> { record.meter.downloadStream }

    /// How far the request's body is sent: at most about a hundred elements a second, the last one in any case.
    public var uploadProgress: AsyncStream<Session.Progress> { record.meter.uploadStream }

    /// How far the response's body has come at this moment.
    package var progressNow: Session.Progress { record.meter.download }

    /// How far the request's body is sent at this moment.
    package var uploadProgressNow: Session.Progress { record.meter.upload }

    /// The head of the response, as soon as it is there; nil when the task ends, or the caller is cancelled, without one.
    public var response: ResponseHead? { get async { await record.headWhenThere() } }

    /// What was measured, once the task's last attempt has ended.
    public var metrics: TaskMetrics? { record.metrics }

    /// What is needed to take up a resumable download: once it was cancelled or failed, and while it runs, for a process
    /// that may be killed, with what had come by then. Nil for all else, also for one that has succeeded.
    public var resumeData: ResumeData? { record.resumeData }

    /// Starts the task, or takes it up after a pause. No effect on a running or ended one.
    public func resume() { record.resume() }

    /// Moves no more bytes until `resume()`; no time limit runs meanwhile. No effect on a task that is not running.
    public func pause() { record.pause() }

    /// Ends the task with an error of kind `.cancelled`. No effect on an ended one.
    public func cancel() { record.cancel() }
}
