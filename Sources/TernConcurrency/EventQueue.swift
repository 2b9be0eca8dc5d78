/// The waiting events of one subscriber, up to a limit. A pure value.
struct EventBuffer<Event: Sendable> {
    let limit: Int
    private var events = FIFO<Event>()
    private var dropped = 0

    init(limit: Int) { self.limit = limit }

    /// Adds an event, or counts it as dropped when the buffer is full.
    mutating func push(_ event: Event) {
        // After a drop, nothing is added until the reader has seen the count, so that the count stands at the gap.
        if dropped > 0 || events.count >= limit {
            dropped += 1
        } else {
            events.append(event)
        }
    }

    /// Adds an event, and removes the oldest one when the buffer is full.
    mutating func pushReplacingOldest(_ event: Event) {
        if events.count >= limit { _ = events.popFirst() }
        events.append(event)
    }

    /// Returns the next event. After the last event before a gap, returns `gap` with the number of missing events.
    mutating func pop(gap: (Int) -> Event) -> Event? {
        if let event = events.popFirst() { return event }
        guard dropped > 0 else { return nil }
        defer { dropped = 0 }
        return gap(dropped)
    }
}

/// The treatment of events that do not fit into a subscriber's queue.
package enum EventOverflow<Event: Sendable>: Sendable {
    /// Drops new events, and delivers one element in their place that carries their number.
    case reportDropped(@Sendable (Int) -> Event)
    /// Replaces the oldest event without notice. The replaced event is released under a lock: only for plain values.
    case replaceOldest
}

/// A bounded queue of events for one subscriber, who reads it as an `AsyncStream`.
package final class EventQueue<Event: Sendable>: Sendable {
    private struct Shared {
        var buffer: EventBuffer<Event>
        var isFinished = false
        /// One waiter per waiting reader, because a stream can pass from task to task.
        var waiters = WaiterList()
    }

    private let shared: Lock<Shared>
    private let overflow: EventOverflow<Event>

    package init(limit: Int, overflow: EventOverflow<Event>) {
        shared = Lock(Shared(buffer: EventBuffer(limit: limit)))
        self.overflow = overflow
    }

    /// Creates a queue that delivers `dropped` with the number of events that did not fit, in their place.
    package convenience init(limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        self.init(limit: limit, overflow: .reportDropped(dropped))
    }

    /// Adds an event. Returns the readers to resume after all locks are released.
    package func push(_ event: Event) -> [Waiter<Void>] {
        shared.withLock { shared in
            guard !shared.isFinished else { return [] }
            switch overflow {
            case .reportDropped: shared.buffer.push(event)
            case .replaceOldest: shared.buffer.pushReplacingOldest(event)
            }
            return shared.waiters.removeAll()
        }
    }

    /// Ends the stream after the events that are already queued. Returns the readers to resume.
    package func finish() -> [Waiter<Void>] {
        shared.withLock { shared in
            shared.isFinished = true
            return shared.waiters.removeAll()
        }
    }

    package func stream() -> AsyncStream<Event> {
        AsyncStream { await self.next() }
    }

    private func next() async -> Event? {
        await WaiterList.next {
            shared.withLock { shared -> ReadStep<Event> in
                if let event = shared.buffer.pop(gap: gapEvent) { return .element(event) }
                return shared.isFinished ? .end : .wait(shared.waiters.add())
            }
        } remove: { waiter in
            shared.withLock { $0.waiters.remove(waiter) }
        }
    }

    private func gapEvent(_ dropped: Int) -> Event {
        switch overflow {
        case .reportDropped(let event): event(dropped)
        case .replaceOldest: preconditionFailure("a queue that replaces its oldest event drops none")
        }
    }
}
