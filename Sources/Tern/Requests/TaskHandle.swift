import TernConcurrency

/// The state of a task as its handles, and the events, see it. `TaskRecord` has it. A protocol, because interceptors,
/// policies and observers receive handles, and a task refers to them.
protocol TaskControl: AnyObject, Sendable {
    var id: TaskID { get }
    var sessionID: Session.ID { get }
    /// The type of the task's value.
    var valueType: any Any.Type { get }
    var label: String? { get set }
    var request: Request? { get }
    var state: Session.TaskState { get }
    var states: Latest<Session.TaskState> { get }
    var priority: Request.Priority { get set }
    var meter: ProgressMeter { get }
    var head: ResponseHead? { get }
    var metrics: TaskMetrics? { get }
    var resumeData: ResumeData? { get }
    /// The rest of `Timeouts.total`; nil without a limit.
    var timeLeft: Duration? { get }
    /// The end of the task; nil without a handle of its type.
    var result: TaskDelivery? { get }

    /// Waits for the head. Returns nil when the task ends, or the caller is cancelled, without one.
    func waitForHead() async -> ResponseHead?
    /// Measures the body of a task that has sent nothing yet, once, so that its progress has a total.
    func measureBody() async
    func resume()
    func pause()
    func cancel()
    /// Does work in a Swift task of its own, which is cancelled when this task, or the calling Swift task, is
    /// cancelled, and when the time of this task is over.
    func cancellable<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value
}

/// A handle to a task whose value type is not known, from the events and snapshots of a registry.
public struct AnySessionTask: TaskHandle {
    let control: any TaskControl

    init(_ control: any TaskControl) { self.control = control }

    /// Returns the task's value as `type`. A typed handle of the task must still exist.
    ///
    /// - Throws: The task's error; an error of kind `.unsupported` if no typed handle is left, the task is a stream, or
    ///   its value has another type.
    public func value<T: Sendable>(as type: T.Type) async throws(NetworkError) -> T {
        guard let result = control.result else {
            throw NetworkError(.unsupported, reason: "no handle holds the value of task \(id) any more")
        }
        guard let value = try await result.endOrCancellation().get().erased as? T else {
            // The type is right and the value is missing: the reader of a stream has the body.
            let isStream = control.valueType == T.self
            let reason =
                isStream
                ? "is a stream: its reader has the body" : "has a value of type \(control.valueType), not \(type)"
            throw NetworkError(.unsupported, reason: "task \(id) \(reason)")
        }
        return value
    }

    /// The type of the task's value.
    public var valueType: any Any.Type { control.valueType }

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
    private var control: any TaskControl { erased.control }

    /// The number of the task, unique in its session.
    public var id: TaskID { control.id }

    /// The session that the task belongs to.
    public var sessionID: Session.ID { control.sessionID }

    /// A name for logs, events and errors. It is that of the request at first, and can be set at any time.
    public var label: String? {
        get { control.label }
        nonmutating set { control.label = newValue }
    }

    /// The request that the task was created with; nil for a task that the system kept from an earlier run.
    public var request: Request? { control.request }

    /// The state of the task.
    public var state: Session.TaskState { control.state }

    /// The states from now on. The current one comes first, and the terminal one is never lost.
    public var states: AsyncStream<Session.TaskState> { control.states.stream() }

    /// The priority among the tasks that wait for a connection. Setting it acts on a task that still waits.
    public var priority: Request.Priority {
        get { control.priority }
        nonmutating set { control.priority = newValue }
    }

    /// The progress of the response's body: at most about 100 elements a second, and always the last one.
    public var progress: AsyncStream<Session.Progress> { control.meter.downloadStream }

    /// The progress of the request's body: at most about 100 elements a second, and always the last one.
    public var uploadProgress: AsyncStream<Session.Progress> { control.meter.uploadStream }

    /// The present progress of the response's body, without a stream. Its speed is nil.
    public var progressNow: Session.Progress { control.meter.download }

    /// The present progress of the request's body, without a stream. Its speed is nil.
    public var uploadProgressNow: Session.Progress { control.meter.upload }

    /// The head of the response, as soon as it arrives; nil when the task ends, or the caller is cancelled, without
    /// one.
    public var response: ResponseHead? { get async { await control.waitForHead() } }

    /// The measurements of the task's last attempt; nil before its end.
    public var metrics: TaskMetrics? { control.metrics }

    /// The data that continue a resumable download, once it was cancelled or failed. While it runs, they describe the
    /// bytes that have arrived, in case the process is killed. nil for other tasks, and for a download that has
    /// succeeded.
    public var resumeData: ResumeData? { control.resumeData }

    /// Starts the task, or resumes it after a pause. Has no effect on a task that is running or has ended.
    public func resume() { control.resume() }

    /// Pauses the task. Its time limits stop until `resume()`. Has no effect on a task that is not running.
    public func pause() { control.pause() }

    /// Ends the task with an error of kind `.cancelled`. Has no effect on a task that has ended.
    public func cancel() { control.cancel() }
}

extension Session.Progress {
    /// Returns the progress of the responses of several tasks together: bytes, speed and remaining time.
    ///
    /// The stream has at most 10 elements a second. It begins with the present sum, and its last element, for which
    /// `isFinished` is true, comes when the last task has ended, with or without success. A slow reader misses
    /// elements, never the last one. Cancelling the reader ends the stream, and no task.
    ///
    /// ```swift
    /// for await progress in Session.Progress.combined(of: tasks) { bar.value = progress.fractionCompleted ?? 0 }
    /// ```
    public static func combined(of tasks: [any TaskHandle]) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream { combined(of: tasks.lazy.map { $0.erased.progressNow }) }
    }

    /// Returns the progress of the request bodies of several tasks together, like `combined(of:)` for their responses.
    ///
    /// The total is known before the tasks begin: bytes, files, forms of these, and streams of a stated length are
    /// measured at once. It is nil as long as the length of one body is not known: that of a stream without a stated
    /// length or of a compressed file until its task has ended, and that of an encoded value, such as JSON, or of
    /// compressed bytes until its task has begun. A request that is sent again counts from zero, and its total stays;
    /// the sum does not go back.
    public static func combined(ofUploads tasks: [any TaskHandle]) -> AsyncStream<Session.Progress> {
        ProgressSampler.stream {
            for task in tasks { await task.erased.control.measureBody() }
            return combined(of: tasks.lazy.map { $0.erased.uploadProgressNow })
        }
    }
}
