import TernConcurrency

/// The streams of a cache's events. A stream that nobody holds any more is forgotten with the next event.
final class DiskEventHub: Sendable {
    private struct Reader {
        weak var queue: EventQueue<DiskCache.Event>?
    }

    private struct State {
        var readers: [Reader] = []
        var isFinished = false
    }

    private let state = Lock(State())

    func stream() -> AsyncStream<DiskCache.Event> {
        let queue = EventQueue<DiskCache.Event>(limit: 256) { .dropped(count: $0) }
        let isFinished = state.withLock { state in
            state.readers.append(Reader(queue: queue))
            return state.isFinished
        }
        if isFinished { _ = queue.finish() }  // Nobody can wait yet.
        return queue.stream()
    }

    func send(_ event: DiskCache.Event) {
        let queues = state.withLock { state in
            state.readers.removeAll { $0.queue == nil }
            return state.readers.compactMap(\.queue)
        }
        for waiter in queues.flatMap({ $0.push(event) }) { waiter.resume() }
    }

    func finish() {
        let queues = state.withLock { state in
            state.isFinished = true
            return state.readers.compactMap(\.queue)
        }
        for waiter in queues.flatMap({ $0.finish() }) { waiter.resume() }
    }

    deinit { finish() }
}
