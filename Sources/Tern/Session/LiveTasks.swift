/// The tasks of a session from their registration until their values are delivered, and those who wait for that. Pure:
/// its methods return the results of a change, and `TaskRegistry` notifies those whom they concern.
///
/// `TaskAdmission` decides which tasks the session takes, and counts them. The last one is known from there, because a
/// task that the session has taken can still be on its way here.
struct LiveTasks<Record: AnyObject> {
    /// The phase of the session.
    enum Phase: Equatable {
        case open
        /// Takes no more tasks; the live ones finish.
        case finishing
        case invalidated
    }

    /// The identity of a caller that waits.
    struct WaitID: Hashable {
        fileprivate let number: UInt64
    }

    /// The results of a change.
    struct Outcome: Equatable {
        /// The waits that are over.
        var endedWaits: [WaitID] = []
        /// Whether the session was invalidated by this change. Its events end.
        var isInvalidated = false
        /// Whether the events end because the session is gone and no task is left.
        var endsEvents = false

        /// Whether there is nobody to notify.
        var isEmpty: Bool { endedWaits.isEmpty && !isInvalidated && !endsEvents }
    }

    private struct FreshTask {
        /// Weak: until a task is first resumed, its handles alone hold it, because nothing else could start it.
        weak var record: Record?
    }

    private var fresh: [UInt64: FreshTask] = [:]
    private var running = NumberTable<Record>()
    /// The tasks whose delivery each caller still waits for.
    private var waits: [(id: WaitID, remaining: Set<UInt64>)] = []
    private var lastWait: UInt64 = 0
    private(set) var phase = Phase.open
    private var isSessionGone = false
    /// Whether no further event can come.
    private(set) var isOver = false

    // MARK: Tasks

    /// Adds a task that waits for its first `resume`.
    mutating func addFresh(_ record: Record, number: UInt64) { fresh[number] = FreshTask(record: record) }

    /// Adds a task that starts.
    mutating func addRunning(_ record: Record, number: UInt64) {
        if !fresh.isEmpty { fresh[number] = nil }
        running[number] = record
    }

    /// Removes a task whose value was delivered. One that ended before it was listed was never added.
    ///
    /// - Parameter isLast: Whether no other task of the session is left.
    mutating func delivered(_ number: UInt64, isLast: Bool) -> Outcome {
        if running.removeValue(for: number) == nil, !fresh.isEmpty { fresh[number] = nil }
        return ended(number, isLast: isLast)
    }

    /// Removes a task that was never resumed and whose last handle is gone.
    mutating func forget(_ number: UInt64, isLast: Bool) -> Outcome {
        fresh[number] = nil
        return ended(number, isLast: isLast)
    }

    private mutating func ended(_ number: UInt64, isLast: Bool) -> Outcome {
        var outcome = Outcome()
        if waits.isEmpty, phase == .open, !isSessionGone { return outcome }
        for index in waits.indices
        where waits[index].remaining.remove(number) != nil && waits[index].remaining.isEmpty {
            outcome.endedWaits.append(waits[index].id)
        }
        if !outcome.endedWaits.isEmpty { waits.removeAll { $0.remaining.isEmpty } }
        if isLast { end(&outcome) }
        return outcome
    }

    /// The tasks, in any order: also those that have ended and are about to report it.
    var records: [Record] { fresh.values.compactMap(\.record) + running.values }

    func record(_ number: UInt64) -> Record? { running[number] ?? fresh[number]?.record }

    // MARK: Waits

    /// Waits until every task that is known now has delivered. Returns nil if there is none.
    mutating func wait() -> WaitID? {
        let known = Set(running.numbers).union(fresh.keys)
        if known.isEmpty { return nil }
        lastWait += 1
        let wait = WaitID(number: lastWait)
        waits.append((wait, known))
        return wait
    }

    mutating func cancel(_ wait: WaitID) { waits.removeAll { $0.id == wait } }

    // MARK: The end of the session

    /// Notes that the session takes no more tasks. It is invalidated when the last one has delivered.
    ///
    /// - Parameter isIdle: Whether the session has no task.
    mutating func close(isIdle: Bool) -> Outcome {
        var outcome = Outcome()
        guard phase == .open else { return outcome }
        phase = .finishing
        if isIdle { end(&outcome) }
        return outcome
    }

    /// Notes that the session is gone. Its events end with the last live task.
    mutating func sessionIsGone(isIdle: Bool) -> Outcome {
        var outcome = Outcome()
        isSessionGone = true
        if isIdle { end(&outcome) }
        return outcome
    }

    /// Notes that the last task has ended. It was never added.
    ///
    /// - Parameter isIdle: Whether the session still has no task.
    mutating func becameIdle(isIdle: Bool) -> Outcome {
        var outcome = Outcome()
        if isIdle, phase == .finishing || isSessionGone { end(&outcome) }
        return outcome
    }

    private mutating func end(_ outcome: inout Outcome) {
        if phase == .finishing {
            phase = .invalidated
            outcome.isInvalidated = true
        }
        outcome.endsEvents = isSessionGone
        isOver = isOver || outcome.isInvalidated || outcome.endsEvents
    }
}
