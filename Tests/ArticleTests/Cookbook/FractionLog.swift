import Synchronization

/// Collects the fractions that a bar shows.
final class FractionLog: Sendable {
    private let fractions = Mutex<[Double]>([])

    var all: [Double] { fractions.withLock { $0 } }

    func add(_ fraction: Double) { fractions.withLock { $0.append(fraction) } }
}
