import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sends requests, downloads and uploads files, and owns their connections and tasks.
///
/// `Session` works without `Client`:
///
/// ```swift
/// let session = Session()
/// let request = try Request(.get, "https://api.example.com/v1/users/1")
/// let response = try await session.response(for: request)      // Response<Data>
/// ```
///
/// When a session is released, its live tasks finish with the configuration they began with, and then its connections
/// are closed. A session that finishes its tasks is kept until the last one has ended. All methods that start work are synchronous or run off the caller's actor.
///
/// On Linux, a process that was created by `fork` has neither the threads of its parent nor those of Swift's tasks. It
/// must start another program with `exec`; a call on a session ends it with a message.
public actor Session {
    /// The session of every `Client` that is created without one.
    public static let shared = Session()

    /// The live tasks and their events. The registry has the session's executor, so a call between the two changes no
    /// thread.
    public nonisolated let tasks: TaskRegistry

    private let transport: any Transport
    private var life = SessionLife()
    /// Notifies the observers of the invalidation. They do not run on the executor.
    private var invalidationNotice: Task<Void, Never>?

    /// Creates a session with its own connections. They are opened when requests need them. If the configuration has a
    /// stub (`TernTesting`), there are none.
    public init(configuration: Configuration = Configuration()) {
        let stub = configuration.untypedTransport as? any Transport
        self.init(configuration: configuration, transport: stub ?? DefaultTransport.make(configuration))
    }

    /// Creates a session with these interceptors, outermost first, and otherwise the defaults.
    public init(interceptors: [any Interceptor]) {
        var configuration = Configuration()
        configuration.interceptors = interceptors
        self.init(configuration: configuration)
    }

    package init(
        configuration: Configuration, transport: any Transport, files: FileStore = .shared,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.transport = transport
        tasks = TaskRegistry(configuration: configuration, transport: transport, files: files, clock: clock) { cache in
            Stages(interceptors: configuration.interceptors, cache: cache)
        }
    }

    deinit {
        tasks.sessionIsGone()
    }

    /// The executor of the transport: its event loop, if it has one.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe tasks.unownedExecutor
    }

    /// The executor of the session's own event loop.
    ///
    /// A call from a task that prefers it needs no switch between threads, which makes many small requests cheaper:
    ///
    /// ```swift
    /// let users = try await withTaskExecutorPreference(session.executor) {
    ///     try await client.get("users", as: [User].self)
    /// }
    /// ```
    ///
    /// The first eight connections of the session live on this loop; a request on another loop costs two messages more.
    /// A call with an interceptor that can wait for anything (`Interceptor.waitsOnlyInNext`), a handle, a download and
    /// a stream run in a Swift task of their own, without this preference. Interceptors and decoding run on the loop,
    /// too: request `Data` and decode a large body in another task. Never block, and move computation that takes longer
    /// than about a millisecond to another task: until the task suspends, no connection of the loop is served. On
    /// Apple's systems and over a transport without an event loop, this is the concurrent executor of the process.
    public nonisolated var executor: any TaskExecutor { transport.taskExecutor }

    /// The identity of this session. Its tasks, events and errors carry it.
    public nonisolated var id: ID { tasks.sessionID }

    /// The configuration that the session was created with.
    public nonisolated var configuration: Configuration { tasks.configuration }

    // MARK: Event loops

    /// The number of event loops of the process: the threads that serve the connections of all sessions on Linux. The
    /// default is a quarter of the number of online processors, rounded down, at least 1 and at most 8; it does not
    /// know a container's limits. On Apple's systems, 0.
    ///
    /// Each session has one loop as its own, on which its actors run; the loops take turns. The first eight requests to
    /// a host go to one loop, and further ones to that which carries the fewest of them, if the limits of the session
    /// allow eight connections for each loop (`Configuration.maximumConnectionsPerHost`, `maximumConnections`). The
    /// loops share these limits.
    public static var eventLoopCount: Int { DefaultTransport.eventLoopCount }

    /// Sets the number of event loops, from 1 to 64. Call it before the process creates its first session.
    /// `Session.shared` and a `Client` without a session create one.
    ///
    /// - Throws: `EventLoopError` if a session was created before, if the number is outside of the range, and on
    ///   Apple's systems.
    public static func setEventLoopCount(_ count: Int) throws(EventLoopError) {
        if let reason = DefaultTransport.setEventLoopCount(count) { throw EventLoopError(description: reason) }
    }

    /// The reason why the number of event loops cannot be set.
    public struct EventLoopError: Error, CustomStringConvertible {
        /// A sentence that says what is wrong.
        public let description: String
    }

    // MARK: Responses

    /// Sends a request and collects its response in memory. Cancelling the calling Swift task cancels the transfer.
    ///
    /// - Throws: `NetworkError`; of kind `.status` for a status outside 200–299.
    public nonisolated func response(for request: Request) async throws(NetworkError) -> Response<Data> {
        try await response(for: request, decode: BodyDecoder.data)
    }

    /// Sends a request, collects its response in memory and decodes it, off the caller's actor.
    @inline(__always)
    public nonisolated func response<Value: Sendable>(
        for request: consuming Request, decode: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let prepared = try PreparedRequest(
            consume request, registry: tasks, delivery: .collected, acceptedTypes: decode.acceptedTypes)
        return try await RequestExecution.response(to: prepared, decode: decode)
    }

    /// Creates a task that sends a request and collects its response in memory.
    ///
    /// The task is suspended and moves no byte until `resume()`, unless `startsImmediately` or the session's
    /// configuration says otherwise. For a request that cannot be sent, the task has already failed.
    public nonisolated func task(for request: Request, startsImmediately: Bool? = nil) -> SessionTask<Response<Data>> {
        task(for: request, decode: BodyDecoder.data, startsImmediately: startsImmediately)
    }

    /// Creates a task that sends a request, collects its response in memory and decodes it.
    public nonisolated func task<Value: Sendable>(
        for request: Request, decode: BodyDecoder<Value>, startsImmediately: Bool? = nil
    ) -> SessionTask<Response<Value>> {
        makeTask(request, acceptedTypes: decode.acceptedTypes, startsImmediately: startsImmediately) {
            execution throws(NetworkError) in
            try await execution.responseOfHandle(decode: decode)
        }
    }

    /// Creates a task like `task(for:decode:)` whose value is the decoded value alone.
    package nonisolated func valueTask<Value: Sendable>(
        for request: Request, decode: BodyDecoder<Value>, startsImmediately: Bool? = nil
    ) -> SessionTask<Value> {
        makeTask(request, acceptedTypes: decode.acceptedTypes, startsImmediately: startsImmediately) {
            execution throws(NetworkError) in
            try await execution.responseOfHandle(decode: decode).takeValue()
        }
    }

    private nonisolated func makeTask<Value: Sendable>(
        _ request: Request, acceptedTypes: AcceptedTypes, startsImmediately: Bool?,
        operation: @escaping @Sendable (RequestExecution) async throws(NetworkError) -> Value
    ) -> SessionTask<Value> {
        do throws(NetworkError) {
            let prepared = try PreparedRequest(
                request, registry: tasks, delivery: .collected, isPausable: true, acceptedTypes: acceptedTypes)
            let startsImmediately = startsImmediately ?? tasks.configuration.startsImmediately
            let place: WorkPlace = prepared.staysWithCaller ? .loop : .elsewhere
            let task = tasks.makeTask(prepared, startsImmediately: startsImmediately, place: place) {
                record throws(NetworkError) in
                try await operation(RequestExecution(request: prepared, record: record))
            }
            if startsImmediately { task.resume() }
            return task
        } catch {
            return tasks.failedTask(request, error)
        }
    }

    /// Sends a request and returns its response as a stream of bytes. Starts at once.
    public nonisolated func stream(_ request: Request) -> ResponseStream {
        do {
            return ResponseStream(try PreparedRequest(request, registry: tasks, delivery: .streamed), tasks)
        } catch {
            return ResponseStream(failed: error, tasks)
        }
    }

    // MARK: Connections

    /// The open connections of the session at one moment, by origin, in the order of the origins. An origin without an
    /// open connection is left out, so the array is empty before the first request, and after the last connection was
    /// closed.
    ///
    /// ```swift
    /// for connections in await session.openConnections {
    ///     print(connections.origin, connections.activeCount, connections.idleCount)
    /// }
    /// ```
    ///
    /// A connection is open from the end of its handshake, that of TLS and of a proxy included, until it is closed. One
    /// over HTTP/2 counts once, however many requests share it. Reading the property sends one message to the event
    /// loop of the session, and costs requests nothing. A cancelled task gets the answer, too. On Apple's systems, the
    /// array is always empty, because URLSession does not report its connections.
    public nonisolated var openConnections: [OpenConnections] {
        get async { await transport.openConnections() }
    }

    /// Opens connections to the origin of a URL, so that the next requests to it wait for no look-up of a name and no
    /// handshake.
    ///
    /// ```swift
    /// try session.preconnect(to: "https://api.example.com")
    /// ```
    ///
    /// The connections open in the background, within the limits of the session, and are closed when they have been
    /// idle for `idleConnectionLifetime`. Where HTTP/2 can be spoken, one is opened, because requests share it. A request
    /// that comes while a connection opens waits for it. If none can be opened, the next request says why. With several
    /// event loops, they belong to the session's own, which serves the first eight requests to an origin.
    ///
    /// - Parameters:
    ///   - url: An http or https URL. Only its origin matters.
    ///   - count: The number of connections to the origin, with those that are open. 1 by default.
    /// - Throws: `NetworkError` of kind `.invalidRequest` if nothing can be sent to the URL, and `.unsupported` on
    ///   Apple's systems, because URLSession opens connections for requests only.
    public nonisolated func preconnect(to url: String, count: Int = 1) throws(NetworkError) {
        let request = try PreparedRequest(Request(.get, url), registry: tasks, delivery: .collected)
        let attempt = Attempt(
            request.makeWireRequest(request.makeMessage(), priority: .normal, timeouts: request.timeouts),
            meter: ProgressMeter())
        if let refusal = tasks.refusal(of: attempt) { throw NetworkError(refusal, request: request.request) }
        guard transport.preconnect(attempt, count: max(0, count)) else {
            let failure = FailureCause(.unsupported, "the transport opens connections for requests only")
            throw NetworkError(failure, request: request.request)
        }
    }

    // MARK: The end

    /// A Boolean value that indicates whether the session was invalidated: it accepts no more tasks, and the last one
    /// has delivered its value.
    public var isInvalidated: Bool { life.phase == .invalidated }

    /// Returns when every task that exists now has ended and delivered its value, or the caller is cancelled.
    public func drained() async {
        let live = tasks.live.watch(self)
        if live.isEmpty { return }
        let waiter = Waiter<Void>()
        life.addDrain(waiter, of: live)
        await waiter.wait()
        stopWaiting(waiter)
    }

    /// Accepts no more tasks, lets the live ones finish, and returns when the last one has delivered its value, or the
    /// caller is cancelled. On Linux, the session has closed its idle connections then.
    public func finishTasksAndInvalidate() async {
        finish()
        await invalidated()
    }

    /// Accepts no more tasks, cancels the live ones, and returns when the last one has delivered its value, or the
    /// caller is cancelled. On Linux, the session has closed its idle connections then.
    public func invalidateAndCancel() async {
        finish()
        await tasks.cancelAll()
        await invalidated()
    }

    /// Accepts no more tasks. The session is invalidated when the last one has left.
    private func finish() {
        tasks.live.close()
        perform(life.finish(isIdle: tasks.live.watch(self).isEmpty))
    }

    /// Returns when the session was invalidated and streams and observers know it, or the caller is cancelled.
    private func invalidated() async {
        if life.phase != .invalidated {
            let waiter = Waiter<Void>()
            life.addEndWaiter(waiter)
            await waiter.wait()
            stopWaiting(waiter)
        }
        // A caller that was cancelled does not wait for an end that is still to come.
        guard life.phase == .invalidated else { return }
        await tasks.eventsHaveEnded()
        await invalidationNotice?.value
    }

    private func stopWaiting(_ waiter: Waiter<Void>) {
        life.remove(waiter)
        if !life.needsEnds { tasks.live.stopWatching() }
    }

    /// Receives the end of a task while somebody waits for one.
    private func taskEnded(_ number: UInt64) {
        perform(life.taskEnded(number, isIdle: tasks.live.isEmpty))
    }

    private func perform(_ change: SessionLife.Change) {
        if change.isInvalidated { invalidate() }
        for waiter in change.waiters { waiter.resume() }
        if !life.needsEnds { tasks.live.stopWatching() }
    }

    /// Closes the idle connections, before those who wait go on, and publishes the end.
    private func invalidate() {
        transport.drain()
        let event = TaskRegistry.Event.sessionInvalidated(id)
        tasks.endEvents(with: event)
        if tasks.observers.isEmpty { return }
        // Ends with the last observer; `invalidated()` waits for it.
        invalidationNotice = Task { @concurrent [tasks] in tasks.observe { $0.didObserve(event) } }
    }
}

extension Session: ExecutorMessage {
    /// Receives the end of a task while somebody waits for one.
    ///
    /// - Parameter operation: The number of the task.
    package nonisolated func perform(_ operation: UInt64) { assumeIsolated { $0.taskEnded(operation) } }
}

extension Session: CustomReflectable {
    /// The identity, and the configuration without secrets. Without this mirror, `dump` would show the transport's
    /// proxies.
    public nonisolated var customMirror: Mirror { Mirror(self, children: ["id": id, "configuration": configuration]) }
}
