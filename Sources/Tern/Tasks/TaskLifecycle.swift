/// Decides which commands a task accepts in each phase, and the action that follows. Pure.
struct TaskLifecycle {
    private enum Phase {
        case fresh
        case running
        case paused
        case ended
    }

    /// The action that follows a command.
    enum Action: Equatable {
        case none
        /// Starts the task for the first time.
        case start
        case resumeAttempt
        case pauseAttempt
        case cancelAttempt
        /// Ends a task that never started.
        case endUnstarted
    }

    private var phase = Phase.fresh
    private(set) var state = Session.TaskState.suspended
    private(set) var isCancelled = false

    var isFresh: Bool { phase == .fresh }
    var isPaused: Bool { phase == .paused }

    mutating func resume() -> Action {
        guard !isCancelled else { return .none }
        switch phase {
        case .fresh:
            phase = .running
            state = .running
            return .start
        case .paused:
            phase = .running
            state = .running
            return .resumeAttempt
        case .running, .ended:
            return .none
        }
    }

    mutating func pause() -> Action {
        guard phase == .running, !isCancelled else { return .none }
        phase = .paused
        state = .suspended
        return .pauseAttempt
    }

    mutating func cancel() -> Action {
        guard phase != .ended, !isCancelled else { return .none }
        isCancelled = true
        return phase == .fresh ? .endUnstarted : .cancelAttempt
    }

    /// Ends the task. Returns false if it has ended before.
    mutating func end(_ state: Session.TaskState) -> Bool {
        guard phase != .ended else { return false }
        phase = .ended
        self.state = state
        return true
    }
}
