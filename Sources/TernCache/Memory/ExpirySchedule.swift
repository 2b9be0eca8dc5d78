import Synchronization
import TernConcurrency

/// When expired entries are next swept out: at the first deadline, but not sooner than an interval from its planning.
/// A cache without deadlines plans nothing and wakes nobody.
@usableFromInline
final class ExpirySchedule: Sendable {
    private struct Plan {
        var time = UInt64.max
        var number = 0
        /// Sleeps until the time of the plan. Owned by the plan, cancelled by the next one and by the cache's end.
        var task: Task<Void, Never>?
    }

    private let interval: UInt64
    private let plan = Lock(Plan())
    /// The plan's time, for a glance without the lock.
    private let time = Atomic<UInt64>(.max)

    init(interval: UInt64) {
        self.interval = max(1, interval)
    }

    /// Whether an entry of this deadline could need an earlier sweep than the one that is planned.
    func wants(_ deadline: UInt64) -> Bool { deadline < time.load(ordering: .relaxed) }

    func schedule(_ deadline: UInt64, clock: CacheClock, sweep: @escaping @Sendable () -> Void) {
        let wanted = max(deadline, CacheClock.sum(clock.now(), interval))
        let replaced = plan.withLock { plan -> Task<Void, Never>? in
            guard wanted < plan.time else { return nil }
            plan.number += 1
            let number = plan.number
            plan.time = wanted
            time.store(wanted, ordering: .relaxed)
            let old = plan.task
            // Not a child of the inserting task: the sweep outlives it, and takes none of its values along.
            plan.task = Task.detached(priority: .utility) { [weak self] in
                do { try await clock.sleep(wanted) } catch { return }
                if self?.begin(number) == true { sweep() }
            }
            return old
        }
        replaced?.cancel()
    }

    /// Whether this plan is still the valid one; it is not any more afterwards.
    private func begin(_ number: Int) -> Bool {
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
