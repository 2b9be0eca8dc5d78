#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sends requests and moves files: a configuration, a pool of connections, and the registry of the tasks.
///
/// `Session` works without `Client`:
///
/// ```swift
/// let session = Session()
/// let request = try Request(.get, "https://api.example.com/v1/users/1")
/// let response = try await session.response(for: request)      // Response<Data>
/// ```
///
/// A session that is dropped lets its live tasks finish with the configuration they began with, and closes its
/// connections then. All methods that start work are synchronous or run off the caller's actor.
public actor Session {
    /// The session of every `Client` that is made without one.
    public static let shared = Session()

    package nonisolated let context: SessionContext
    /// The live tasks and their events.
    public nonisolated let tasks: TaskRegistry

    /// A session with connections of its own, made when the first request needs one.
    public init(configuration: Configuration = Configuration()) {
        self.init(configuration: configuration, transport: DefaultTransport.make(configuration))
    }

    package init(configuration: Configuration, transport: any Transport, files: FileStore = .shared) {
        context = SessionContext(configuration: configuration, transport: transport, files: files)
        tasks = TaskRegistry(context.ledger, executor: transport.executor)
    }

    deinit {
        context.ledger.orphan()
    }

    /// The transport's loop, where it has one.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe context.transport.executor.asUnownedSerialExecutor()
    }

    /// The identity of this session, carried by its tasks, events and errors.
    public nonisolated var id: ID { context.id }

    /// The configuration that the session was made with.
    public nonisolated var configuration: Configuration { context.configuration }

    // MARK: Responses

    /// Sends a request and collects its response in memory. Cancelling the calling Swift task cancels the transfer.
    ///
    /// - Throws: `NetworkError`, also of kind `.status` for a status outside 200–299.
    public nonisolated func response(for request: Request) async throws(NetworkError) -> Response<Data> {
        try await response(for: request, decode: BodyDecoder.data)
    }

    /// Sends a request, collects its response in memory and decodes it, off the caller's actor.
    public nonisolated func response<Value: Sendable>(
        for request: consuming Request, decode: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let plan = try RequestPlan(consume request, context, delivery: .collected, fitting: decode.fitting)
        return try await context.response(to: plan, decode)
    }

    /// A task that sends a request and collects its response in memory.
    ///
    /// It is suspended, and moves no byte until `resume()`, unless `startsImmediately` or the session's configuration
    /// says otherwise. A request that cannot be sent gives a task that has already failed.
    public nonisolated func task(for request: Request, startsImmediately: Bool? = nil) -> SessionTask<Response<Data>> {
        task(for: request, decode: BodyDecoder.data, startsImmediately: startsImmediately)
    }

    /// A task that sends a request, collects its response in memory and decodes it.
    public nonisolated func task<Value: Sendable>(
        for request: Request, decode: BodyDecoder<Value>, startsImmediately: Bool? = nil
    ) -> SessionTask<Response<Value>> {
        makeTask(request, decode.fitting, startsImmediately) { plan in plan.collecting(decode) }
    }

    /// Like `task(for:decode:)`, with the value alone.
    package nonisolated func valueTask<Value: Sendable>(
        for request: Request, decode: BodyDecoder<Value>, startsImmediately: Bool? = nil
    ) -> SessionTask<Value> {
        makeTask(request, decode.fitting, startsImmediately) { plan in
            let collect = plan.collecting(decode)
            return { record throws(NetworkError) in try await collect(record).value }
        }
    }

    private nonisolated func makeTask<Value: Sendable>(
        _ request: Request, _ fitting: AcceptedTypes, _ startsImmediately: Bool?,
        _ operation: (RequestPlan) -> Operation<Value>
    ) -> SessionTask<Value> {
        do {
            let plan = try RequestPlan(request, context, delivery: .collected, isPausable: true, fitting: fitting)
            return context.makeTask(
                plan, startsImmediately: startsImmediately ?? context.configuration.startsImmediately,
                operation(plan))
        } catch {
            return context.failedTask(request, error)
        }
    }

    // MARK: The end

    /// Returns when every task known at the call has ended and delivered its value, or the caller is cancelled.
    public func drained() async {
        await context.ledger.drained()
    }

    /// Takes no more tasks, lets the live ones finish, and returns when the last has delivered.
    public func finishTasksAndInvalidate() async {
        context.ledger.close()
        await context.ledger.drained()
    }

    /// Takes no more tasks, cancels the live ones, and returns when the last has delivered.
    public func invalidateAndCancel() async {
        context.ledger.close()
        await tasks.cancelAll()
        await context.ledger.drained()
    }
}

extension Session: CustomReflectable {
    /// The identity, and the configuration without secrets. Without this mirror, `dump` would show the transport's
    /// proxies.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["id": id, "configuration": configuration]) }
}
