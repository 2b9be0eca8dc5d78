/// AFNetworking's machine for the activity indicator, with its two faults mended: tasks are counted by identity, so that a
/// pause and an end count once, and enabling it looks at what runs. Pure.
struct NetworkActivityState {
    struct Running: Hashable {
        let session: Session.ID
        let task: TaskID
    }

    enum Phase: Hashable {
        case notActive
        case delayingStart
        case active
        case delayingEnd
    }

    enum Action: Hashable {
        case show
        case hide
        /// To be answered by `timerFired` with this number.
        case startTimer(Duration, UInt64)
        case stopTimer
    }

    private let activationDelay: Duration
    private let completionDelay: Duration
    private var running: Set<Running> = []
    /// The wait that counts: an older one that fires late is not it.
    private var timer: UInt64 = 0
    private(set) var phase = Phase.notActive
    private(set) var isEnabled = false

    init(activationDelay: Duration, completionDelay: Duration) {
        self.activationDelay = activationDelay
        self.completionDelay = completionDelay
    }

    mutating func started(_ task: Running) -> [Action] {
        running.insert(task)
        return changed()
    }

    mutating func stopped(_ task: Running) -> [Action] {
        guard running.remove(task) != nil else { return [] }
        return changed()
    }

    /// All that runs of one session.
    mutating func running(_ tasks: Set<TaskID>, of session: Session.ID) -> [Action] {
        running = running.filter { $0.session != session }
        for task in tasks { running.insert(Running(session: session, task: task)) }
        return changed()
    }

    mutating func setEnabled(_ isEnabled: Bool) -> [Action] {
        guard self.isEnabled != isEnabled else { return [] }
        self.isEnabled = isEnabled
        if isEnabled { return changed() }
        phase = .notActive
        timer += 1
        return [.stopTimer, .hide]
    }

    mutating func timerFired(_ number: UInt64) -> [Action] {
        guard number == timer else { return [] }
        switch phase {
        case .delayingStart where !running.isEmpty:
            phase = .active
            return [.show]
        case .delayingStart:
            phase = .notActive
            return []
        case .delayingEnd:
            phase = .notActive
            return [.hide]
        case .notActive, .active:
            return []
        }
    }

    private mutating func changed() -> [Action] {
        guard isEnabled else { return [] }
        switch (phase, running.isEmpty) {
        case (.notActive, false):
            phase = .delayingStart
            return [wait(activationDelay)]
        case (.active, true):
            phase = .delayingEnd
            return [wait(completionDelay)]
        case (.delayingEnd, false):
            phase = .active
            timer += 1
            return [.stopTimer]
        case (.notActive, true), (.delayingStart, _), (.active, false), (.delayingEnd, true):
            return []
        }
    }

    private mutating func wait(_ delay: Duration) -> Action {
        timer += 1
        return .startTimer(delay, timer)
    }
}
