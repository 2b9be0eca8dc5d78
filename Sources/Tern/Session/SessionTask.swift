import TernConcurrency

/// A handle to one task of a session: its state, its progress and its value.
///
/// A handle is a small value that can be copied and sent anywhere. Releasing it cancels nothing. Calls on a handle take
/// effect in call order.
public struct SessionTask<Value: Sendable>: TaskHandle {
    let record: TaskRecord
    let result: TaskValue<Value>

    /// The task's value, awaited by any number of callers.
    ///
    /// Cancelling the caller ends only its wait, with an error of kind `.cancelled`. Call `cancel()` to end the task.
    public var value: Value {
        get async throws(NetworkError) { try await result.value() }
    }

    /// The same task without its type.
    public var erased: AnySessionTask { AnySessionTask(record) }
}

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

extension SessionTask: CustomStringConvertible, CustomReflectable {
    /// The task's number, its state, its request and its label; the values of the query are hidden.
    public var description: String { erased.description }

    /// An empty mirror. Without it, `dump` would show everything that the task holds.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
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

/// The value of one task. It is delivered once and awaited by any number of callers.
package struct TaskValue<Value: Sendable>: Sendable {
    let delivery = TaskDelivery()

    package init() {}

    /// Delivers the value or the error. Later calls have no effect.
    package func deliver(_ result: Result<Value, NetworkError>) {
        switch result {
        case .success(let value): delivery.deliver(.success(TaskDelivery.Box(value)))
        case .failure(let error): delivery.deliver(.failure(error))
        }
    }

    /// The value or the error; nil while it is not known.
    var resultNow: Result<Value, NetworkError>? { delivery.end.map(Self.result) }

    /// Waits for the value. Cancelling the caller ends only its wait, with `.cancelled`; the task continues.
    package func value() async throws(NetworkError) -> Value {
        try Self.result(await delivery.endOrCancellation()).get()
    }

    /// Returns the value or the error, for a caller whose cancellation cancels the task. Waits until the task has ended
    /// and left the registry, and returns the task's own error.
    func outcome() async -> Result<Value, NetworkError> {
        let end = await delivery.end { waiter in await waiter.wait(onCancel: {}) }
        return Self.result(end ?? .failure(NetworkError(.cancelled, reason: FailureCause.cancelled.reason)))
    }

    private static func result(_ end: TaskDelivery.End) -> Result<Value, NetworkError> {
        switch end {
        case .failure(let error): .failure(error)
        case .success(let box):
            if let box = box as? TaskDelivery.Box<Value> {
                .success(box.value)
            } else {
                .failure(NetworkError(.unsupported, reason: "the value of the task has another type than its handle"))
            }
        }
    }
}

/// The end of a task, its value or its error, and those who wait for it.
///
/// Without the type of the value: generic code that another module calls looks each of its types up in a table of the
/// runtime, and that took a third of the instructions of a call with a handle.
package final class TaskDelivery: Sendable {
    typealias End = Result<any ValueBox, NetworkError>

    /// A value of any type.
    protocol ValueBox: AnyObject, Sendable {
        var erased: any Sendable { get }
    }

    final class Box<Value: Sendable>: ValueBox {
        let value: Value
        var erased: any Sendable { value }

        init(_ value: Value) { self.value = value }
    }

    private struct Shared {
        var end: End?
        var waiters: [Waiter<Void>] = []
    }

    private let shared = Lock(Shared())

    /// The value or the error; nil while it is not known.
    var end: End? { shared.withLock { $0.end } }

    /// Delivers the value or the error. Later calls have no effect.
    func deliver(_ end: End) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            guard shared.end == nil else { return [] }
            shared.end = end
            defer { shared.waiters = [] }
            return shared.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Delivers an error. Later calls have no effect.
    package func fail(_ error: NetworkError) { deliver(.failure(error)) }

    /// Returns the value or the error once it is delivered; nil if `wait` returns before.
    func end(_ wait: (Waiter<Void>) async -> Void) async -> End? {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            guard shared.end == nil else { return false }
            shared.waiters.append(waiter)
            return true
        }
        if isWaiting {
            await wait(waiter)
            shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
        }
        return end
    }

    /// Waits for the value or the error. Cancelling the caller ends only its wait, with `.cancelled`; the task
    /// continues.
    func endOrCancellation() async -> End {
        await end { waiter in await waiter.wait() }
            ?? .failure(
                NetworkError(.cancelled, reason: "the wait for the task's value was cancelled; the task continues"))
    }

    /// The value; nil before its delivery, and for an error.
    var deliveredValue: (any Sendable)? {
        guard case .success(let box) = end else { return nil }
        return box.erased
    }
}

/// The number of a task. It is unique within its session and never used again there.
public struct TaskID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// A number that counts from 1 in each session.
    public let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    /// Returns whether the task on the left was created first.
    public static func < (left: Self, right: Self) -> Bool { left.number < right.number }

    /// The sign # and the number.
    public var description: String { "#\(number)" }
}
