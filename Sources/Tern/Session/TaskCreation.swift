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
