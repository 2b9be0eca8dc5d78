import TernConcurrency

/// One teller, many listeners; each hears what comes after it began.
final class PressureBroadcast: Sendable {
    private struct Listeners {
        var all: [UInt64: AsyncStream<MemoryPressureLevel>.Continuation] = [:]
        var last: UInt64 = 0
        var isFinished = false
    }

    private let listeners = Lock(Listeners())

    func stream() -> AsyncStream<MemoryPressureLevel> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MemoryPressureLevel.self, bufferingPolicy: .bufferingNewest(16))
        let number = listeners.withLock { listeners -> UInt64? in
            guard !listeners.isFinished else { return nil }
            listeners.last += 1
            listeners.all[listeners.last] = continuation
            return listeners.last
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.listeners.withLock { $0.all.removeValue(forKey: number) }
        }
        return stream
    }

    func tell(_ level: MemoryPressureLevel) {
        for continuation in listeners.withLock({ Array($0.all.values) }) { continuation.yield(level) }
    }

    /// Nothing more can come.
    func finish() {
        let all = listeners.withLock { listeners in
            listeners.isFinished = true
            defer { listeners.all = [:] }
            return Array(listeners.all.values)
        }
        for continuation in all { continuation.finish() }
    }
}
