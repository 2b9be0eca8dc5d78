/// How fast bytes move: an average that forgets what is longer ago than about three seconds.
///
/// Bytes and time are averaged apart and divided at the end, so the first figure is the plain average since the
/// start, a burst counts with the pause before it, and unequal intervals weigh by their length.
package struct ThroughputMeter: Sendable, Hashable {
    /// After this many seconds an interval counts 1/e.
    private static let window = 3.0
    /// Shorter intervals wait for the next record: a socket delivers in bursts, whose own rate means nothing.
    private static let shortestInterval: UInt64 = 50_000_000
    /// No figure before this much time has been seen.
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

    /// Takes note of the bytes moved so far, at an instant of a monotonic clock.
    ///
    /// The first record is the point to count from, so what a resumed download had before does not count. A count
    /// below the last one (a body is sent again) starts the measurement over.
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
        // 1 / (1 + x) in place of exp(-x): the same for short intervals, gentler on long ones, and no libm.
        let kept = 1 / (1 + interval / Self.window)
        bytes = bytes * kept + Double(completed - last.bytes)
        seconds = seconds * kept + interval
        measured += interval
        self.last = Mark(bytes: completed, time: nanoseconds)
    }

    /// Forgets the speed, when a transfer pauses: the time until the next record must not count.
    package mutating func reset() {
        last = nil
        bytes = 0
        seconds = 0
        measured = 0
    }

    /// Bytes per second, or nil as long as too little has been seen.
    package var bytesPerSecond: Double? {
        measured >= Self.shortestMeasurement ? bytes / seconds : nil
    }

    /// Seconds until `total` bytes are there, at the present speed; nil if the total or the speed is unknown, or
    /// nothing moves.
    package func secondsLeft(total: Int64?) -> Double? {
        guard let total else { return nil }
        if completed >= total { return 0 }
        guard let speed = bytesPerSecond, speed > 0 else { return nil }
        return Double(total - completed) / speed
    }
}
