#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The work of a task between its start and its end.
typealias TaskOperation<Value: Sendable> = @Sendable (TaskRecord) async throws(NetworkError) -> Value

extension TaskRegistry {
    /// Creates a task. It is suspended until its first `resume`.
    ///
    /// - Parameters:
    ///   - startsImmediately: Whether the caller resumes the task at once.
    ///   - place: The place where its work begins.
    nonisolated func makeTask<Value: Sendable>(
        _ request: PreparedRequest, startsImmediately: Bool, place: WorkPlace = .elsewhere,
        operation: @escaping TaskOperation<Value>
    ) -> SessionTask<Value> {
        let result = TaskValue<Value>()
        let record = TaskRecord(
            id: nextID(), registry: self, request: request, valueType: Value.self,
            startsImmediately: startsImmediately, place: place)
        record.assign(operation: operation, to: result)
        guard live.join(record) else {
            record.fail()
            return failedTask(request.request, invalidated(request.request))
        }
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
        NetworkError(FailureCause(.sessionInvalidated, "the session was invalidated"), request: request)
            .identified(session: sessionID)
    }
}

extension TaskRecord {
    /// Sets the operation of a task with a handle. It runs in a Swift task of its own once the task is resumed.
    func assign<Value: Sendable>(operation: @escaping TaskOperation<Value>, to result: TaskValue<Value>) {
        assign(result.delivery) { record in
            let value = await record.run(operation)
            let reported: (any Sendable)? = record.registry.observers.isEmpty ? nil : value.success
            record.end(value.failure, file: value.file, value: reported) { result.deliver(value) }
        }
    }

    /// Runs an operation where the caller runs. The error identifies the task.
    @inline(__always)
    func run<Value: Sendable>(
        _ operation: (TaskRecord) async throws(NetworkError) -> Value
    ) async -> Result<Value, NetworkError> {
        do {
            return .success(try await operation(self))
        } catch {
            return .failure(identified(error))
        }
    }

    /// Returns an error of the work as the error of this task.
    func identified(_ error: NetworkError) -> NetworkError {
        let isStopped = isCancelled || hasExpired
        var error = isStopped && error.isThrownByHooks ? error.asCancellation : error
        if error.isCancelled, !isCancelled, hasExpired { error = deadlineError(error.request ?? request) }
        let identified =
            error
            .identified(task: id, session: registry.sessionID, label: label)
        return identified.carrying(resumeData)
    }

    /// Records the end of an attempt and stops its upload. Returns the outcome.
    ///
    /// - Parameter isOnWire: Whether the attempt went to a server, and was not answered from a store.
    func endAttempt(with outcome: AttemptOutcome, pump: BodyPump?, isOnWire: Bool = true) -> AttemptOutcome {
        pump?.stop()
        reportSentBody()
        if isOnWire { registry.observe { $0.didCollect(outcome.metrics, of: AnySessionTask(self)) } }
        if let report = outcome.metrics.pinReport {
            registry.observe { $0.didFindUnpinned(report, of: AnySessionTask(self)) }
        }
        attemptEnded(outcome, isFinal: outcome.head?.mayBeFollowed != true)
        return outcome
    }
}

extension TaskRecord {
    /// Tells the observers how many bytes of the request's body the attempt has sent. Called before the next attempt.
    func reportSentBody() {
        if registry.observers.isEmpty { return }
        if let count = meter.takeSentBody() {
            registry.observe { $0.didSend(bodyBytes: count, of: AnySessionTask(self)) }
        }
    }
}

extension Result where Failure == NetworkError {
    /// The error; nil for a value.
    var failure: NetworkError? {
        if case .failure(let error) = self { error } else { nil }
    }

    /// The value; nil for an error.
    fileprivate var success: Success? {
        if case .success(let value) = self { value } else { nil }
    }

    /// The file of a download.
    fileprivate var file: URL? {
        if case .success(let value) = self { value as? URL } else { nil }
    }
}
