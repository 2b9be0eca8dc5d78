import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a session's tasks need to live on without it: they finish with the configuration they began with, also when the
/// `Session` itself is gone.
package final class SessionContext: Sendable {
    package let id: Session.ID
    package let configuration: Session.Configuration
    package let transport: any Transport
    let ledger: TaskLedger
    let files: FileStore
    let observers: [any SessionObserver]
    let hasInterceptors: Bool
    let hasPolicy: Bool
    let hasCredentials: Bool
    /// What the session's requests were let in with.
    let authorizations = AuthenticationCache()
    /// The session's cookies; nil for none.
    let cookies: CookieStore?
    /// The header fields that the configuration adds to each request.
    let headers: SessionHeaders
    /// Whether the configuration's headers alone can be sent: looked at once, not with every request.
    let hasValidHeaders: Bool

    init(configuration: Session.Configuration, transport: any Transport, files: FileStore) {
        id = Session.ID.next()
        self.configuration = configuration
        self.transport = transport
        self.files = files
        observers = configuration.observers
        hasInterceptors = !configuration.interceptors.isEmpty
        hasPolicy = configuration.policy != nil
        hasCredentials = configuration.credentials != nil
        cookies = configuration.cookies.makeStore()
        headers = SessionHeaders(configuration.headers, secretsTo: configuration.secretHeaderOrigins)
        hasValidHeaders = RequestPlan.problem(of: configuration.headers) == nil
        ledger = TaskLedger(sessionID: id, observers: configuration.observers)
        OrphanSweeper.shared.sweepTemporaryFolder()
    }

    /// A registered task, suspended until its first `resume`.
    func makeTask<Value: Sendable>(
        _ plan: RequestPlan, startsImmediately: Bool, _ operation: @escaping Operation<Value>
    ) -> SessionTask<Value> {
        let result = TaskValue<Value>()
        let record = TaskRecord(id: ledger.nextID(), context: self, plan: plan, valueType: Value.self)
        record.assign(result) { record in
            let outcome = await record.run(operation)
            record.end(outcome.error, file: outcome.file) { result.deliver(outcome.result) }
        }
        guard ledger.addFresh(record) else { return failedTask(plan.request, invalidated(plan.request)) }
        if startsImmediately { record.resume() }
        return SessionTask(record: record, result: result)
    }

    /// A task that could not be: it has ended, and the registry never knew it.
    func failedTask<Value: Sendable>(_ request: Request?, _ error: NetworkError) -> SessionTask<Value> {
        let result = TaskValue<Value>()
        let record = TaskRecord(id: ledger.nextID(), context: self, plan: nil, refused: request, valueType: Value.self)
        record.fail()
        result.deliver(.failure(error.identified(task: record.id, session: id, label: record.label)))
        return SessionTask(record: record, result: result)
    }

    /// A registered task that collects a response in the caller's own Swift task; cancelling that cancels the transfer.
    @concurrent
    func response<Value: Sendable>(
        to plan: RequestPlan, _ decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        if plan.hasInterceptors { return try await runWithHandle(plan, plan.collecting(decoder)) }
        let record = TaskRecord(id: ledger.nextID(), context: self, plan: plan, valueType: Response<Value>.self)
        guard record.startInCaller() else { throw invalidated(plan.request) }
        let outcome = await withTaskCancellationHandler {
            await record.run { record throws(NetworkError) in try await plan.collect(record, decoder) }
        } onCancel: {
            record.cancel()
        }
        // Consumed: a response is many references.
        let result = (consume outcome).result
        switch consume result {
        case .success(let response):
            record.end(nil)
            return response
        case .failure(let error):
            record.end(error)
            throw error
        }
    }

    /// An interceptor can wait for something other than the wire. It runs in its own Swift task, which is cancelled
    /// together with the session's task, also by the registry. Returns when the task has left the registry, even if the
    /// caller is cancelled.
    private func runWithHandle<Value: Sendable>(
        _ plan: RequestPlan, _ operation: @escaping Operation<Value>
    ) async throws(NetworkError) -> Value {
        let task = makeTask(plan, startsImmediately: true, operation)
        let result = await withTaskCancellationHandler {
            await task.result.outcome()
        } onCancel: {
            task.cancel()
        }
        return try result.get()
    }

    /// Tells a stage to those who watch.
    @inline(__always)
    func observe(_ tell: (any SessionObserver) -> Void) {
        if observers.isEmpty { return }
        for observer in observers { tell(observer) }
    }

    func invalidated(_ request: Request) -> NetworkError {
        NetworkError(TransferFailure(.sessionInvalidated, "the session was invalidated"), request: request)
            .identified(session: id)
    }
}

/// What a task does between its start and its end.
typealias Operation<Value: Sendable> = @Sendable (TaskRecord) async throws(NetworkError) -> Value

extension TaskRecord {
    struct RunOutcome<Value: Sendable> {
        let result: Result<Value, NetworkError>

        var error: NetworkError? {
            if case .failure(let error) = result { error } else { nil }
        }

        var file: URL? {
            if case .success(let value) = result { value as? URL } else { nil }
        }
    }

    /// Runs an operation; its error tells which task it was. Called off every actor.
    @inline(__always)
    func run<Value: Sendable>(
        _ operation: (TaskRecord) async throws(NetworkError) -> Value
    ) async -> RunOutcome<Value> {
        do {
            return RunOutcome(result: .success(try await operation(self)))
        } catch {
            let isFromCancellation = isCancelled && error.isThrownByHooks
            let identified = (isFromCancellation ? error.asCancellation : error)
                .identified(task: id, session: context.id, label: label)
            return RunOutcome(result: .failure(identified.carrying(resumeData)))
        }
    }
}

extension Session {
    /// The identity of a session: tells the tasks of several sessions apart.
    public struct ID: Sendable, Hashable, CustomStringConvertible {
        /// Unique in the process.
        public let number: UInt64

        private static let last = Atomic<UInt64>(0)

        static func next() -> ID { ID(number: last.wrappingAdd(1, ordering: .relaxed).newValue) }

        /// The number, after the word session.
        public var description: String { "session \(number)" }
    }
}

extension SessionContext: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show headers and credentials.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
