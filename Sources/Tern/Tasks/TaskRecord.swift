import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state of one task, shared by all its handles. It holds the work until it starts, and the work's Swift task until
/// the end, even if handles remain.
package final class TaskRecord: TaskControl {
    /// Runs when the task is first resumed, and calls `end` at its end.
    package typealias Work = @Sendable (TaskRecord) async -> Void

    private struct Shared {
        var lifecycle = TaskLifecycle()
        /// The request; nil after the end if its body is a sequence, which is then released.
        var request: PreparedRequest?
        var priority: Request.Priority
        var attempt: Attempt?
        /// Whether the attempt waits to be started because the task is paused.
        var isAttemptUnstarted = false
        var head: ResponseHead?
        /// The number of requests that were sent.
        var requestCount = 0
        /// The end of the last attempt, for its metrics. With its body until the end of the task, and after it only if
        /// the caller has the same object.
        var outcome: AttemptOutcome?
        /// nil until one of its properties is set.
        var handle: HandleState?

        /// Returns the state of a handle, to set one of its properties.
        mutating func makeHandleState() -> HandleState {
            if let handle { return handle }
            let handle = HandleState()
            self.handle = handle
            return handle
        }
    }

    /// The state that only tasks with a handle, and few others, have. A class, so that the record of a plain call has
    /// one empty reference in place of a dozen. Only touched with the lock of the record held.
    fileprivate final class HandleState {
        /// The request of a task that failed before it was prepared, or that has ended and released its body.
        var requestWithoutBody: Request?
        var label: String?
        var work: Work?
        /// Runs the work of a task with a handle. Owned here, cancelled by `cancel`, released at the end.
        var driver: Task<Void, Never>?
        /// Wakes the work when the task is cancelled while it waits for something other than an attempt.
        var onCancel: (@Sendable () -> Void)?
        /// Cancels the work of `cancellable(_:)`, by the number of each.
        var cancellations: [UInt64: @Sendable () -> Void] = [:]
        var lastCancellation: UInt64 = 0

        /// Returns the functions to call when the task is cancelled.
        var allCancellations: [@Sendable () -> Void] { Array(cancellations.values) + (onCancel.map { [$0] } ?? []) }
        /// Whether no further request is sent.
        var isStopped: Bool { isWorkCancelled || hasExpired }
        /// Called when the task is paused.
        var onPause: (@Sendable () -> Void)?
        /// Set while others wait for the response of the task.
        var sharing: TaskSharing?
        /// Whether the work of a task that has ended is not needed any more.
        var isWorkCancelled = false
        /// Whether the reader of a stream ends the task. True once the head of a stream was accepted.
        var readerEndsTask = false
        var headWaiters: [Waiter<Void>] = []
        var states: Latest<Session.TaskState>?
        var resumeData: ResumeData?
        weak var result: TaskDelivery?
        /// The end of the time for the task, once it has started; nil for no limit.
        var deadline: TaskDeadline?
        /// Ends code of the caller that still waits at the deadline. Owned here, cancelled at the end.
        var watchdog: Task<Void, Never>?
        /// Whether the time for the task is over.
        var hasExpired = false
        /// Whether the body of the request was measured for its progress.
        var hasMeasuredBody = false

        /// Returns the properties; nil if both are nil. A function, because an initializer that returns nil has
        /// allocated the object by then.
        static func of(refused: Request?, label: String?) -> HandleState? {
            if refused == nil, label == nil { return nil }
            let handle = HandleState()
            handle.requestWithoutBody = refused
            handle.label = label
            return handle
        }
    }

    package let id: TaskID
    package let registry: TaskRegistry
    var sessionID: Session.ID { registry.sessionID }
    /// The type of the task's value.
    let valueType: any Any.Type
    package let meter = ProgressMeter()
    /// Whether the task starts as soon as it exists. The registry holds any other one weakly until it starts.
    let startsImmediately: Bool
    let place: WorkPlace
    private let shared: Lock<Shared>

    /// Creates a task. `request` is nil for a task that the system kept from an earlier run, and for one that has
    /// failed already, whose request is `refused`.
    init(
        id: TaskID, registry: TaskRegistry, request: PreparedRequest?, refused: Request? = nil,
        valueType: any Any.Type, startsImmediately: Bool = true, place: WorkPlace = .elsewhere
    ) {
        self.startsImmediately = startsImmediately
        self.place = place
        self.id = id
        self.registry = registry
        self.valueType = valueType
        shared = Lock(
            Shared(
                request: request, priority: request?.request.priority ?? .normal,
                handle: HandleState.of(refused: refused, label: request?.request.label)))
    }

    deinit {
        // The session has taken the task, which was never resumed, and nothing can resume it any more.
        if !shared.withLock({ $0.lifecycle.state.isTerminal }) { registry.leave(id) }
    }

    // MARK: Properties of a handle

    package var request: Request? { shared.withLock { $0.request?.request ?? $0.handle?.requestWithoutBody } }

    var label: String? {
        get { shared.withLock { $0.handle?.label } }
        set { shared.withLock { $0.makeHandleState().label = newValue } }
    }

    package var state: Session.TaskState { shared.withLock { $0.lifecycle.state } }
    var metrics: TaskMetrics? { shared.withLock { $0.outcome?.metrics } }
    var resumeData: ResumeData? { shared.withLock { $0.handle?.resumeData } }
    var head: ResponseHead? { shared.withLock { $0.head } }
    var result: TaskDelivery? { shared.withLock { $0.handle?.result } }
    var isCancelled: Bool { shared.withLock { $0.lifecycle.isCancelled } }
    var requestCount: Int { shared.withLock { $0.requestCount } }
    /// The end of the time for the task, once it has started; nil for no limit.
    var deadline: TaskDeadline? { shared.withLock { $0.handle?.deadline } }
    /// Whether the time for the task is over, and its waits were ended.
    var hasExpired: Bool { shared.withLock { $0.handle?.hasExpired ?? false } }

    var priority: Request.Priority {
        get { shared.withLock { $0.priority } }
        set {
            shared.withLock { shared in
                shared.priority = newValue
                control(.prioritize(newValue), shared.attempt)
            }
        }
    }

    var states: Latest<Session.TaskState> {
        shared.withLock { shared in
            let handle = shared.makeHandleState()
            if let states = handle.states { return states }
            let states = Latest(shared.lifecycle.state)
            if shared.lifecycle.state.isTerminal { states.finish { $0 } }
            handle.states = states
            return states
        }
    }

    /// Waits for the head. Returns nil when the task ends, or the caller is cancelled, without one.
    func waitForHead() async -> ResponseHead? {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            guard shared.head == nil, !shared.lifecycle.state.isTerminal else { return false }
            shared.makeHandleState().headWaiters.append(waiter)
            return true
        }
        if isWaiting {
            await waiter.wait()
            shared.withLock { $0.handle?.headWaiters.removeAll { $0 === waiter } }
        }
        return head
    }

    /// Measures the body of a task that has sent nothing yet, once, so that its progress has a total.
    func measureBody() async {
        guard meter.upload.totalBytes == nil else { return }
        let prepared = shared.withLock { shared -> PreparedRequest? in
            let handle = shared.makeHandleState()
            defer { handle.hasMeasuredBody = true }
            return handle.hasMeasuredBody ? nil : shared.request
        }
        guard let prepared else { return }
        let length = await prepared.request.body.length(stated: prepared.statedLength, registry.files)
        if let length { meter.setMeasuredBody(length) }
    }

    // MARK: Commands of a handle. Calls take effect in call order: a transport only queues a command, so it is called
    // under the lock that decided.

    package func resume() {
        let (action, change) = shared.withLock { shared -> (TaskLifecycle.Action, Change?) in
            let action = shared.lifecycle.resume()
            switch action {
            case .start:
                startTime(&shared)
                if !startsImmediately { registry.live.start(self) }
            case .resumeAttempt:
                shared.handle?.deadline?.resume(MonotonicClock.nanoseconds())
                if shared.isAttemptUnstarted, let attempt = shared.attempt {
                    shared.isAttemptUnstarted = false
                    registry.start(attempt)
                    control(.prioritize(shared.priority), attempt)
                } else {
                    control(.resume, shared.attempt)
                }
            default:
                return (action, nil)
            }
            return (action, announce(.running, shared.handle?.states))
        }
        if let change { publish(change) }
        if action == .start { startDriver(at: place) }
    }

    func pause() {
        let (change, onPause) = shared.withLock { shared -> (Change?, (@Sendable () -> Void)?) in
            guard shared.lifecycle.pause() == .pauseAttempt else { return (nil, nil) }
            shared.handle?.deadline?.pause(MonotonicClock.nanoseconds())
            // Its response can be needed by others. Asked in here, so that one that joins now finds the task paused.
            let isShared = shared.handle?.sharing?.isShared() ?? false
            if !shared.isAttemptUnstarted, !isShared { control(.pause, shared.attempt) }
            return (announce(.suspended, shared.handle?.states), shared.handle?.onPause)
        }
        if let change { publish(change) }
        onPause?()
    }

    package func cancel() {
        if let sharing = shared.withLock({ $0.handle?.sharing }), sharing.leave() { return endKeepingWork() }
        var wake: Attempt.Wake?
        let (action, driver, cancellations, readerEndsTask) = shared.withLock { shared in
            let action = shared.lifecycle.cancel()
            if action == .cancelAttempt { unsafe wake = cancelAttempt(&shared) }
            let handle = shared.handle
            return (action, handle?.driver, handle?.allCancellations ?? [], handle?.readerEndsTask ?? false)
        }
        unsafe wake?.resume()
        switch action {
        case .cancelAttempt:
            driver?.cancel()
            for cancel in cancellations { cancel() }
            if readerEndsTask { end(cancellation("the task was cancelled")) }
        case .endUnstarted:
            startDriver(at: .elsewhere)
        default:
            break
        }
    }

    /// A change of state whose subscribers are still to be notified.
    private struct Change {
        let states: Latest<Session.TaskState>?
        let event: TaskRegistry.Event?
    }

    /// Announces a state under the lock that decided it, so that the events of a task keep their order.
    private func announce(_ state: Session.TaskState, _ states: Latest<Session.TaskState>?) -> Change {
        guard registry.hasSubscribers else { return Change(states: states, event: nil) }
        let task = AnySessionTask(self)
        let event: TaskRegistry.Event = state == .running ? .resumed(task) : .suspended(task)
        registry.enqueue(event)
        return Change(states: states, event: event)
    }

    /// Notifies the subscribers of a change. No lock is held.
    private func publish(_ change: Change) {
        meter.taskPausedOrResumed()
        // The present state, not the one that was decided: another change may have followed.
        change.states?.update { old in
            let state = self.state
            return old.isTerminal || state.isTerminal || state == old ? nil : state
        }
        if let event = change.event { registry.observe { $0.didObserve(event) } }
    }

    private func control(_ command: AttemptCommand, _ attempt: Attempt?) {
        if let attempt { registry.transport.control(attempt, command) }
    }

    /// Ends the running attempt, but not the task.
    func cancelAttempt() {
        var wake: Attempt.Wake?
        shared.withLock { shared in unsafe wake = cancelAttempt(&shared) }
        unsafe wake?.resume()
    }

    /// Cancels the attempt. Returns the reader to wake if the transport does not know the attempt yet.
    private func cancelAttempt(_ shared: inout Shared) -> Attempt.Wake? {
        guard shared.isAttemptUnstarted, let attempt = shared.attempt else {
            control(.cancel, shared.attempt)
            return nil
        }
        shared.isAttemptUnstarted = false
        return unsafe attempt.complete(AttemptOutcome(failure: .cancelled))
    }

    // MARK: Work for others

    /// Sets what a cancellation and a pause of the task have to ask, because others can wait for its response; nil for
    /// a task that works for itself.
    func setSharing(_ sharing: TaskSharing?) {
        shared.withLock { shared in
            if sharing != nil || shared.handle != nil { shared.makeHandleState().sharing = sharing }
        }
    }

    /// Continues the work of a paused task, because others wait for its response.
    func continueForOthers() {
        shared.withLock { shared in
            guard shared.lifecycle.isPaused else { return }
            if shared.isAttemptUnstarted, let attempt = shared.attempt {
                shared.isAttemptUnstarted = false
                registry.start(attempt)
                control(.prioritize(shared.priority), attempt)
            } else {
                control(.resume, shared.attempt)
            }
        }
    }

    /// Pauses the work of a paused task again, unless others wait for its response.
    func pauseAgain() {
        shared.withLock { shared in
            guard shared.lifecycle.isPaused, !shared.isAttemptUnstarted, shared.handle?.sharing?.isShared() != true
            else {
                return
            }
            control(.pause, shared.attempt)
        }
    }

    /// Ends the task as cancelled. Its work goes on, because others wait for its response.
    private func endKeepingWork() {
        let (result, isLive) = shared.withLock { ($0.handle?.result, !$0.lifecycle.state.isTerminal) }
        guard isLive else { return }
        let error = cancellation("the task was cancelled")
        end(error, keepsWork: true) { result?.fail(error) }
    }

    /// Cancels the work of a task that has ended, because nobody waits for its response any more.
    func cancelWork() {
        var wake: Attempt.Wake?
        let (driver, cancellations) = shared.withLock { shared in
            shared.makeHandleState().isWorkCancelled = true
            unsafe wake = cancelAttempt(&shared)
            return (shared.handle?.driver, shared.handle?.allCancellations ?? [])
        }
        unsafe wake?.resume()
        driver?.cancel()
        for cancel in cancellations { cancel() }
    }

    private func cancellation(_ reason: String) -> NetworkError {
        NetworkError(.cancelled, reason: reason).identified(task: id, session: registry.sessionID, label: label)
    }

    /// Ends a task before it began, as failed.
    func fail() {
        _ = shared.withLock { $0.lifecycle.end(.failed) }
        meter.finish()
    }

    /// Cancels and ends the task of a stream that was dropped. Nothing waits for the end of its attempt.
    func abandon() {
        guard !state.isTerminal else { return }
        cancel()
        end(cancellation("the response stream was dropped before its end"))
    }

    // MARK: The work

    /// Sets the work of a task with a handle. It runs in a Swift task of its own once the task is resumed.
    func assign(_ result: TaskDelivery, work: @escaping Work) {
        shared.withLock { shared in
            let handle = shared.makeHandleState()
            handle.result = result
            handle.work = work
        }
    }

    /// Starts a task whose work runs in the caller's own Swift task. Returns false if the session takes no more tasks.
    func startInCaller() -> Bool {
        // Nobody else knows the task before it joins.
        let (isTaken, change) = shared.withLock { shared -> (Bool, Change?) in
            _ = shared.lifecycle.resume()
            startTime(&shared)
            guard registry.live.join(self) else { return (false, nil) }
            return (true, registry.hasSubscribers ? announce(.running, shared.handle?.states) : nil)
        }
        if !isTaken { fail() }
        if let change { publish(change) }
        return isTaken
    }

    /// Begins the time for the task, if it is limited.
    private func startTime(_ shared: inout Shared) {
        guard let limit = shared.request?.totalLimit else { return }
        shared.makeHandleState().deadline = TaskDeadline(limit, now: MonotonicClock.nanoseconds())
    }

    /// Ends the waits of a task whose time is over. It then fails.
    func expire() {
        var wake: Attempt.Wake?
        let (driver, cancellations) = shared.withLock { shared -> (Task<Void, Never>?, [@Sendable () -> Void]) in
            guard !shared.lifecycle.state.isTerminal, !shared.lifecycle.isCancelled, let handle = shared.handle,
                !handle.readerEndsTask
            else { return (nil, []) }
            handle.hasExpired = true
            unsafe wake = cancelAttempt(&shared)
            return (handle.driver, handle.allCancellations)
        }
        unsafe wake?.resume()
        driver?.cancel()
        for cancel in cancellations { cancel() }
    }

    /// Leaves the end of the task to the reader of a stream, or to a cancellation. Throws if the task is cancelled or its
    /// time is over: its attempt has ended then, and the reader would receive what had arrived as if it were in time.
    func handToReader() throws(NetworkError) {
        let isStopped = shared.withLock { shared in
            let handle = shared.makeHandleState()
            if shared.lifecycle.isCancelled || handle.isStopped { return true }
            handle.readerEndsTask = true
            handle.watchdog?.cancel()
            handle.watchdog = nil
            return false
        }
        if isStopped { throw cancellation("the task was cancelled") }
    }

    /// Starts the work.
    private func startDriver(at place: WorkPlace) {
        let work = shared.withLock { shared -> Work? in
            defer { shared.handle?.work = nil }
            return shared.handle?.work
        }
        guard let work else { return }
        // Owned by this record and cancelled by `cancel`; it ends with the attempt.
        let driver: Task<Void, Never>
        if place != .elsewhere, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            let executor = place == .loop ? registry.transport.taskExecutor : globalConcurrentExecutor
            driver = .immediate(executorPreference: executor) { await work(self) }
        } else {
            driver = Task { await work(self) }
        }
        let watchdog = endingAtDeadline()
        let (isCancelled, isWatched) = shared.withLock { shared in
            // The work can have ended by now.
            let isLive = !shared.lifecycle.state.isTerminal
            let handle = isLive ? shared.makeHandleState() : nil
            handle?.driver = driver
            let isWatched = isLive && handle?.readerEndsTask == false
            if isWatched { handle?.watchdog = watchdog }
            return (shared.lifecycle.isCancelled, isWatched)
        }
        if isCancelled { driver.cancel() }
        if !isWatched { watchdog?.cancel() }
    }

    // MARK: Reports of the execution

    /// Starts an attempt. Returns false if the task was cancelled. The attempt of a paused task starts when the task is
    /// resumed, because an attempt that is started and then paused may send its request in between.
    ///
    /// - Parameter length: The number of bytes of the request's body; nil if it is not known.
    func begin(_ attempt: Attempt, sending length: Int64?) -> Bool {
        meter.beginAttempt(attempt.id, sending: length)
        return shared.withLock { shared in
            guard !shared.lifecycle.isCancelled, shared.handle?.isStopped != true else { return false }
            shared.attempt = attempt
            shared.requestCount += 1
            shared.isAttemptUnstarted = shared.lifecycle.isPaused && shared.handle?.sharing?.isShared() != true
            if shared.isAttemptUnstarted { return true }
            registry.start(attempt)
            // The priority can have changed since the attempt was made.
            if shared.priority != attempt.request.priority { control(.prioritize(shared.priority), attempt) }
            return true
        }
    }

    /// Sets the function that wakes the work when the task is cancelled; nil for none. Returns false if it is cancelled
    /// already.
    func setCancellation(_ wake: (@Sendable () -> Void)?) -> Bool {
        shared.withLock { shared in
            shared.makeHandleState().onCancel = wake
            return !shared.lifecycle.isCancelled
        }
    }

    /// Does work in a Swift task of its own, which is cancelled when this task, or the calling Swift task, is
    /// cancelled, and when the time of this task is over.
    func cancellable<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        // Owned by this function, which waits for its end.
        let task = Task { try await work() }
        let (number, isCancelled) = shared.withLock { shared in
            let handle = shared.makeHandleState()
            handle.lastCancellation += 1
            handle.cancellations[handle.lastCancellation] = { task.cancel() }
            return (handle.lastCancellation, shared.lifecycle.isCancelled)
        }
        if isCancelled { task.cancel() }
        defer { shared.withLock { _ = $0.handle?.cancellations.removeValue(forKey: number) } }
        let timer = atDeadline { $0.expire() }
        defer { timer?.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch {
            let isCancellation = error is CancellationError || (error as? NetworkError)?.isCancelled == true
            throw isCancellation && hasExpired ? deadlineError(request) : error
        }
    }

    /// Sets the function that is called when the task is paused. Returns false if it is paused already.
    func setPauseAction(_ action: @escaping @Sendable () -> Void) -> Bool {
        shared.withLock { shared in
            shared.makeHandleState().onPause = action
            return !shared.lifecycle.isPaused
        }
    }

    /// Receives the head of the response and wakes those who wait for it.
    func receive(_ head: ResponseHead) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            shared.head = head
            guard let handle = shared.handle else { return [] }
            defer { handle.headWaiters = [] }
            return handle.headWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Records the end of an attempt, and the head of its response if that is the final one.
    func attemptEnded(_ outcome: AttemptOutcome, isFinal: Bool) {
        shared.withLock { shared in
            shared.attempt = nil
            shared.outcome = shared.lifecycle.state.isTerminal ? outcome.withoutBody : outcome
            if isFinal, shared.head == nil { shared.head = outcome.head }
        }
    }

    /// Sets the data that continue a download.
    func setResumeData(_ resumeData: ResumeData?) {
        shared.withLock { $0.makeHandleState().resumeData = resumeData }
    }

    /// Ends the task, in this order: its state becomes terminal, `deliver` delivers its value, `completed` is published,
    /// and the task leaves the registry. Without `deliver`, the caller has the value itself. `value` is for the
    /// observers. With `keepsWork`, the work goes on for others. `outcome` is the end of the last attempt, if the caller
    /// has it anyway.
    func end(
        _ error: NetworkError?, file: URL? = nil, value: (any Sendable)? = nil, outcome: AttemptOutcome? = nil,
        keepsWork: Bool = false, deliver: (() -> Void)? = nil
    ) {
        let state: Session.TaskState = error.map { $0.isCancelled ? .cancelled : .failed } ?? .completed
        guard let ended = takeEnd(state, outcome, keepsWork: keepsWork) else { return }
        meter.finish()
        deliver?()
        notifyWaiters(ended, state)
        if registry.hasSubscribers {
            registry.publish(TaskRegistry.Completion(AnySessionTask(self), error: error, file: file), value: value)
        }
        registry.leave(id)
    }

    /// The largest body in bytes that the outcome of a task keeps after its end.
    private static let keptBody = 4_096

    /// Ends the task of a call, whose caller has the response.
    func end<Value>(with response: Response<Value>) {
        if registry.hasSubscribers {
            // A subscriber can keep the task longer than the caller keeps the body.
            end(nil, value: registry.observers.isEmpty ? nil : response)
        } else {
            // A reader of the registry can keep the task. To copy the outcome costs more than to keep a small body.
            let isSmall = response.outcome.body.count <= Self.keptBody
            end(nil, outcome: isSmall ? response.outcome : response.outcome.withoutBody)
        }
    }

    /// Takes out what the task has until its end; nil if it has ended before. From now on, the registry passes over it.
    private func takeEnd(_ state: Session.TaskState, _ outcome: AttemptOutcome?, keepsWork: Bool) -> End? {
        shared.withLock { shared -> End? in
            guard shared.lifecycle.end(state) else { return nil }
            if !keepsWork { shared.attempt = nil }
            shared.outcome = outcome ?? shared.outcome?.withoutBody
            // Checked in place, because a copy of the request would have many fields.
            if let prepared = shared.request, prepared.request.body.isSequence {
                shared.makeHandleState().requestWithoutBody = prepared.request.withoutSequence
                shared.request = nil
            }
            var end = End()
            if let handle = shared.handle {
                end.states = handle.states
                end.waiters = handle.headWaiters
                handle.work = nil
                if !keepsWork { handle.driver = nil }
                handle.watchdog?.cancel()
                handle.watchdog = nil
                handle.onPause = nil
                handle.headWaiters = []
            }
            return end
        }
    }

    /// Wakes those who wait for the head, and ends the streams of states.
    private func notifyWaiters(_ ended: End, _ state: Session.TaskState) {
        for waiter in ended.waiters { waiter.resume() }
        ended.states?.finish { _ in state }
    }

    private struct End {
        var states: Latest<Session.TaskState>?
        var waiters: [Waiter<Void>] = []
    }
}

extension TaskRecord: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show the request.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
