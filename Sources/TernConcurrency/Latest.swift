import Synchronization

/// A value that changes until it ends, and streams of it: each starts with the current value, skips what its reader was
/// too slow for, always delivers the last one, and ends.
///
/// Readers pull. A pushed buffer could not put the current value first and stay in order without yielding under a lock.
package final class Latest<Value: Sendable>: Sendable {
    private struct Shared {
        var value: Value
        var version: UInt64 = 1
        var isFinished = false
        var waiters: [Waiter<Void>] = []

        mutating func takeWaiters() -> [Waiter<Void>] {
            guard !waiters.isEmpty else { return [] }
            defer { waiters = [] }
            return waiters
        }
    }

    private enum Step {
        case value(Value)
        case end
        case wait(Waiter<Void>)
    }

    private let shared: Lock<Shared>
    private let readerCount = Atomic<Int>(0)

    package init(_ value: Value) {
        shared = Lock(Shared(value: value))
    }

    /// Whether a stream of this value is alive: who has no reader need not publish.
    package var hasReaders: Bool { readerCount.load(ordering: .relaxed) > 0 }

    package var current: Value { shared.withLock { $0.value } }

    /// Replaces the value by what `next` makes of it; nil, and anything after the end, leaves it.
    package func update(_ next: (Value) -> Value?) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            guard !shared.isFinished, let value = next(shared.value) else { return [] }
            shared.value = value
            shared.version += 1
            return shared.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The last value: `next` of the current one. Every stream delivers it and ends.
    package func finish(_ next: (Value) -> Value) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            guard !shared.isFinished else { return [] }
            shared.value = next(shared.value)
            shared.version += 1
            shared.isFinished = true
            return shared.takeWaiters()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// - Parameter owner: What is to live as long as the stream.
    package func stream(keeping owner: (any AnyObject & Sendable)? = nil) -> AsyncStream<Value> {
        let reader = Reader(self, keeping: owner)
        return AsyncStream { await reader.next() }
    }

    /// One stream's place. Only its stream calls it, one call at a time.
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
            while !Task.isCancelled {
                switch step() {
                case .value(let value):
                    return value
                case .end:
                    return nil
                case .wait(let waiter):
                    await waiter.wait()
                    source.shared.withLock { shared in shared.waiters.removeAll { $0 === waiter } }
                }
            }
            return nil
        }

        private func step() -> Step {
            source.shared.withLock { shared in
                if seen.load(ordering: .relaxed) != shared.version {
                    seen.store(shared.version, ordering: .relaxed)
                    return .value(shared.value)
                }
                if shared.isFinished { return .end }
                let waiter = Waiter<Void>()
                shared.waiters.append(waiter)
                return .wait(waiter)
            }
        }
    }
}
