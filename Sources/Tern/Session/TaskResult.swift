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
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            guard shared.result == nil else { return false }
            shared.waiters.append(waiter)
            return true
        }
        if isWaiting {
            await waiter.wait()
            shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
        }
        guard let result = shared.withLock({ $0.result }) else {
            throw NetworkError(.cancelled, reason: "the wait for the task's value was cancelled; the task goes on")
        }
        return try result.get()
    }

    /// The value or the error, also for a caller who was cancelled meanwhile.
    func outcome() async -> Result<Value, NetworkError> {
        do throws(NetworkError) {
            return .success(try await value())
        } catch {
            return .failure(error)
        }
    }

    func erasedValue() async throws(NetworkError) -> any Sendable { try await value() }
}
