import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The work of a task between its start and its end.
typealias TaskOperation<Value: Sendable> = @Sendable (TaskRecord) async throws(NetworkError) -> Value

extension TaskRegistry {
    /// Creates and registers a task. It is suspended until its first `resume`, unless `startsImmediately` is true.
    nonisolated func makeTask<Value: Sendable>(
        _ request: PreparedRequest, startsImmediately: Bool, operation: @escaping TaskOperation<Value>
    ) -> SessionTask<Value> {
        guard admission.admit() else { return failedTask(request.request, invalidated(request.request)) }
        let result = TaskValue<Value>()
        let record = TaskRecord(id: nextID(), registry: self, request: request, valueType: Value.self)
        record.assign(operation: operation, to: result)
        post(.add, of: record)
        if startsImmediately { record.resume() }
        return SessionTask(record: record, result: result)
    }

    /// Creates a task that has already failed. It is not in the registry.
    nonisolated func failedTask<Value: Sendable>(_ request: Request?, _ error: NetworkError) -> SessionTask<Value> {
        let result = TaskValue<Value>()
        let record = TaskRecord(id: nextID(), registry: self, request: nil, refused: request, valueType: Value.self)
        record.fail()
        result.deliver(.failure(error.identified(task: record.id, session: sessionID, label: record.label)))
        return SessionTask(record: record, result: result)
    }

    /// Returns the error of a request to a session that takes no more tasks.
    nonisolated func invalidated(_ request: Request) -> NetworkError {
        NetworkError(TransferFailure(.sessionInvalidated, "the session was invalidated"), request: request)
            .identified(session: sessionID)
    }
}

/// Decides whether a session takes a task, and counts the tasks that it took and that have not ended. Any thread can ask,
/// so that a task that is created after the session was invalidated fails at once.
package struct TaskAdmission: ~Copyable, Sendable {
    private static let closed: UInt64 = 1 << 63

    /// The number of tasks, and in its highest bit whether the session takes no more.
    private let state = Atomic<UInt64>(0)

    /// A Boolean value that indicates whether the session has no task.
    package var isIdle: Bool { state.load(ordering: .acquiring) & ~Self.closed == 0 }

    /// A Boolean value that indicates whether the session takes no more tasks.
    var isClosed: Bool { state.load(ordering: .relaxed) & Self.closed != 0 }

    /// Takes a task. Returns false if the session takes no more.
    func admit() -> Bool {
        var current = state.load(ordering: .relaxed)
        while current & Self.closed == 0 {
            let (isDone, found) = state.weakCompareExchange(
                expected: current, desired: current + 1, ordering: .acquiringAndReleasing)
            if isDone { return true }
            current = found
        }
        return false
    }

    /// Ends a task that was taken. Returns whether it was the last one.
    func end() -> Bool {
        state.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue & ~Self.closed == 0
    }

    /// Takes no more tasks.
    func close() { _ = state.bitwiseOr(Self.closed, ordering: .acquiringAndReleasing) }
}
