import TernConcurrency

/// Where a task's value waits for whoever asks for it.
package protocol TaskResult: AnyObject, Sendable {
    func erasedValue() async throws(NetworkError) -> any Sendable
}

/// The value of one task: delivered once, awaited by any number of callers.
final class TaskValue<Value: Sendable>: TaskResult {
    private struct Shared {
        var result: Result<Value, NetworkError>?
        var waiters: [Waiter<Void>] = []
    }

    private let shared = Lock(Shared())

    func deliver(_ result: Result<Value, NetworkError>) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            guard shared.result == nil else { return [] }
            shared.result = result
            defer { shared.waiters = [] }
            return shared.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Cancelling the caller ends its wait alone, with `.cancelled`; the task goes on.
    func value() async throws(NetworkError) -> Value {
        let result = await resultWhenThere { waiter in await waiter.wait() }
        guard let result else {
            throw NetworkError(.cancelled, reason: "the wait for the task's value was cancelled; the task goes on")
        }
        return try result.get()
    }

    /// Returns the value or the error, for a caller whose cancellation cancels the task. Waits until the task has ended
    /// and left the registry, and returns the task's own error.
    func outcome() async -> Result<Value, NetworkError> {
        let result = await resultWhenThere { waiter in await waiter.wait(onCancel: {}) }
        return result ?? .failure(NetworkError(.cancelled, reason: TransferFailure.cancelled.reason))
    }

    private func resultWhenThere(_ wait: (Waiter<Void>) async -> Void) async -> Result<Value, NetworkError>? {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            guard shared.result == nil else { return false }
            shared.waiters.append(waiter)
            return true
        }
        if isWaiting {
            await wait(waiter)
            shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
        }
        return shared.withLock { $0.result }
    }

    func erasedValue() async throws(NetworkError) -> any Sendable { try await value() }
}
