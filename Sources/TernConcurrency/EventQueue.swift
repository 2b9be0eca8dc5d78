/// The waiting events of one subscriber. Pure: bounded, and what did not fit is counted and told in its place.
struct EventBuffer<Event: Sendable> {
    let limit: Int
    private var events = FIFO<Event>()
    private var dropped = 0

    init(limit: Int) { self.limit = limit }

    mutating func push(_ event: Event) {
        // Once something was dropped, nothing goes in until that was told: the count stands where the gap is.
        if dropped > 0 || events.count >= limit {
            dropped += 1
        } else {
            events.append(event)
        }
    }

    /// The next event; after the last one before a gap, `gap` of the number of events that are missing.
    mutating func pop(gap: (Int) -> Event) -> Event? {
        if let event = events.popFirst() { return event }
        guard dropped > 0 else { return nil }
        defer { dropped = 0 }
        return gap(dropped)
    }
}

/// One subscriber's bounded queue of events, read as an `AsyncStream`.
package final class EventQueue<Event: Sendable>: Sendable {
    private struct Shared {
        var buffer: EventBuffer<Event>
        var isFinished = false
        /// One per reader that waits: a stream may be handed from task to task.
        var waiters: [Waiter<Void>] = []

        mutating func takeWaiters() -> [Waiter<Void>] {
            guard !waiters.isEmpty else { return [] }
            defer { waiters = [] }
            return waiters
        }
    }

    private enum Step {
        case event(Event)
        case end
        case wait(Waiter<Void>)
    }

    private let shared: Lock<Shared>
    private let gap: @Sendable (Int) -> Event

    package init(limit: Int, gap: @escaping @Sendable (Int) -> Event) {
        shared = Lock(Shared(buffer: EventBuffer(limit: limit)))
        self.gap = gap
    }

    /// Adds an event. The readers to be woken, after all locks are released.
    package func push(_ event: Event) -> [Waiter<Void>] {
        shared.withLock { shared in
            guard !shared.isFinished else { return [] }
            shared.buffer.push(event)
            return shared.takeWaiters()
        }
    }

    /// No more events: the stream ends after those that wait.
    package func finish() -> [Waiter<Void>] {
        shared.withLock { shared in
            shared.isFinished = true
            return shared.takeWaiters()
        }
    }

    package func stream() -> AsyncStream<Event> {
        AsyncStream { await self.next() }
    }

    private func next() async -> Event? {
        while !Task.isCancelled {
            let step = shared.withLock { shared -> Step in
                if let event = shared.buffer.pop(gap: gap) { return .event(event) }
                if shared.isFinished { return .end }
                let waiter = Waiter<Void>()
                shared.waiters.append(waiter)
                return .wait(waiter)
            }
            switch step {
            case .event(let event): return event
            case .end: return nil
            case .wait(let waiter):
                await waiter.wait()
                shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
            }
        }
        return nil
    }
}
