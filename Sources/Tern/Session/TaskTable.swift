import Synchronization
import TernConcurrency

/// The live tasks of a session and the subscribers to its events. `TaskRegistry` reads them through the lock here: tasks
/// are created and counted in synchronous code, so their table cannot wait for an actor.
package final class TaskTable: Sendable {
    /// The phase of the session.
    enum Phase {
        case open
        /// Takes no more tasks; the live ones finish.
        case finishing
        case invalidated
    }

    private struct Entry {
        /// Weak: until a task is first resumed, its handles alone hold it, because nothing else could start it.
        weak var record: TaskRecord?
    }

    /// A caller that waits until a set of tasks has delivered.
    private final class IdleWait {
        var remaining: Set<UInt64>
        let waiter: Waiter<Void>
        init(_ remaining: Set<UInt64>, _ waiter: Waiter<Void>) {
            self.remaining = remaining
            self.waiter = waiter
        }
    }

    /// Notifications to deliver once no lock is held: readers to wake, queues to release, and observers to call. The release
    /// of a queue may release a task that needs the lock.
    struct PendingNotifications {
        fileprivate var deliveries: [EventDelivery<TaskRegistry.Event>] = []
        fileprivate var waiters: [Waiter<Void>] = []
        fileprivate var events: [TaskRegistry.Event] = []
        fileprivate var observers: [any SessionObserver] = []

        func deliver() {
            for delivery in deliveries { delivery.complete() }
            for waiter in waiters { waiter.resume() }
            for event in events {
                for observer in observers { observer.didObserve(event) }
            }
        }
    }

    private struct Shared {
        var fresh: [UInt64: Entry] = [:]
        var running: [UInt64: TaskRecord] = [:]
        /// The tasks that have left the registry and whose values are not delivered yet.
        var delivering: Set<UInt64> = []
        var idleWaits: [IdleWait] = []
        var subscribers = EventSubscribers<TaskRegistry.Event>()
        var phase = Phase.open
        /// A Boolean value that indicates whether the session is gone. Its events end with its last task.
        var isSessionGone = false
        let observers: [any SessionObserver]

        init(observers: [any SessionObserver]) { self.observers = observers }

        var isIdle: Bool { running.isEmpty && delivering.isEmpty && fresh.isEmpty }

        mutating func publish(_ event: TaskRegistry.Event, into notifications: inout PendingNotifications) {
            if !observers.isEmpty {
                notifications.events.append(event)
                notifications.observers = observers
            }
            if subscribers.count > 0 { notifications.deliveries.append(subscribers.send(event)) }
        }

        mutating func invalidate(_ session: Session.ID, into notifications: inout PendingNotifications) {
            phase = .invalidated
            publish(.sessionInvalidated(session), into: &notifications)
            notifications.deliveries.append(subscribers.finish())
        }

        /// Invalidates the session and ends the event streams, once no task is left.
        mutating func endIfIdle(_ session: Session.ID, into notifications: inout PendingNotifications) {
            guard isIdle else { return }
            if phase == .finishing { invalidate(session, into: &notifications) }
            if isSessionGone { notifications.deliveries.append(subscribers.finish()) }
        }
    }

    /// The maximum number of events that wait for one subscriber.
    static let eventLimit = 1_024

    let sessionID: Session.ID
    private let shared: Lock<Shared>
    private let lastID = Atomic<UInt64>(0)
    /// The number of streams of events that may be alive, plus the observers, which stay.
    private let subscriberCount: Atomic<Int>
    private let observerCount: Int

    init(sessionID: Session.ID, observers: [any SessionObserver]) {
        self.sessionID = sessionID
        shared = Lock(Shared(observers: observers))
        observerCount = observers.count
        subscriberCount = Atomic(observers.count)
    }

    deinit {
        shared.withLock { $0.subscribers.finish() }.complete()
    }

    // MARK: Tasks

    /// Returns a new task number.
    func nextID() -> TaskID { TaskID(lastID.wrappingAdd(1, ordering: .relaxed).newValue) }

    /// Adds a task that waits for its first `resume`. Returns false if the session takes no more tasks.
    func addFresh(_ record: TaskRecord) -> Bool {
        shared.withLock { shared in
            guard shared.phase == .open else { return false }
            shared.fresh[record.id.number] = Entry(record: record)
            return true
        }
    }

    /// Adds a task that starts. Returns false if it is new and the session takes no more tasks.
    @discardableResult
    func addRunning(_ record: TaskRecord) -> Bool {
        shared.withLock { shared in
            let wasFresh = !shared.fresh.isEmpty && shared.fresh.removeValue(forKey: record.id.number) != nil
            guard wasFresh || shared.phase == .open else { return false }
            shared.running[record.id.number] = record
            return true
        }
    }

    /// Removes a task that has ended and whose value is about to be delivered.
    func remove(_ id: TaskID) {
        shared.withLock { shared in
            let wasRunning = shared.running.removeValue(forKey: id.number) != nil
            let wasFresh = !wasRunning && shared.fresh.removeValue(forKey: id.number) != nil
            if wasRunning || wasFresh { shared.delivering.insert(id.number) }
        }
    }

    /// Notifies subscribers, and those who wait for the end of the task, that its value was delivered.
    func didDeliver(_ id: TaskID, _ event: () -> TaskRegistry.Event) {
        let event = hasSubscribers ? event() : nil
        finish(id, event)
    }

    /// Removes a task that was never resumed and whose last handle is gone.
    func forget(_ id: TaskID) {
        let wasFresh = shared.withLock { shared in
            !shared.fresh.isEmpty && shared.fresh.removeValue(forKey: id.number) != nil
        }
        if wasFresh { finish(id, nil) }
    }

    /// Removes a task whose value was delivered, and notifies those who wait for that.
    private func finish(_ id: TaskID, _ event: TaskRegistry.Event?) {
        let notifications = shared.withLock { shared -> PendingNotifications? in
            if shared.running.removeValue(forKey: id.number) == nil, !shared.delivering.isEmpty {
                shared.delivering.remove(id.number)
            }
            if event == nil, shared.idleWaits.isEmpty, shared.phase == .open, !shared.isSessionGone { return nil }
            var notifications = PendingNotifications()
            if let event { shared.publish(event, into: &notifications) }
            if !shared.idleWaits.isEmpty {
                for idleWait in shared.idleWaits
                where idleWait.remaining.remove(id.number) != nil && idleWait.remaining.isEmpty {
                    notifications.waiters.append(idleWait.waiter)
                }
                shared.idleWaits.removeAll { $0.remaining.isEmpty }
            }
            shared.endIfIdle(sessionID, into: &notifications)
            return notifications
        }
        notifications?.deliver()
    }

    /// The live tasks in order of creation.
    var records: [TaskRecord] {
        shared.withLock { shared in
            (shared.fresh.values.compactMap { $0.record } + shared.running.values).sorted { $0.id < $1.id }
        }
    }

    func record(_ id: TaskID) -> TaskRecord? {
        shared.withLock { shared in shared.running[id.number] ?? shared.fresh[id.number]?.record }
    }

    /// Returns when every task that is known now has delivered, or the caller is cancelled.
    func drained() async {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            let known = shared.delivering.union(shared.running.keys).union(shared.fresh.keys)
            guard !known.isEmpty else { return false }
            shared.idleWaits.append(IdleWait(known, waiter))
            return true
        }
        guard isWaiting else { return }
        await waiter.wait()
        shared.withLock { shared in shared.idleWaits.removeAll { $0.waiter === waiter } }
    }

    /// Accepts no more tasks. The session is invalidated when the last one has delivered.
    func close() {
        let notifications = shared.withLock { shared -> PendingNotifications in
            var notifications = PendingNotifications()
            guard shared.phase == .open else { return notifications }
            shared.phase = .finishing
            shared.endIfIdle(sessionID, into: &notifications)
            return notifications
        }
        notifications.deliver()
    }

    /// Records that the session is gone. The streams of events end with the last live task, even if handles of ended
    /// tasks remain.
    func sessionIsGone() {
        let notifications = shared.withLock { shared -> PendingNotifications in
            var notifications = PendingNotifications()
            shared.isSessionGone = true
            shared.endIfIdle(sessionID, into: &notifications)
            return notifications
        }
        notifications.deliver()
    }

    // MARK: Events

    var hasSubscribers: Bool { subscriberCount.load(ordering: .relaxed) > 0 }

    func subscribe() -> AsyncStream<TaskRegistry.Event> {
        let queue = EventQueue<TaskRegistry.Event>(limit: Self.eventLimit) { .dropped($0) }
        let isOver = shared.withLock { shared in
            if shared.phase == .invalidated || (shared.isSessionGone && shared.isIdle) { return true }
            shared.subscribers.add(queue)
            subscriberCount.store(observerCount + shared.subscribers.count, ordering: .relaxed)
            return false
        }
        if isOver { _ = queue.finish() }
        return queue.stream()
    }

    /// Publishes an event to every subscriber. The event is made only if there is one.
    func publish(_ event: () -> TaskRegistry.Event) { enqueue(event).deliver() }

    /// Publishes an event under a task's lock, so that events keep their order. The caller delivers the notifications once
    /// no lock is held.
    func enqueue(_ event: () -> TaskRegistry.Event) -> PendingNotifications {
        guard hasSubscribers else { return PendingNotifications() }
        let event = event()
        return shared.withLock { shared -> PendingNotifications in
            var notifications = PendingNotifications()
            shared.publish(event, into: &notifications)
            subscriberCount.store(observerCount + shared.subscribers.count, ordering: .relaxed)
            return notifications
        }
    }
}
