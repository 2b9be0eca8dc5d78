import Synchronization
import TernConcurrency

/// The readers of a cache's evictions, each with a bounded queue of its own.
@usableFromInline
final class EvictionFeed<Key: Hashable & Sendable>: Sendable {
    private struct Reader {
        /// Held by its stream: a dropped stream ends it.
        weak var queue: EventQueue<MemoryCacheEvent<Key>>?
    }

    private let readers = Lock<[Reader]>([])
    private let readerCount = Atomic<Int>(0)
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    /// Whether anybody has asked for evictions: without, none is put together.
    @usableFromInline var isHeard: Bool { readerCount.load(ordering: .relaxed) > 0 }

    func stream() -> AsyncStream<MemoryCacheEvent<Key>> {
        let queue = EventQueue<MemoryCacheEvent<Key>>(limit: limit) { .dropped($0) }
        readers.withLock { readers in
            readers.append(Reader(queue: queue))
            readerCount.store(readers.count, ordering: .relaxed)
        }
        return queue.stream()
    }

    /// To be called with no lock held.
    func tell(_ evictions: [MemoryCacheEviction<Key>]) {
        guard !evictions.isEmpty else { return }
        for queue in living() {
            for eviction in evictions {
                for waiter in queue.push(.evicted(eviction)) { waiter.resume() }
            }
        }
    }

    /// Every stream ends after what it still holds.
    func finish() {
        for queue in living() {
            for waiter in queue.finish() { waiter.resume() }
        }
    }

    private func living() -> [EventQueue<MemoryCacheEvent<Key>>] {
        readers.withLock { readers in
            readers.removeAll { $0.queue == nil }
            readerCount.store(readers.count, ordering: .relaxed)
            return readers.compactMap(\.queue)
        }
    }
}
