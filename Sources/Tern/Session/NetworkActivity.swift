import TernConcurrency

/// Decides when an indicator of network activity is visible: not for a short request, and without flicker between
/// consecutive requests.
///
/// ```swift
/// let activity = NetworkActivity()
/// await activity.follow(client.session.tasks)
/// await activity.setEnabled(true)
/// for await isVisible in activity.visibility { indicator.isHidden = !isVisible }
/// ```
///
/// The indicator appears after tasks have run for the activation delay, and disappears after none has run for the
/// completion delay. A task counts while it runs. A task that was not started or is paused does not count.
public actor NetworkActivity {
    private var state: NetworkActivityState
    private let clock: any Clock<Duration>
    private let latest = Latest(false)
    /// The running delay. The actor cancels it when another delay or none is needed.
    private var timer: Task<Void, Never>?
    private var followed: Set<Session.ID> = []
    /// One task for each followed session, cancelled when the actor is released.
    private var followers: [Session.ID: Task<Void, Never>] = [:]

    /// - Parameters:
    ///   - activationDelay: The time that tasks must run before the indicator appears. 1 second by default.
    ///   - completionDelay: The time without a running task before the indicator disappears. 0.17 seconds by default.
    ///   - clock: The clock of both delays.
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

    /// The visibility of the indicator: the current value, then each change. Ends with false when the activity is
    /// released.
    public nonisolated var visibility: AsyncStream<Bool> { latest.stream() }

    /// A Boolean value that indicates whether the indicator is visible now.
    public nonisolated var isVisible: Bool { latest.current }

    /// A Boolean value that indicates whether the indicator can become visible. False by default.
    public var isEnabled: Bool { state.isEnabled }

    /// Enables the indicator, or disables and hides it at once. Tasks that already run count when it is enabled.
    public func setEnabled(_ isEnabled: Bool) { perform(state.setEnabled(isEnabled)) }

    /// Follows the tasks of a session, including those that already run, until the session ends. A second call has no
    /// effect.
    public func follow(_ registry: TaskRegistry) async {
        let session = registry.sessionID
        guard followed.insert(session).inserted else { return }
        // New events wait in the stream until the running tasks are counted: applying the count after a newer event
        // would restore a task that has ended, or lose one that has begun.
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
            // The missed events are not known, so the running tasks are counted again.
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
            // Cancelled: this delay is no longer needed.
            guard (try? await clock.sleepWithoutDescriptor(for: delay)) != nil else { return }
            await self?.timerFired(number)
        }
    }

    private func timerFired(_ number: UInt64) { perform(state.timerFired(number)) }
}

/// The state machine of AFNetworking's activity indicator, with two defects fixed: tasks are counted by identity, so
/// that a pause and an end count once, and enabling the indicator counts tasks that already run.
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
        /// Starts a timer. The caller then calls `timerFired` with this number.
        case startTimer(Duration, UInt64)
        case stopTimer
    }

    private let activationDelay: Duration
    private let completionDelay: Duration
    private var running: Set<Running> = []
    /// The number of the current timer. An older timer that fires late is ignored.
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

    /// Records all running tasks of one session.
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
