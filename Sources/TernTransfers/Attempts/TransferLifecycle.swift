import Tern

/// Decides which commands a transfer accepts in each phase, and the action that follows. Pure.
///
/// A pause ends the run of the transfer like a cancellation, so that a paused transfer holds nothing: neither a
/// connection, nor a timer, nor a file. Its next run continues what the last one has left, as a later process would.
struct TransferLifecycle {
    /// The action that follows a command, or the end of a run.
    enum Action: Equatable {
        case none
        /// Cancels the run.
        case interrupt
        /// Begins another run.
        case start
        /// Delivers the end of the last run as that of the transfer.
        case deliver
    }

    private enum Phase {
        case running
        /// The run ends because of a pause. Another one follows if it was resumed meanwhile.
        case pausing(isResumed: Bool)
        case paused
        case ended(Session.TaskState)
    }

    private var phase = Phase.running
    private var isCancelled = false

    /// The state that a handle shows. A transfer is suspended from the call of `pause` on.
    var state: Session.TaskState {
        switch phase {
        case .running, .pausing(isResumed: true): .running
        case .pausing(isResumed: false), .paused: .suspended
        case .ended(let state): state
        }
    }

    /// Whether the last run has ended because of a pause.
    var isPaused: Bool { if case .paused = phase { true } else { false } }

    /// Whether the run is to end, or has ended.
    var isInterrupted: Bool { if case .running = phase { isCancelled } else { true } }

    mutating func pause() -> Action {
        if isCancelled { return .none }
        switch phase {
        case .running:
            phase = .pausing(isResumed: false)
            return .interrupt
        case .pausing:
            phase = .pausing(isResumed: false)
            return .none
        case .paused, .ended:
            return .none
        }
    }

    mutating func resume() -> Action {
        if isCancelled { return .none }
        switch phase {
        case .pausing:
            phase = .pausing(isResumed: true)
            return .none
        case .paused:
            phase = .running
            return .start
        case .running, .ended:
            return .none
        }
    }

    mutating func cancel() -> Action {
        if isCancelled { return .none }
        switch phase {
        case .running, .pausing:
            isCancelled = true
            return .interrupt
        case .paused:
            isCancelled = true
            phase = .ended(.cancelled)
            return .deliver
        case .ended:
            return .none
        }
    }

    /// Takes the end of a run.
    ///
    /// - Parameter state: The state of the transfer if this is its end.
    mutating func runEnded(_ state: Session.TaskState) -> Action {
        guard state == .cancelled, !isCancelled, case .pausing(let isResumed) = phase else {
            // The end of a run that was complete comes before a pause.
            phase = .ended(state)
            return .deliver
        }
        phase = isResumed ? .running : .paused
        return isResumed ? .start : .none
    }
}

/// The time of a transfer without its pauses. Pure; the time since the start is given.
struct ActiveTime {
    private var paused = Duration.zero
    /// The time at which the present pause began; nil for none.
    private var pauseStart: Duration?

    mutating func pause(at time: Duration) { if pauseStart == nil { pauseStart = time } }

    mutating func resume(at time: Duration) {
        guard let pauseStart else { return }
        paused += time - pauseStart
        self.pauseStart = nil
    }

    /// Returns the time without the pauses.
    func elapsed(at time: Duration) -> Duration { (pauseStart ?? time) - paused }
}
