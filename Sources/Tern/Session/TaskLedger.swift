import Synchronization
import TernConcurrency

/// The live tasks of a session and the subscribers to its events. The lock behind `TaskRegistry`: tasks are created and
/// counted in synchronous code, so their table cannot wait for an actor.
package final class TaskLedger: Sendable {
    /// Whether the session takes tasks.
    enum Phase {
        case open
        case finishing
        case invalidated
    }

    private struct Entry {
        /// Until it is first resumed a task is kept by its handles alone: nobody else could ever start it.
        weak var record: TaskRecord?
    }

    private final class Drain {
        var remaining: Set<UInt64>
        let waiter: Waiter<Void>
        init(_ remaining: Set<UInt64>, _ waiter: Waiter<Void>) {
            self.remaining = remaining
            self.waiter = waiter
        }
    }

    private final class Subscriber {
        weak var queue: EventQueue<TaskRegistry.Event>?
        init(_ queue: EventQueue<TaskRegistry.Event>) { self.queue = queue }
    }

    /// What is to be done once no lock is held: readers are woken, and queues let go of. The reference taken here may be
    /// a queue's last, and what it then releases may be a task that asks for the lock again.
    struct Aftermath {
        fileprivate var waiters: [Waiter<Void>] = []
        fileprivate var queues: [EventQueue<TaskRegistry.Event>] = []
        fileprivate var events: [TaskRegistry.Event] = []
        fileprivate var observers: [any SessionObserver] = []

        func settle() {
            for waiter in waiters { waiter.resume() }
            for event in events {
                for observer in observers { observer.didObserve(event) }
            }
        }
    }

    private struct Shared {
        var fresh: [UInt64: Entry] = [:]
        var running: [UInt64: TaskRecord] = [:]
        /// Out of the registry, and not delivered yet.
        var delivering: Set<UInt64> = []
        var drains: [Drain] = []
        var subscribers: [Subscriber] = []
        var phase = Phase.open
        /// The session is gone: its events end with its last task.
        var isOrphaned = false
        let observers: [any SessionObserver]

        init(observers: [any SessionObserver]) { self.observers = observers }

        var isIdle: Bool { running.isEmpty && delivering.isEmpty && fresh.isEmpty }

        mutating func publish(_ event: TaskRegistry.Event, into aftermath: inout Aftermath) {
            if !observers.isEmpty {
                aftermath.events.append(event)
                aftermath.observers = observers
            }
            var hasDead = false
            for subscriber in subscribers {
                guard let queue = subscriber.queue else {
                    hasDead = true
                    continue
                }
                aftermath.waiters += queue.push(event)
                aftermath.queues.append(queue)
            }
            if hasDead { subscribers.removeAll { $0.queue == nil } }
        }

        mutating func invalidate(_ session: Session.ID, into aftermath: inout Aftermath) {
            phase = .invalidated
            publish(.sessionInvalidated(session), into: &aftermath)
            finishSubscribers(into: &aftermath)
        }

        mutating func finishSubscribers(into aftermath: inout Aftermath) {
            for case let queue? in subscribers.map(\.queue) {
                aftermath.waiters += queue.finish()
                aftermath.queues.append(queue)
            }
            subscribers = []
        }

        /// The last task has delivered: what was only waiting for that.
        mutating func endIfIdle(_ session: Session.ID, into aftermath: inout Aftermath) {
            guard isIdle else { return }
            if phase == .finishing { invalidate(session, into: &aftermath) }
            if isOrphaned { finishSubscribers(into: &aftermath) }
        }
    }

    /// Events that may wait for one subscriber.
    static let eventLimit = 1_024

    let sessionID: Session.ID
    private let shared: Lock<Shared>
    private let lastID = Atomic<UInt64>(0)
    /// Streams of events that may be alive, and the observers, who never go.
    private let subscriberCount: Atomic<Int>
    private let observerCount: Int

    init(sessionID: Session.ID, observers: [any SessionObserver]) {
        self.sessionID = sessionID
        shared = Lock(Shared(observers: observers))
        observerCount = observers.count
        subscriberCount = Atomic(observers.count)
    }

    deinit {
        let queues = shared.withLock { $0.subscribers.compactMap { $0.queue } }
        for waiter in queues.flatMap({ $0.finish() }) { waiter.resume() }
    }

    // MARK: Tasks

    /// A number that was never given before.
    func nextID() -> TaskID { TaskID(lastID.wrappingAdd(1, ordering: .relaxed).newValue) }

    /// A task that waits for its first `resume`; false when the session takes no more tasks.
    func addFresh(_ record: TaskRecord) -> Bool {
        shared.withLock { shared in
            guard shared.phase == .open else { return false }
            shared.fresh[record.id.number] = Entry(record: record)
            return true
        }
    }

    /// A task that starts; false when it was not known yet and the session takes no more tasks.
    @discardableResult
    func addRunning(_ record: TaskRecord) -> Bool {
        shared.withLock { shared in
            let wasFresh = !shared.fresh.isEmpty && shared.fresh.removeValue(forKey: record.id.number) != nil
            guard wasFresh || shared.phase == .open else { return false }
            shared.running[record.id.number] = record
            return true
        }
    }

    func remove(_ id: TaskID) {
        shared.withLock { shared in
            let wasRunning = shared.running.removeValue(forKey: id.number) != nil
            let wasFresh = !wasRunning && shared.fresh.removeValue(forKey: id.number) != nil
            if wasRunning || wasFresh { shared.delivering.insert(id.number) }
        }
    }

    /// The value is with its owner: drains go on, and subscribers hear of it.
    func delivered(_ id: TaskID, _ event: () -> TaskRegistry.Event) {
        let event = hasSubscribers ? event() : nil
        settle(id, event)
    }

    /// A fresh task whose last handle is gone.
    func forget(_ id: TaskID) {
        let wasFresh = shared.withLock { shared in
            !shared.fresh.isEmpty && shared.fresh.removeValue(forKey: id.number) != nil
        }
        if wasFresh { settle(id, nil) }
    }

    private func settle(_ id: TaskID, _ event: TaskRegistry.Event?) {
        let aftermath = shared.withLock { shared -> Aftermath? in
            if shared.running.removeValue(forKey: id.number) == nil, !shared.delivering.isEmpty {
                shared.delivering.remove(id.number)
            }
            if event == nil, shared.drains.isEmpty, shared.phase == .open, !shared.isOrphaned { return nil }
            var aftermath = Aftermath()
            if let event { shared.publish(event, into: &aftermath) }
            if !shared.drains.isEmpty {
                for drain in shared.drains where drain.remaining.remove(id.number) != nil && drain.remaining.isEmpty {
                    aftermath.waiters.append(drain.waiter)
                }
                shared.drains.removeAll { $0.remaining.isEmpty }
            }
            shared.endIfIdle(sessionID, into: &aftermath)
            return aftermath
        }
        aftermath?.settle()
    }

    /// The live tasks, in order of creation.
    var records: [TaskRecord] {
        shared.withLock { shared in
            (shared.fresh.values.compactMap { $0.record } + shared.running.values).sorted { $0.id < $1.id }
        }
    }

    func record(_ id: TaskID) -> TaskRecord? {
        shared.withLock { shared in shared.running[id.number] ?? shared.fresh[id.number]?.record }
    }

    /// Returns when every task known now has delivered, or the caller is cancelled.
    func drained() async {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            let known = shared.delivering.union(shared.running.keys).union(shared.fresh.keys)
            guard !known.isEmpty else { return false }
            shared.drains.append(Drain(known, waiter))
            return true
        }
        guard isWaiting else { return }
        await waiter.wait()
        shared.withLock { shared in shared.drains.removeAll { $0.waiter === waiter } }
    }

    /// No task is accepted any more; the session is invalidated when the last one has delivered.
    func close() {
        let aftermath = shared.withLock { shared -> Aftermath in
            var aftermath = Aftermath()
            guard shared.phase == .open else { return aftermath }
            shared.phase = .finishing
            shared.endIfIdle(sessionID, into: &aftermath)
            return aftermath
        }
        aftermath.settle()
    }

    /// The session is gone, and nobody can make a task any more: the streams of events end with the last live one, also
    /// when handles of ended tasks are kept.
    func orphan() {
        let aftermath = shared.withLock { shared -> Aftermath in
            var aftermath = Aftermath()
            shared.isOrphaned = true
            shared.endIfIdle(sessionID, into: &aftermath)
            return aftermath
        }
        aftermath.settle()
    }

    // MARK: Events

    var hasSubscribers: Bool { subscriberCount.load(ordering: .relaxed) > 0 }

    func subscribe() -> AsyncStream<TaskRegistry.Event> {
        let queue = EventQueue<TaskRegistry.Event>(limit: Self.eventLimit) { .dropped($0) }
        let isOver = shared.withLock { shared in
            if shared.phase == .invalidated || (shared.isOrphaned && shared.isIdle) { return true }
            shared.subscribers.append(Subscriber(queue))
            return false
        }
        subscriberCount.add(1, ordering: .relaxed)
        if isOver { _ = queue.finish() }
        return queue.stream()
    }

    /// Tells an event to every subscriber; it is only made when there is one.
    func publish(_ event: () -> TaskRegistry.Event) { note(event).settle() }

    /// Like `publish`, for a caller who holds a task's lock, so that events have the order of what they tell of, and who
    /// settles the rest once no lock is held.
    func note(_ event: () -> TaskRegistry.Event) -> Aftermath {
        guard hasSubscribers else { return Aftermath() }
        let event = event()
        return shared.withLock { shared -> Aftermath in
            var aftermath = Aftermath()
            shared.publish(event, into: &aftermath)
            if shared.subscribers.isEmpty { subscriberCount.store(observerCount, ordering: .relaxed) }
            return aftermath
        }
    }
}
