/// A handle to one task of a session: what it is, how far it is, and its value.
///
/// A handle is a small value to be copied and sent anywhere. Dropping it cancels nothing. Calls on a handle take effect
/// in call order.
public struct SessionTask<Value: Sendable>: TaskHandle {
    let record: TaskRecord
    let result: TaskValue<Value>

    /// The task's value, awaited by any number of callers.
    ///
    /// Cancelling the caller ends its wait alone, with an error of kind `.cancelled`; `cancel()` ends the task.
    public var value: Value {
        get async throws(NetworkError) { try await result.value() }
    }

    /// The same task without its type.
    public var erased: AnySessionTask { AnySessionTask(record) }
}

/// A handle to a task whose type is not known: from a registry's events and snapshots.
public struct AnySessionTask: TaskHandle {
    let record: TaskRecord

    init(_ record: TaskRecord) { self.record = record }

    /// The task's value as `type`, while a typed handle of it is still held by somebody.
    ///
    /// - Throws: The task's error; an error of kind `.unsupported` when no typed handle is left, the task is
    ///   a stream, or it gives another type.
    public func value<T: Sendable>(as type: T.Type) async throws(NetworkError) -> T {
        guard let result = record.result else {
            throw NetworkError(.unsupported, reason: "nobody holds the value of task \(id) any more")
        }
        guard let value = try await result.erasedValue() as? T else {
            // Of the right type, and not there: a stream has given it to its reader.
            let isStream = record.valueType == T.self
            let reason = isStream ? "is a stream: its reader has the body" : "gives \(record.valueType), not \(type)"
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

    /// Nothing beside ``description``: `dump` would show all that the task holds.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension AnySessionTask: CustomStringConvertible, CustomReflectable {
    /// The task's number, its state, its request and its label; the values of the query are hidden.
    public var description: String {
        "task \(id), \(state)" + (request.map { ": \($0)" } ?? "") + (label.map { " [\($0)]" } ?? "")
    }

    /// Nothing beside ``description``: `dump` would show all that the task holds.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
