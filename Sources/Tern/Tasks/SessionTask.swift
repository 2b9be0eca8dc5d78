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

extension SessionTask: CustomStringConvertible, CustomReflectable {
    /// The task's number, its state, its request and its label; the values of the query are hidden.
    public var description: String { erased.description }

    /// An empty mirror. Without it, `dump` would show everything that the task holds.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
