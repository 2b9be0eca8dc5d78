import Synchronization

/// Numbers from 1, each given once.
final class SerialNumbers: Sendable {
    private let last = Atomic<UInt64>(0)

    func next() -> UInt64 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
