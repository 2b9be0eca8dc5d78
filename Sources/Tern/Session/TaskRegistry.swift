import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Lists a session's live tasks and publishes their events.
///
/// A task with a handle is in the registry from its creation, or from its start if that is one step, and a call from
/// its first attempt or its first wait. When a task ends, its state becomes terminal, and the registry passes over it
/// from then on. Then its value is delivered, and then `Event.completed` is published. The registry removes it when the
/// last message of the task arrives.
///
/// The registry runs on the transport's executor. The messages of tasks share one queue with the calls on it: a call
/// that follows the creation of a task sees it. Tasks hold the registry, so they finish with the configuration that
/// they began with, even if the session itself is gone. The registry holds the tasks that run, and holds a task weakly
/// that was never resumed.
public actor TaskRegistry {
    // MARK: The parts of a session that its tasks use

    package nonisolated let sessionID = Session.ID.next()
    package nonisolated let configuration: Session.Configuration
    package nonisolated let transport: any Transport
    /// `Transport.announcesOwners`, read once.
    nonisolated let announcesOwners: Bool
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

    package nonisolated let admission = TaskAdmission()
    private nonisolated let executor: any MessageExecutor
    private nonisolated let lastID = Atomic<UInt64>(0)
    /// The number of streams of events that may be alive.
    private nonisolated let subscriberCount = Atomic<Int>(0)
    /// The number of those who learn of the end of a task at once: streams of events, callers that wait for a drain,
    /// and a session that is gone, whose connections are closed after the last task.
    private nonisolated let watcherCount = Atomic<Int>(0)
    private let liveTasks = Confined(LiveTasks<TaskRecord>())
    private var live: LiveTasks<TaskRecord> {
        @inline(__always) _read { yield liveTasks.value }
        @inline(__always) _modify { yield &liveTasks.value }
    }
    /// Those who wait until a set of tasks has delivered.
    private var waiters: [LiveTasks<TaskRecord>.WaitID: Waiter<Void>] = [:]
    private var subscribers = EventSubscribers<Event>()
    /// Those who wait for the invalidation.
    private var endWaiters: [Waiter<Void>] = []
    /// Whether a task that was taken before the end, and registers after it, is cancelled.
    private var cancelsNewTasks = false
    /// Notifies the observers of the invalidation. They do not run on the executor.
    private var invalidationNotice: Task<Void, Never>?

    init(configuration: Session.Configuration, transport: any Transport, files: FileStore, clock: any Clock<Duration>) {
        self.configuration = configuration
        self.transport = transport
        announcesOwners = transport.announcesOwners
        self.files = files
        self.clock = clock
        executor = transport.executor
        observers = configuration.observers
        hasPolicy = configuration.policy != nil
        hasCredentials = configuration.credentials != nil
        cookies = configuration.cookies.makeStore()
        cache = SessionCache(configuration, cookies: cookies, session: sessionID)
        hasCache = cache != nil
        stages = Stages(interceptors: configuration.interceptors, cache: cache)
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
    public var count: Int { live.records.count { !$0.state.isTerminal } }

    /// The present state and progress of every live task, in the order of their creation.
    public var snapshot: [Snapshot] { records.map { Snapshot($0) } }

    private var records: [TaskRecord] {
        live.records.filter { !$0.state.isTerminal }.sorted { $0.id < $1.id }
    }

    /// Returns the live task of a number; nil if it has ended.
    public func task(_ id: TaskID) -> AnySessionTask? { record(id).map { AnySessionTask($0) } }

    private func record(_ id: TaskID) -> TaskRecord? {
        live.record(id.number).flatMap { $0.state.isTerminal ? nil : $0 }
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
        watcherCount.add(1, ordering: .sequentiallyConsistent)
        post(Subscription(queue, registry: self), operation: 0)
        return queue.stream()
    }

    // MARK: The transport. Its tasks call it through these functions, which saves a retain of it.

    /// Returns the reason why the request of an attempt cannot be sent at all; nil if it can.
    nonisolated func refusal(of transfer: Transfer) -> TransferFailure? { transport.refusal(of: transfer) }

    /// Hands an attempt to the transport.
    nonisolated func start(_ transfer: Transfer) { transport.start(transfer) }

    // MARK: Messages of the tasks

    /// A message of a task about itself.
    enum Operation: UInt64 {
        /// The task starts.
        case run
        /// The task waits for its first `resume`.
        case add
        /// The value of the task was delivered.
        case deliver
    }

    /// Returns a new task number.
    nonisolated func nextID() -> TaskID { TaskID(lastID.wrappingAdd(1, ordering: .relaxed).newValue) }

    nonisolated func post(_ operation: Operation, of record: TaskRecord) { post(record, operation: operation.rawValue) }

    private nonisolated func post(_ message: any ExecutorMessage, operation: UInt64) {
        executor.post(message, operation: operation, wakes: true)
    }

    /// Reports that the value of a task was delivered, and wakes the executor only if somebody watches. The message
    /// keeps the record until the executor runs next, so this is for a task without a body or an object of the caller.
    nonisolated func postDeliveryLazily(of record: TaskRecord) {
        executor.post(record, operation: Operation.deliver.rawValue, wakes: false)
        // A watcher is counted before it reads the messages. So this sees the watcher, or the watcher sees this
        // message.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if mayHaveWatchers { executor.wake() }
    }

    /// Ends a task that never registered, because it ended before its first attempt or wait. No message is sent unless
    /// somebody waits for the last task.
    nonisolated func endUnregistered() {
        guard admission.end() else { return }
        // The same holds here: this sees who waits for the last task, or that one sees that there is none.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if mayHaveWatchers { post(self, operation: Self.noTaskIsLeft) }
    }

    /// Whether somebody may wait for the end of a task.
    private nonisolated var mayHaveWatchers: Bool {
        admission.isClosed || watcherCount.load(ordering: .relaxed) > 0
    }

    /// The message that the last task has ended. No task has this number.
    private static let noTaskIsLeft = UInt64.max

    /// Reports that a task was never resumed and that its last handle is gone.
    nonisolated func forget(_ id: TaskID) { post(self, operation: id.number) }

    /// Reports that the session is gone. The streams of events end with the last live task, even if handles of ended
    /// tasks remain.
    nonisolated func sessionIsGone() {
        watcherCount.add(1, ordering: .sequentiallyConsistent)
        post(self, operation: 0)
    }

    /// A message that has arrived.
    struct Report {
        let operation: Operation
        let record: TaskRecord
    }

    func receive(_ report: Report) {
        let record = report.record
        let number = record.id.number
        switch report.operation {
        case .run:
            live.addRunning(record, number: number)
            if cancelsNewTasks { record.cancel() }
        case .add:
            live.addFresh(record, number: number)
            if cancelsNewTasks { record.cancel() }
        case .deliver:
            let outcome = live.delivered(number, isLast: admission.end())
            if !outcome.isEmpty { notify(of: outcome) }
        }
    }

    /// Receives the message of `forget`, or that of `sessionIsGone`, which has no number, or `noTaskIsLeft`.
    private func receive(_ number: UInt64) {
        if number == Self.noTaskIsLeft { return notify(of: live.becameIdle(isIdle: admission.isIdle)) }
        notify(
            of: number == 0
                ? live.sessionIsGone(isIdle: admission.isIdle) : live.forget(number, isLast: admission.end()))
    }

    private func notify(of outcome: LiveTasks<TaskRecord>.Outcome) {
        for wait in outcome.endedWaits { waiters.removeValue(forKey: wait)?.resume() }
        if outcome.isInvalidated {
            // Before those who wait go on: they find no idle connection.
            transport.drain()
            let event = Event.sessionInvalidated(sessionID)
            send(event)
            // Ends with the last observer; `finishTasksAndInvalidate` waits for it.
            if !observers.isEmpty { invalidationNotice = Task { @concurrent in observe { $0.didObserve(event) } } }
            for waiter in endWaiters { waiter.resume() }
        }
        if outcome.isInvalidated || outcome.endsEvents {
            let count = subscribers.count
            subscribers.finish().complete()
            removeSubscribers(count)
        }
    }

    // MARK: The end

    /// Returns when every task that is known now has delivered, or the caller is cancelled.
    func drained() async {
        guard let wait = live.wait() else { return }
        let waiter = Waiter<Void>()
        waiters[wait] = waiter
        watcherCount.add(1, ordering: .sequentiallyConsistent)
        await waiter.wait()
        watcherCount.subtract(1, ordering: .sequentiallyConsistent)
        live.cancel(wait)
        waiters[wait] = nil
    }

    /// Accepts no more tasks. The session is invalidated when the last one has delivered.
    ///
    /// - Parameter cancelsNewTasks: Cancels each task that the session has taken, and that registers after this call.
    func close(cancelsNewTasks: Bool) {
        admission.close()
        if cancelsNewTasks { self.cancelsNewTasks = true }
        notify(of: live.close(isIdle: admission.isIdle))
    }

    /// Whether the session was invalidated.
    var isInvalidated: Bool { live.phase == .invalidated }

    /// Returns when the session was invalidated and the observers know it, or the caller is cancelled.
    func invalidated() async {
        if live.phase != .invalidated {
            let waiter = Waiter<Void>()
            endWaiters.append(waiter)
            watcherCount.add(1, ordering: .sequentiallyConsistent)
            await waiter.wait()
            watcherCount.subtract(1, ordering: .sequentiallyConsistent)
            endWaiters.removeAll { $0 === waiter }
        }
        await invalidationNotice?.value
    }

    // MARK: Events

    /// Whether a stream of events or an observer receives events.
    nonisolated var hasSubscribers: Bool { subscriberCount.load(ordering: .relaxed) > 0 || !observers.isEmpty }

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
        if subscriberCount.load(ordering: .relaxed) > 0 { post(Publication(event, registry: self), operation: 0) }
    }

    /// Calls the observers.
    @inline(__always)
    nonisolated func observe(_ notify: (any SessionObserver) -> Void) {
        if observers.isEmpty { return }
        for observer in observers { notify(observer) }
    }

    private func send(_ event: Event) {
        let count = subscribers.count
        subscribers.send(event).complete()
        removeSubscribers(count - subscribers.count)
    }

    private func add(_ queue: EventQueue<Event>) {
        if live.isOver {
            for reader in queue.finish() { reader.resume() }
            removeSubscribers(1)
        } else {
            subscribers.add(queue)
        }
    }

    private func removeSubscribers(_ count: Int) {
        if count == 0 { return }
        subscriberCount.subtract(count, ordering: .sequentiallyConsistent)
        watcherCount.subtract(count, ordering: .sequentiallyConsistent)
    }

    /// The message of a new stream of events.
    private final class Subscription: ExecutorMessage {
        private let queue: EventQueue<Event>
        private let registry: TaskRegistry

        init(_ queue: EventQueue<Event>, registry: TaskRegistry) { (self.queue, self.registry) = (queue, registry) }

        func perform(_ operation: UInt64) { registry.assumeIsolated { $0.add(queue) } }
    }

    /// The message of an event.
    private final class Publication: ExecutorMessage {
        private let event: Event
        private let registry: TaskRegistry

        init(_ event: Event, registry: TaskRegistry) { (self.event, self.registry) = (event, registry) }

        func perform(_ operation: UInt64) { registry.assumeIsolated { $0.send(event) } }
    }
}

extension TaskRegistry: ExecutorMessage {
    package nonisolated func perform(_ operation: UInt64) { assumeIsolated { $0.receive(operation) } }
}

extension TaskRecord: ExecutorMessage {
    package func perform(_ operation: UInt64) {
        guard let operation = TaskRegistry.Operation(rawValue: operation) else { return }
        // Does what `assumeIsolated` does, in 10 instructions instead of 1,000, for two messages of each request:
        // `assumeIsolated` finds out which executor runs, and allocates twice. The caller is the executor, and the
        // isolation is no part of the representation of a function.
        assert(registry.transport.executor.isIsolatingCurrentContext() != false)
        let receive = unsafe unsafeBitCast(
            Self.receive, to: (@Sendable (TaskRegistry, TaskRegistry.Report) -> Void).self)
        receive(registry, TaskRegistry.Report(operation: operation, record: self))
    }

    private static let receive: @Sendable (isolated TaskRegistry, TaskRegistry.Report) -> Void = { registry, report in
        registry.receive(report)
    }
}

extension TaskRegistry: CustomReflectable {
    /// An empty mirror. Without it, `dump` of every value that refers to the registry would show requests, headers and
    /// credentials.
    nonisolated public var customMirror: Mirror { Mirror(self, children: [:]) }
}
