public import Synchronization

/// Delivers events to any number of subscribers. Each subscriber has a bounded queue of its own, and receives the
/// events that are sent after it subscribed.
///
/// The stream of a subscriber holds its queue; the broadcast holds the queue weakly. A released stream ends the
/// subscription, and the next event removes it. Public for the same reason as `Lock`.
public final class EventBroadcast<Event: Sendable>: Sendable {
    private struct State {
        var subscribers = EventSubscribers<Event>()
        var isFinished = false
    }

    @usableFromInline let subscriberCount = Atomic<Int>(0)
    private let state = Lock(State())
    private let limit: Int
    private let overflow: EventOverflow<Event>

    /// Creates a broadcast whose subscribers' queues hold `limit` events each.
    package init(limit: Int, overflow: EventOverflow<Event>) {
        self.limit = limit
        self.overflow = overflow
    }

    deinit { finish() }

    /// A Boolean value that indicates whether there can be a subscriber. Without one, no event needs to be created.
    @inlinable public var hasSubscribers: Bool { subscriberCount.load(ordering: .relaxed) > 0 }

    /// Returns a stream of the events from now on. The stream ends after `finish`.
    package func stream() -> AsyncStream<Event> {
        let queue = EventQueue<Event>(limit: limit, overflow: overflow)
        let isFinished = state.withLock { state in
            if !state.isFinished { state.subscribers.add(queue) }
            subscriberCount.store(state.subscribers.count, ordering: .relaxed)
            return state.isFinished
        }
        if isFinished { _ = queue.finish() }  // No reader can wait yet.
        return queue.stream()
    }

    /// Sends events to all subscribers. Must be called without a lock held.
    package func send(contentsOf events: [Event]) {
        guard !events.isEmpty, hasSubscribers else { return }
        let delivery = state.withLock { state in
            let delivery = state.subscribers.send(contentsOf: events)
            subscriberCount.store(state.subscribers.count, ordering: .relaxed)
            return delivery
        }
        delivery.complete()
    }

    /// Sends an event to all subscribers. Must be called without a lock held.
    package func send(_ event: Event) {
        if hasSubscribers { send(contentsOf: [event]) }
    }

    /// Ends every stream after the events that it still holds.
    package func finish() {
        let delivery = state.withLock { state in
            state.isFinished = true
            subscriberCount.store(0, ordering: .relaxed)
            return state.subscribers.finish()
        }
        delivery.complete()
    }
}

/// The queues of the subscribers to some events, held weakly. The owner guards this value with a lock.
package struct EventSubscribers<Event: Sendable> {
    private struct Subscriber {
        weak var queue: EventQueue<Event>?
    }

    private var subscribers: [Subscriber] = []

    package init() {}

    /// The number of subscribers, including released ones that no event has removed yet.
    package var count: Int { subscribers.count }

    package mutating func add(_ queue: EventQueue<Event>) { subscribers.append(Subscriber(queue: queue)) }

    /// Adds an event to all queues, and removes the subscribers whose streams were released.
    package mutating func send(_ event: Event) -> EventDelivery<Event> { send(contentsOf: CollectionOfOne(event)) }

    /// Adds events to all queues, and removes the subscribers whose streams were released.
    package mutating func send(contentsOf events: some Collection<Event>) -> EventDelivery<Event> {
        subscribers.removeAll { $0.queue == nil }
        let queues = subscribers.compactMap(\.queue)
        return EventDelivery(
            readers: queues.flatMap { queue in events.flatMap { queue.push($0) } }, queues: queues)
    }

    /// Ends all queues.
    package mutating func finish() -> EventDelivery<Event> {
        let queues = subscribers.compactMap(\.queue)
        subscribers = []
        return EventDelivery(readers: queues.flatMap { $0.finish() }, queues: queues)
    }
}

/// The rest of a delivery, to be completed after all locks are released.
package struct EventDelivery<Event: Sendable>: Sendable {
    fileprivate let readers: [Waiter<Void>]
    /// These references can be the last ones. The events that a released queue still holds can then run any code.
    fileprivate let queues: [EventQueue<Event>]

    /// Resumes the readers.
    package func complete() {
        for reader in readers { reader.resume() }
    }
}
