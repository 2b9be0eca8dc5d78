import GtkBridge

/// A timer of 16 ms in the main loop, which notes by how many milliseconds each of its turns came late.
@MainActor
final class LoopTimer {
    private var late: [Double] = []
    private let start = ContinuousClock.now
    private var last = ContinuousClock.now
    private var isRunning = true

    init() {
        MainLoop.every(16) { self.turn() }
    }

    private func turn() -> Bool {
        guard isRunning else { return false }
        let now = ContinuousClock.now
        // GLib counts the next turn from this one.
        late.append(max(0, (now - last) / .milliseconds(1) - 16))
        last = now
        return true
    }

    /// Ends it. How late it was; a turn that should have come by now counts.
    func stop() -> Lateness {
        _ = turn()
        isRunning = false
        return Lateness(late, (last - start) / .seconds(1))
    }
}

/// How late a timer came, in milliseconds.
struct Lateness: CustomStringConvertible {
    let median: Double
    let p95: Double
    private let count: Int
    private let seconds: Double

    var isGood: Bool { median <= 4 && p95 <= 20 }

    init(_ samples: [Double], _ seconds: Double) {
        let sorted = samples.sorted()
        count = sorted.count
        self.seconds = seconds
        median = count == 0 ? 0 : sorted[count / 2]
        p95 = count == 0 ? 0 : sorted[count * 95 / 100]
    }

    var description: String {
        "median \(median.rounded(to: 2)) ms, p95 \(p95.rounded(to: 2)) ms, \(count) turns in \(seconds.rounded(to: 2)) s"
    }
}

extension Double {
    func rounded(to places: Int) -> Double {
        let factor = places == 1 ? 10.0 : 100.0
        return (self * factor).rounded() / factor
    }
}
