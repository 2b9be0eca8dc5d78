import TernConcurrency

/// A clock whose times are nanoseconds since the creation of the cache, so that deadlines are plain numbers for any
/// clock, which each read compares at little cost. `RelativeClock` of TernImages does the same with `Duration`.
@usableFromInline
struct CacheClock: Sendable {
    /// Returns the nanoseconds since the creation of the cache.
    @usableFromInline let now: @Sendable () -> UInt64
    /// Returns at a point in time, or throws when the task is cancelled.
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

    /// Returns the deadline of an entry that lives for `time` from now. Nil returns `.max`, which never comes.
    @inlinable
    func deadline(after time: Duration?) -> UInt64 {
        guard let time else { return .max }
        return Self.saturatingSum(now(), Self.nanoseconds(time))
    }

    /// Returns a sum below `.max`, which stands for never.
    @usableFromInline
    static func saturatingSum(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max - 1 : min(sum, .max - 1)
    }

    /// Returns a duration in nanoseconds, for inlinable code.
    @usableFromInline
    static func nanoseconds(_ time: Duration) -> UInt64 { time.wholeNanoseconds }
}
