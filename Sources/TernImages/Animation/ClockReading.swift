import TernConcurrency

/// A clock of any kind as two closures: the time since this value was made, and a sleep until such a time.
struct ClockReading: Sendable {
    let now: @Sendable () -> Duration
    /// Returns at the time, or earlier when the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async -> Void

    init(_ clock: any Clock<Duration>) { self = Self.reading(clock) }

    private init(now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async -> Void) {
        self.now = now
        self.sleep = sleep
    }

    private static func reading<C: Clock>(_ clock: C) -> ClockReading where C.Duration == Duration {
        let start = clock.now
        return ClockReading(
            now: { start.duration(to: clock.now) },
            sleep: { until in
                // A sleep throws only when the task is cancelled, and the caller looks for that itself.
                try? await clock.sleepWithoutDescriptor(until: start.advanced(by: until))
            })
    }
}
