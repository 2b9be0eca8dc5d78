#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The parts of a session that its tasks use. Tasks hold it, so they finish with the configuration they began with, even
/// if the `Session` itself is gone.
package final class SessionContext: Sendable {
    package let id: Session.ID
    package let configuration: Session.Configuration
    package let transport: any Transport
    let taskTable: TaskTable
    let files: FileStore
    /// The clock for the time limits on reading bodies that are not delivered.
    let clock: any Clock<Duration>
    let observers: [any SessionObserver]
    let hasInterceptors: Bool
    let hasPolicy: Bool
    let hasCredentials: Bool
    /// The authorizations that servers accepted.
    let authorizations = AuthenticationCache()
    /// The session's cookies; nil for none.
    let cookies: CookieStore?
    /// The header fields that the configuration adds to each request.
    let headers: SessionHeaders
    /// A Boolean value that indicates whether the configuration's headers can be sent. Checked once, not for each request.
    let hasValidHeaders: Bool

    init(configuration: Session.Configuration, transport: any Transport, files: FileStore, clock: any Clock<Duration>) {
        id = Session.ID.next()
        self.configuration = configuration
        self.transport = transport
        self.files = files
        self.clock = clock
        observers = configuration.observers
        hasInterceptors = !configuration.interceptors.isEmpty
        hasPolicy = configuration.policy != nil
        hasCredentials = configuration.credentials != nil
        cookies = configuration.cookies.makeStore()
        headers = SessionHeaders(configuration.headers, secretsTo: configuration.secretHeaderOrigins)
        hasValidHeaders = PreparedRequest.problem(of: configuration.headers) == nil
        taskTable = TaskTable(sessionID: id, observers: configuration.observers)
        OrphanSweeper.shared.sweepTemporaryFolder()
    }

    /// Creates and registers a task. It is suspended until its first `resume`, unless `startsImmediately` is true.
    func makeTask<Value: Sendable>(
        _ request: PreparedRequest, startsImmediately: Bool, operation: @escaping TaskOperation<Value>
    ) -> SessionTask<Value> {
        let result = TaskValue<Value>()
        let record = TaskRecord(id: taskTable.nextID(), context: self, request: request, valueType: Value.self)
        record.assign(operation: operation, to: result)
        guard taskTable.addFresh(record) else { return failedTask(request.request, invalidated(request.request)) }
        if startsImmediately { record.resume() }
        return SessionTask(record: record, result: result)
    }

    /// Creates a task that has already failed. It is not in the registry.
    func failedTask<Value: Sendable>(_ request: Request?, _ error: NetworkError) -> SessionTask<Value> {
        let result = TaskValue<Value>()
        let record = TaskRecord(
            id: taskTable.nextID(), context: self, request: nil, refused: request, valueType: Value.self)
        record.fail()
        result.deliver(.failure(error.identified(task: record.id, session: id, label: record.label)))
        return SessionTask(record: record, result: result)
    }

    /// Calls the observers.
    @inline(__always)
    func observe(_ notify: (any SessionObserver) -> Void) {
        if observers.isEmpty { return }
        for observer in observers { notify(observer) }
    }

    /// Returns the error of a request to a session that takes no more tasks.
    func invalidated(_ request: Request) -> NetworkError {
        NetworkError(TransferFailure(.sessionInvalidated, "the session was invalidated"), request: request)
            .identified(session: id)
    }
}

/// The work of a task between its start and its end.
typealias TaskOperation<Value: Sendable> = @Sendable (TaskRecord) async throws(NetworkError) -> Value

extension SessionContext: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show headers and credentials.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
