/// Measures throughput as an average over about the last three seconds.
///
/// Bytes and time are averaged separately and divided at the end. The first figure is therefore the plain average since
/// the start, a burst counts with the pause before it, and unequal intervals are weighted by their length.
package struct ThroughputMeter: Sendable, Hashable {
    /// The number of seconds after which an interval counts 1/e.
    private static let window = 3.0
    /// The shortest interval in nanoseconds. A shorter one waits for the next record, because a socket delivers in
    /// bursts.
    private static let shortestInterval: UInt64 = 50_000_000
    /// The number of seconds before the first figure.
    private static let shortestMeasurement = 0.1

    private struct Mark: Hashable {
        var bytes: Int64
        var time: UInt64
    }

    private var last: Mark?
    private var completed: Int64 = 0
    private var bytes = 0.0
    private var seconds = 0.0
    private var measured = 0.0

    package init() {}

    /// Records the number of bytes moved so far, at an instant of a monotonic clock.
    ///
    /// Counting begins at the first record, so the bytes that a resumed download had before do not count. A number
    /// below the last one, when a body is sent again, starts the measurement over.
    package mutating func record(completed: Int64, at nanoseconds: UInt64) {
        self.completed = completed
        guard let last else {
            self.last = Mark(bytes: completed, time: nanoseconds)
            return
        }
        guard completed >= last.bytes else {
            reset()
            self.last = Mark(bytes: completed, time: nanoseconds)
            return
        }
        guard nanoseconds >= last.time, nanoseconds - last.time >= Self.shortestInterval else { return }
        let interval = Double(nanoseconds - last.time) / 1e9
        // 1 / (1 + x) instead of exp(-x): equal for short intervals, larger for long ones, and without libm.
        let kept = 1 / (1 + interval / Self.window)
        bytes = bytes * kept + Double(completed - last.bytes)
        seconds = seconds * kept + interval
        measured += interval
        self.last = Mark(bytes: completed, time: nanoseconds)
    }

    /// Resets the measurement when a transfer pauses, because the time until the next record must not count.
    package mutating func reset() {
        last = nil
        bytes = 0
        seconds = 0
        measured = 0
    }

    /// Bytes per second; nil until enough time was measured.
    package var bytesPerSecond: Double? {
        measured >= Self.shortestMeasurement ? bytes / seconds : nil
    }

    /// Returns the number of seconds until `total` bytes have moved at the present speed; nil if the total or the speed
    /// is unknown, or nothing moves.
    package func secondsLeft(total: Int64?) -> Double? {
        guard let total else { return nil }
        if completed >= total { return 0 }
        guard let speed = bytesPerSecond, speed > 0 else { return nil }
        return Double(total - completed) / speed
    }
}
