import Synchronization

/// A value that changes until it is final, and streams of it.
///
/// Each stream starts with the current value, skips values that its reader was too slow for, always delivers the final
/// value, and ends. Readers pull the value: a pushed buffer could not start with the current value and stay in order
/// without yielding under a lock.
package final class Latest<Value: Sendable>: Sendable {
    private struct Shared {
        var value: Value
        var version: UInt64 = 1
        var isFinished = false
        var waiters = WaiterList()
    }

    private let shared: Lock<Shared>
    private let readerCount = Atomic<Int>(0)

    package init(_ value: Value) {
        shared = Lock(Shared(value: value))
    }

    /// Whether a stream of this value is alive. Without one, nothing needs to be published.
    package var hasReaders: Bool { readerCount.load(ordering: .relaxed) > 0 }

    package var current: Value { shared.withLock { $0.value } }

    /// Replaces the value with the result of `next`. If `next` returns nil, or after `finish`, the value stays.
    package func update(_ next: (Value) -> Value?) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            guard !shared.isFinished, let value = next(shared.value) else { return [] }
            shared.value = value
            shared.version += 1
            return shared.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Sets the final value, which is `next` of the current one. Every stream delivers it and ends.
    package func finish(_ next: (Value) -> Value) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            guard !shared.isFinished else { return [] }
            shared.value = next(shared.value)
            shared.version += 1
            shared.isFinished = true
            return shared.waiters.removeAll()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns a stream of the value.
    /// - Parameter owner: An object that the stream keeps alive.
    package func stream(keeping owner: (any AnyObject & Sendable)? = nil) -> AsyncStream<Value> {
        let reader = Reader(self, keeping: owner)
        return AsyncStream { await reader.next() }
    }

    /// The position of one stream. Only its stream calls it, one call at a time.
    private final class Reader: Sendable {
        private let source: Latest
        private let owner: (any AnyObject & Sendable)?
        private let seen = Atomic<UInt64>(0)

        init(_ source: Latest, keeping owner: (any AnyObject & Sendable)?) {
            self.source = source
            self.owner = owner
            source.readerCount.add(1, ordering: .relaxed)
        }

        deinit {
            source.readerCount.subtract(1, ordering: .relaxed)
        }

        func next() async -> Value? {
            await WaiterList.next {
                source.shared.withLock { shared -> ReadStep<Value> in
                    if seen.load(ordering: .relaxed) != shared.version {
                        seen.store(shared.version, ordering: .relaxed)
                        return .element(shared.value)
                    }
                    return shared.isFinished ? .end : .wait(shared.waiters.add())
                }
            } remove: { waiter in
                source.shared.withLock { $0.waiters.remove(waiter) }
            }
        }
    }
}
