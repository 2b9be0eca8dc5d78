import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Lists a session's live tasks and publishes their events.
///
/// A task is in the registry from its creation. When it ends, its state becomes terminal, and the registry passes over
/// it from then on. Then its value is delivered, then `Event.completed` is published, and then the task leaves.
///
/// The registry runs on the transport's executor, like its session. Tasks hold the registry, so they finish with the
/// configuration that they began with, even if the session itself is gone. The registry holds the tasks that run, and
/// holds a task weakly that was never resumed.
public actor TaskRegistry {
    // MARK: The parts of a session that its tasks use

    package nonisolated let sessionID = Session.ID.next()
    package nonisolated let configuration: Session.Configuration
    /// The transport of the session. Tasks can outlive the session, and keep the transport.
    package nonisolated let transport: any Transport
    nonisolated let files: FileStore
    /// The clock for the time limits on reading bodies that are not delivered.
    nonisolated let clock: any Clock<Duration>
    nonisolated let observers: [any SessionObserver]
    /// The stages of each request.
    nonisolated let stages: Stages
    nonisolated let hasPolicy: Bool
    nonisolated let hasCredentials: Bool
    /// Whether the configuration has no code of the caller and no cache, so that a request can stay on its caller's
    /// actor (``PreparedRequest/staysWithCaller``).
    nonisolated let staysWithCaller: Bool
    /// The authorizations that servers accepted.
    nonisolated let authorizations = AuthenticationCache()
    /// The session's cookies; nil for none.
    nonisolated let cookies: CookieStore?
    /// The cache around each exchange; nil for none.
    nonisolated let cache: SessionCache?
    /// Whether there is a cache. Known without a copy of it.
    nonisolated let hasCache: Bool
    /// The header fields that the configuration adds to each request.
    nonisolated let headers: SessionHeaders
    /// Whether the configuration's headers can be sent with any request. Checked once, not for each request.
    nonisolated let hasValidHeaders: Bool

    // MARK: The tasks

    /// The maximum number of events that wait for one subscriber.
    static let eventLimit = 1_024

    /// The live tasks. Not isolated: each task joins and leaves on its own thread, under the lock of the table. That
    /// takes 55 ns for both, less than one message to the actor.
    package nonisolated let live = TaskTable()
    private nonisolated let executor: any MessageExecutor
    private nonisolated let lastID = Atomic<UInt64>(0)
    /// The number of streams of events that may be alive. Not isolated: each task reads it, and makes no event without a
    /// stream.
    private nonisolated let subscriberCount = Atomic<Int>(0)
    private var subscribers = EventSubscribers<Event>()
    /// Whether no further event can come.
    private var hasEnded = false
    /// Those who wait for the last event.
    private var lastEventWaiters: [Waiter<Void>] = []

    /// - Parameter makeStages: Returns the stages of a session with a cache, or without one.
    init(
        configuration: Session.Configuration, transport: any Transport, files: FileStore, clock: any Clock<Duration>,
        makeStages: (SessionCache?) -> Stages
    ) {
        self.configuration = configuration
        self.transport = transport
        self.files = files
        self.clock = clock
        executor = transport.executor
        observers = configuration.observers
        hasPolicy = configuration.policy != nil
        hasCredentials = configuration.credentials != nil
        cookies = configuration.cookies.makeStore()
        cache = SessionCache(configuration, cookies: cookies, session: sessionID)
        hasCache = cache != nil
        stages = makeStages(cache)
        let validation = configuration.validation
        staysWithCaller =
            configuration.interceptors.isEmpty && !hasPolicy && !hasCredentials && !hasCache
            && configuration.observers.isEmpty && validation.statuses == nil && validation.check == nil
        headers = SessionHeaders(configuration.headers, secretsTo: configuration.secretHeaderOrigins)
        hasValidHeaders =
            headers.problem == nil && PreparedRequest.problem(of: configuration.headers) == nil
            && !configuration.headers.contains("Content-Length")
        OrphanSweeper.shared.sweepTemporaryFolder()
    }

    deinit {
        subscribers.finish().complete()
    }

    /// The executor of the transport: its event loop, if it has one.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    // MARK: Reading

    /// The live tasks, in the order of their creation.
    public var all: [AnySessionTask] { records.map { AnySessionTask($0) } }

    /// The number of live tasks.
    public var count: Int { live.tasks.count { !$0.state.isTerminal } }

    /// The present state and progress of every live task, in the order of their creation.
    public var snapshot: [Snapshot] { records.map { Snapshot($0) } }

    private var records: [TaskRecord] {
        live.tasks.filter { !$0.state.isTerminal }.sorted { $0.id < $1.id }
    }

    /// Returns the live task of a number; nil if it has ended.
    public func task(_ id: TaskID) -> AnySessionTask? { record(id).map { AnySessionTask($0) } }

    private func record(_ id: TaskID) -> TaskRecord? {
        live.task(id).flatMap { $0.state.isTerminal ? nil : $0 }
    }

    /// Returns the states of one live task. The current one comes first, and the terminal one is never lost. The stream
    /// is empty for a task that is not live.
    public func states(of id: TaskID) -> AsyncStream<Session.TaskState> {
        guard let record = record(id) else { return AsyncStream { nil } }
        return record.states.stream()
    }

    /// Cancels every live task. Returns at once; call `Session.drained()` to wait for their ends.
    @concurrent
    public nonisolated func cancelAll() async {
        // Off the loop, because the end of a stream calls observers.
        for record in await records { record.cancel() }
    }

    /// The events of the session's tasks from now on. Each access returns a new stream that holds up to 1,024 events
    /// for a slow reader. One `.dropped` takes the place of further events and counts them. The stream ends after
    /// `.sessionInvalidated`, and when the session is released and its last task has ended.
    ///
    /// To follow one task to its end without loss, read its `states`.
    public nonisolated var events: AsyncStream<Event> {
        let queue = EventQueue<Event>(limit: Self.eventLimit) { .dropped($0) }
        // Events that follow are made from now on, and reach the registry after the subscription.
        subscriberCount.add(1, ordering: .sequentiallyConsistent)
        post(Subscription(queue, registry: self))
        return queue.stream()
    }

    // MARK: The transport. Its tasks call it through these functions, which saves a retain of it.

    /// Returns the reason why the request of an attempt cannot be sent at all; nil if it can.
    nonisolated func refusal(of attempt: Attempt) -> FailureCause? { transport.refusal(of: attempt) }

    /// Hands an attempt to the transport.
    nonisolated func start(_ attempt: Attempt) { transport.start(attempt) }

    // MARK: The life of a task

    /// Returns a new task number.
    nonisolated func nextID() -> TaskID { TaskID(lastID.wrappingAdd(1, ordering: .relaxed).newValue) }

    /// Removes a task, whose value was delivered. Also removes one that was never resumed and whose last handle is gone.
    nonisolated func leave(_ id: TaskID) {
        if let watcher = live.leave(id) { executor.post(watcher, operation: id.number) }
    }

    // MARK: The end of the events

    /// Publishes the last event, if there is one, and ends the streams. A message, so that the events that the last
    /// tasks have published come first.
    nonisolated func endEvents(with last: Event?) { post(Publication(last, isLast: true, registry: self)) }

    /// Returns when the last event has reached the streams, or the caller is cancelled.
    func eventsHaveEnded() async {
        if hasEnded { return }
        let waiter = Waiter<Void>()
        lastEventWaiters.append(waiter)
        await waiter.wait()
        lastEventWaiters.removeAll { $0 === waiter }
    }

    /// Notes that the session is gone. The streams of events end with the last live task, even if handles of ended
    /// tasks remain.
    nonisolated func sessionIsGone() { post(self) }

    /// Called when the session is gone, and after the end of each task from then on.
    private func endEventsIfIdle() {
        guard live.watch(self).isEmpty else { return }
        live.stopWatching()
        endEvents(with: nil)
    }

    // MARK: Events

    /// Whether a stream of events or an observer receives events.
    nonisolated var hasSubscribers: Bool { hasStreams || !observers.isEmpty }

    private nonisolated var hasStreams: Bool { subscriberCount.load(ordering: .sequentiallyConsistent) > 0 }

    /// Publishes an event to every stream and observer. The event is made only if there is one.
    nonisolated func publish(_ event: () -> Event) {
        guard hasSubscribers else { return }
        let event = event()
        enqueue(event)
        observe { $0.didObserve(event) }
    }

    /// Publishes the end of a task. The observers receive its value; a stream of events, which can hold many of them,
    /// does not.
    nonisolated func publish(_ completion: Completion, value: (any Sendable)?) {
        enqueue(.completed(completion))
        if observers.isEmpty { return }
        let event = Event.completed(completion.carrying(value))
        observe { $0.didObserve(event) }
    }

    /// Publishes an event to the streams. Called with the lock of a task held, so that its events keep their order.
    nonisolated func enqueue(_ event: Event) {
        if hasStreams { post(Publication(event, isLast: false, registry: self)) }
    }

    private nonisolated func post(_ message: any ExecutorMessage) {
        executor.post(message, operation: 0)
    }

    /// Calls the observers.
    @inline(__always)
    nonisolated func observe(_ notify: (any SessionObserver) -> Void) {
        if observers.isEmpty { return }
        for observer in observers { notify(observer) }
    }

    private func send(_ event: Event?, isLast: Bool) {
        let count = subscribers.count
        if let event { subscribers.send(event).complete() }
        if isLast {
            subscribers.finish().complete()
            hasEnded = true
            for waiter in lastEventWaiters { waiter.resume() }
            lastEventWaiters = []
        }
        subscriberCount.subtract(count - subscribers.count, ordering: .sequentiallyConsistent)
    }

    private func add(_ queue: EventQueue<Event>) {
        guard hasEnded else { return subscribers.add(queue) }
        for reader in queue.finish() { reader.resume() }
        subscriberCount.subtract(1, ordering: .sequentiallyConsistent)
    }

    /// The message of a new stream of events.
    private final class Subscription: ExecutorMessage {
        private let queue: EventQueue<Event>
        private let registry: TaskRegistry

        init(_ queue: EventQueue<Event>, registry: TaskRegistry) { (self.queue, self.registry) = (queue, registry) }

        func perform(_ operation: UInt64) { registry.assumeIsolated { $0.add(queue) } }
    }

    /// The message of an event, or of the end of the events.
    private final class Publication: ExecutorMessage {
        private let event: Event?
        private let isLast: Bool
        private let registry: TaskRegistry

        init(_ event: Event?, isLast: Bool, registry: TaskRegistry) {
            (self.event, self.isLast, self.registry) = (event, isLast, registry)
        }

        func perform(_ operation: UInt64) { registry.assumeIsolated { $0.send(event, isLast: isLast) } }
    }
}

extension TaskRegistry: ExecutorMessage {
    /// Receives the end of the session, and then that of each task.
    package nonisolated func perform(_ operation: UInt64) { assumeIsolated { $0.endEventsIfIdle() } }
}

extension TaskRegistry: CustomReflectable {
    /// An empty mirror. Without it, `dump` of every value that refers to the registry would show requests, headers and
    /// credentials.
    nonisolated public var customMirror: Mirror { Mirror(self, children: [:]) }
}
