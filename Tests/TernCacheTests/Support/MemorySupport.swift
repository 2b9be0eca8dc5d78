import TernCache
import TernConcurrency

/// A pseudorandom generator with a seed, so that failures can be repeated (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A value that is an object, and can run code in `deinit`.
final class Token: Sendable {
    let number: Int
    private let end: (@Sendable () -> Void)?

    init(_ number: Int, end: (@Sendable () -> Void)? = nil) {
        self.number = number
        self.end = end
    }

    deinit { end?() }
}

/// A source of memory pressure that a test controls.
final class ManualPressure: MemoryPressureSource {
    private let stream: AsyncStream<MemoryPressureLevel>
    let continuation: AsyncStream<MemoryPressureLevel>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    var levels: AsyncStream<MemoryPressureLevel> { stream }
}

extension MemoryCacheConfiguration {
    /// Returns a configuration that ignores the machine's memory pressure.
    static func quiet(
        cost: Int = .max, count: Int = .max, entryCost: Int? = nil, costAfterPurge: Int? = nil,
        policy: MemoryCachePolicy = .s3FIFO
    ) -> MemoryCacheConfiguration {
        var configuration = MemoryCacheConfiguration(
            limits: MemoryCacheLimits(cost: cost, count: count, entryCost: entryCost, costAfterPurge: costAfterPurge),
            policy: policy)
        configuration.pressure = nil
        return configuration
    }
}

extension MemoryCacheEvent {
    var eviction: MemoryCacheEviction<Key>? {
        if case .evicted(let eviction) = self { eviction } else { nil }
    }
}

extension AsyncStream where Element: Sendable {
    /// Returns the first elements.
    func first(_ count: Int) async -> [Element] {
        var elements: [Element] = []
        var iterator = makeAsyncIterator()
        while elements.count < count, let element = await iterator.next() { elements.append(element) }
        return elements
    }
}
