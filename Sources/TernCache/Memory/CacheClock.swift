import TernConcurrency

/// A clock as nanoseconds since the cache was made: the deadlines of entries are plain numbers, of whatever clock.
@usableFromInline
struct CacheClock: Sendable {
    /// Nanoseconds since the cache was made.
    @usableFromInline let now: @Sendable () -> UInt64
    /// Returns at a point of time, or throws when the task is cancelled.
    let sleep: @Sendable (UInt64) async throws -> Void

    init<Base: Clock>(_ clock: Base) where Base.Duration == Duration {
        let start = clock.now
        now = { start.duration(to: clock.now).wholeNanoseconds }
        sleep = { deadline in
            let seconds = Int64(deadline / 1_000_000_000)
            let rest = Int64(deadline % 1_000_000_000)
            let time = Duration.seconds(seconds) + .nanoseconds(rest)
            try await clock.sleepWithoutDescriptor(until: start.advanced(by: time))
        }
    }

    /// The deadline of what may live so long from now; `.max`, which never comes, for nil.
    @inlinable
    func deadline(after time: Duration?) -> UInt64 {
        guard let time else { return .max }
        return Self.sum(now(), Self.nanoseconds(time))
    }

    /// A sum that stays below `.max`, which means never.
    @usableFromInline
    static func sum(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max - 1 : min(sum, .max - 1)
    }

    @usableFromInline
    static func nanoseconds(_ time: Duration) -> UInt64 { time.wholeNanoseconds }
}
