import Synchronization
import TernConcurrency

/// Schedules the next sweep of expired entries: at the first deadline, but not sooner than an interval after it is
/// scheduled. A cache without deadlines schedules nothing and never wakes the process.
@usableFromInline
final class ExpirySchedule: Sendable {
    private struct Plan {
        var time = UInt64.max
        var number = 0
        /// Sleeps until the time of the plan. Owned by the plan; cancelled by the next plan and by the end of the
        /// cache.
        var task: Task<Void, Never>?
    }

    private let interval: UInt64
    private let plan = Lock(Plan())
    /// A copy of the plan's time, which is read without the lock.
    private let time = Atomic<UInt64>(.max)

    init(interval: UInt64) {
        self.interval = max(1, interval)
    }

    /// Returns whether an entry with this deadline may need an earlier sweep than the scheduled one.
    func needsEarlierSweep(for deadline: UInt64) -> Bool { deadline < time.load(ordering: .relaxed) }

    func schedule(_ deadline: UInt64, clock: CacheClock, sweep: @escaping @Sendable () -> Void) {
        let wanted = max(deadline, CacheClock.saturatingSum(clock.now(), interval))
        let replaced = plan.withLock { plan -> Task<Void, Never>? in
            guard wanted < plan.time else { return nil }
            plan.number += 1
            let number = plan.number
            plan.time = wanted
            time.store(wanted, ordering: .relaxed)
            let old = plan.task
            // Not a child of the inserting task: the sweep outlives it, and does not inherit its task-local values.
            plan.task = Task.detached(priority: .utility) { [weak self] in
                do { try await clock.sleep(wanted) } catch { return }
                if self?.start(planNumber: number) == true { sweep() }
            }
            return old
        }
        replaced?.cancel()
    }

    /// Returns whether this plan is still valid, and ends it.
    private func start(planNumber number: Int) -> Bool {
        plan.withLock { plan in
            guard plan.number == number else { return false }
            plan.time = .max
            time.store(.max, ordering: .relaxed)
            return true
        }
    }

    func cancel() {
        let task = plan.withLock { plan in
            plan.number += 1
            return plan.task.take()
        }
        task?.cancel()
    }
}

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

    @usableFromInline
    static func nanoseconds(_ time: Duration) -> UInt64 { time.wholeNanoseconds }
}
