import TernConcurrency

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
