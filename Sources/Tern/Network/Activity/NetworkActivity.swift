import TernConcurrency

/// Whether an indicator of network activity is to be shown: not for a request that is over in a moment, and without
/// flicker between requests that follow each other.
///
/// ```swift
/// let activity = NetworkActivity()
/// await activity.follow(client.session.tasks)
/// await activity.setEnabled(true)
/// for await isVisible in activity.visibility { indicator.isHidden = !isVisible }
/// ```
///
/// It shows once something has run for the activation delay, and hides once nothing has for the completion delay. A task
/// counts while it runs: paused and suspended ones do not.
public actor NetworkActivity {
    private var state: NetworkActivityState
    private let clock: any Clock<Duration>
    private let latest = Latest(false)
    /// The wait of the moment; owned here, cancelled when the machine asks for another or for none.
    private var timer: Task<Void, Never>?
    private var followed: Set<Session.ID> = []
    /// One for each session that is followed; owned here, cancelled with the activity.
    private var followers: [Session.ID: Task<Void, Never>] = [:]

    /// - Parameters:
    ///   - activationDelay: How long something must run before it shows. 1 second by default.
    ///   - completionDelay: How long nothing must run before it hides. 0.17 seconds by default.
    ///   - clock: The clock of both.
    public init(
        activationDelay: Duration = .seconds(1), completionDelay: Duration = .milliseconds(170),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        state = NetworkActivityState(activationDelay: activationDelay, completionDelay: completionDelay)
        self.clock = clock
    }

    deinit {
        timer?.cancel()
        for follower in followers.values { follower.cancel() }
        latest.finish { _ in false }
    }

    /// Whether the indicator is to be shown: the current answer first, then each change. Ends when the activity is
    /// released, with false.
    public nonisolated var visibility: AsyncStream<Bool> { latest.stream() }

    /// Whether the indicator is to be shown at this moment.
    public nonisolated var isVisible: Bool { latest.current }

    /// Whether it is shown at all. False at first.
    public var isEnabled: Bool { state.isEnabled }

    /// Shows it from now on, or hides it at once. What runs already counts when it is enabled.
    public func setEnabled(_ isEnabled: Bool) { perform(state.setEnabled(isEnabled)) }

    /// Follows a session's tasks, those that run already too, until the session has ended. A second call changes nothing.
    public func follow(_ registry: TaskRegistry) async {
        let session = registry.ledger.sessionID
        guard followed.insert(session).inserted else { return }
        // What happens from here on waits in the stream until what runs is counted: a count that is taken in after a newer
        // event would bring back what has ended, and lose what has begun.
        let events = registry.events
        await count(registry, session)
        followers[session] = Task { [weak self, weak registry] in
            for await event in events {
                guard let self else { return }
                await self.take(event, of: session, registry)
            }
            await self?.forget(session)
        }
    }

    private func take(_ event: TaskRegistry.Event, of session: Session.ID, _ registry: TaskRegistry?) async {
        switch event {
        case .resumed(let task): perform(state.started(.init(session: session, task: task.id)))
        case .suspended(let task): perform(state.stopped(.init(session: session, task: task.id)))
        case .completed(let completion): perform(state.stopped(.init(session: session, task: completion.task.id)))
        case .dropped:
            // What was missed is not known: what runs now is.
            if let registry { await count(registry, session) }
        case .fileMoved, .moveFailed, .sessionInvalidated: break
        }
    }

    private func count(_ registry: TaskRegistry, _ session: Session.ID) async {
        let running = await registry.snapshot.filter { $0.state == .running }.map(\.id)
        perform(state.running(Set(running), of: session))
    }

    private func forget(_ session: Session.ID) {
        followers[session] = nil
        followed.remove(session)
        perform(state.running([], of: session))
    }

    private func perform(_ actions: [NetworkActivityState.Action]) {
        for action in actions {
            switch action {
            case .show: latest.update { $0 ? nil : true }
            case .hide: latest.update { $0 ? false : nil }
            case .stopTimer: timer?.cancel()
            case .startTimer(let delay, let number): startTimer(delay, number)
            }
        }
    }

    private func startTimer(_ delay: Duration, _ number: UInt64) {
        timer?.cancel()
        timer = Task { [weak self, clock] in
            // Cancelled: the machine does not wait for it any more.
            guard (try? await clock.sleepWithoutDescriptor(for: delay)) != nil else { return }
            await self?.timerFired(number)
        }
    }

    private func timerFired(_ number: UInt64) { perform(state.timerFired(number)) }
}
