import TernConcurrency

/// The phase of a session, and those who wait for the end of its tasks or for its own. Pure: its methods return the
/// results of a change, and `Session` performs them.
struct SessionLife {
    enum Phase {
        case open
        /// Takes no more tasks; the live ones finish.
        case finishing
        case invalidated
    }

    /// The results of a change.
    struct Change {
        /// Whether the session was invalidated by this change.
        var isInvalidated = false
        /// Those whose wait is over.
        var waiters: [Waiter<Void>] = []
    }

    private struct Drain {
        let waiter: Waiter<Void>
        /// The tasks whose ends it still waits for.
        var tasks: Set<UInt64>
    }

    private(set) var phase = Phase.open
    private var drains: [Drain] = []
    private var endWaiters: [Waiter<Void>] = []

    /// Whether the session has to learn of the end of a task.
    var needsEnds: Bool { phase == .finishing || !drains.isEmpty }

    /// Adds a caller that waits for the ends of tasks, at least one.
    mutating func addDrain(_ waiter: Waiter<Void>, of tasks: Set<UInt64>) {
        drains.append(Drain(waiter: waiter, tasks: tasks))
    }

    /// Adds a caller that waits for the invalidation.
    mutating func addEndWaiter(_ waiter: Waiter<Void>) { endWaiters.append(waiter) }

    /// Removes a caller that does not wait any more.
    mutating func remove(_ waiter: Waiter<Void>) {
        drains.removeAll { $0.waiter === waiter }
        endWaiters.removeAll { $0 === waiter }
    }

    /// Notes that the session takes no more tasks. It is invalidated when the last one has left.
    ///
    /// - Parameter isIdle: Whether the session has no task.
    mutating func finish(isIdle: Bool) -> Change {
        if phase == .open { phase = .finishing }
        return invalidate(ifIdle: isIdle)
    }

    /// Notes that a task has left.
    ///
    /// - Parameter isIdle: Whether the session has no task.
    mutating func taskEnded(_ number: UInt64, isIdle: Bool) -> Change {
        var waiters: [Waiter<Void>] = []
        for index in drains.indices where drains[index].tasks.remove(number) != nil && drains[index].tasks.isEmpty {
            waiters.append(drains[index].waiter)
        }
        if !waiters.isEmpty { drains.removeAll { $0.tasks.isEmpty } }
        var change = invalidate(ifIdle: isIdle)
        change.waiters = waiters + change.waiters
        return change
    }

    private mutating func invalidate(ifIdle isIdle: Bool) -> Change {
        guard isIdle, phase == .finishing else { return Change() }
        phase = .invalidated
        defer { endWaiters = [] }
        return Change(isInvalidated: true, waiters: endWaiters)
    }
}
