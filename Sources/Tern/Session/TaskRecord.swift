import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The state of one task, shared by all its handles. It holds the work until the end and then releases it, even if
/// handles remain.
package final class TaskRecord: Sendable {
    /// Runs when the task is first resumed, and calls `end` at its end.
    package typealias Work = @Sendable (TaskRecord) async -> Void

    private struct Shared {
        var lifecycle = TaskLifecycle()
        /// The request; nil after the end if its body is a sequence, which is then released.
        var request: PreparedRequest?
        var priority: Request.Priority
        /// Whether the first attempt is to register the task.
        var isUnregistered = false
        /// Whether the registry may learn of the end when it next runs: it keeps the record until then, so only for a
        /// request without a body or an object of the caller.
        var mayEndLazily = false
        var transfer: Transfer?
        /// Whether the transfer waits to be started because the task is paused.
        var isTransferUnstarted = false
        var head: ResponseHead?
        /// The end of the last attempt, for its metrics. Keeps the body only if the value of the task is that body.
        var outcome: TransferOutcome?
        /// nil until one of its properties is set.
        fileprivate var extras: Extras?

        /// The properties that the record of a plain call never sets.
        var extra: Extras? { extras }

        /// Returns the object with the rare properties, to set one.
        mutating func makeExtras() -> Extras {
            if let extras { return extras }
            let extras = Extras()
            self.extras = extras
            return extras
        }
    }

    /// The state that only tasks with a handle, and few others, have. A class, so that the record of a plain call has
    /// one empty reference in place of a dozen. Only touched with the lock of the record held.
    private final class Extras {
        /// The request of a task that failed before it was prepared, or that has ended and released its body.
        var requestWithoutBody: Request?
        var label: String?
        var work: Work?
        /// Runs the work of a task with a handle. Owned here, cancelled by `cancel`, released at the end.
        var driver: Task<Void, Never>?
        /// Wakes the work when the task is cancelled while it waits for something other than a transfer.
        var onCancel: (@Sendable () -> Void)?
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
        weak var result: (any TaskResult)?

        /// Returns the properties; nil if both are nil. A function, because an initializer that returns nil has
        /// allocated the object by then.
        static func of(refused: Request?, label: String?) -> Extras? {
            if refused == nil, label == nil { return nil }
            let extras = Extras()
            extras.requestWithoutBody = refused
            extras.label = label
            return extras
        }
    }

    package let id: TaskID
    package let registry: TaskRegistry
    /// The type of the task's value.
    let valueType: any Any.Type
    package let meter = ProgressMeter()
    private let shared: Lock<Shared>

    /// Creates a task. `request` is nil for a task that the system kept from an earlier run, and for one that has
    /// failed already, whose request is `refused`.
    init(
        id: TaskID, registry: TaskRegistry, request: PreparedRequest?, refused: Request? = nil,
        valueType: any Any.Type
    ) {
        self.id = id
        self.registry = registry
        self.valueType = valueType
        shared = Lock(
            Shared(
                request: request, priority: request?.request.priority ?? .normal,
                extras: Extras.of(refused: refused, label: request?.request.label)))
    }

    deinit {
        // The session has taken the task, which was never resumed, and nothing can resume it any more.
        if !shared.withLock({ $0.lifecycle.state.isTerminal }) { registry.forget(id) }
    }

    // MARK: Properties of a handle

    package var request: Request? { shared.withLock { $0.request?.request ?? $0.extra?.requestWithoutBody } }

    var label: String? {
        get { shared.withLock { $0.extra?.label } }
        set { shared.withLock { $0.makeExtras().label = newValue } }
    }

    package var state: Session.TaskState { shared.withLock { $0.lifecycle.state } }
    var metrics: TaskMetrics? { shared.withLock { $0.outcome?.metrics } }
    var resumeData: ResumeData? { shared.withLock { $0.extra?.resumeData } }
    var head: ResponseHead? { shared.withLock { $0.head } }
    var result: (any TaskResult)? { shared.withLock { $0.extra?.result } }
    var isCancelled: Bool { shared.withLock { $0.lifecycle.isCancelled } }

    var priority: Request.Priority {
        get { shared.withLock { $0.priority } }
        set {
            shared.withLock { shared in
                shared.priority = newValue
                control(.prioritize(newValue), shared.transfer)
            }
        }
    }

    var states: Latest<Session.TaskState> {
        shared.withLock { shared in
            let extras = shared.makeExtras()
            if let states = extras.states { return states }
            let states = Latest(shared.lifecycle.state)
            if shared.lifecycle.state.isTerminal { states.finish { $0 } }
            extras.states = states
            return states
        }
    }

    /// Waits for the head. Returns nil when the task ends, or the caller is cancelled, without one.
    func waitForHead() async -> ResponseHead? {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            guard shared.head == nil, !shared.lifecycle.state.isTerminal else { return false }
            shared.makeExtras().headWaiters.append(waiter)
            return true
        }
        if isWaiting {
            await waiter.wait()
            shared.withLock { $0.extra?.headWaiters.removeAll { $0 === waiter } }
        }
        return head
    }

    // MARK: Commands of a handle. Calls take effect in call order: a transport only queues a command, so it is called
    // under the lock that decided.

    package func resume() { resume(onLoop: false) }

    /// Starts a task that was just created. Its work must not run code of the caller.
    func startOnLoop() { resume(onLoop: true) }

    private func resume(onLoop: Bool) {
        let (action, change) = shared.withLock { shared -> (TaskLifecycle.Action, Change?) in
            let action = shared.lifecycle.resume()
            switch action {
            case .start:
                registry.post(.run, of: self)
            case .resumeTransfer:
                if shared.isTransferUnstarted, let transfer = shared.transfer {
                    shared.isTransferUnstarted = false
                    registry.start(transfer)
                    control(.prioritize(shared.priority), transfer)
                } else {
                    control(.resume, shared.transfer)
                }
            default:
                return (action, nil)
            }
            return (action, announce(.running, shared.extra?.states))
        }
        if let change { publish(change) }
        if action == .start { startDriver(onLoop: onLoop) }
    }

    func pause() {
        let (change, onPause) = shared.withLock { shared -> (Change?, (@Sendable () -> Void)?) in
            guard shared.lifecycle.pause() == .pauseTransfer else { return (nil, nil) }
            // Its response can be needed by others. Asked in here, so that one that joins now finds the task paused.
            let isShared = shared.extra?.sharing?.isShared() ?? false
            if !shared.isTransferUnstarted, !isShared { control(.pause, shared.transfer) }
            return (announce(.suspended, shared.extra?.states), shared.extra?.onPause)
        }
        if let change { publish(change) }
        onPause?()
    }

    package func cancel() {
        if let sharing = shared.withLock({ $0.extra?.sharing }), sharing.leave() { return endKeepingWork() }
        var wake: Transfer.Wake?
        let (action, driver, onCancel, readerEndsTask) = shared.withLock { shared in
            let action = shared.lifecycle.cancel()
            if action == .cancelTransfer { unsafe wake = cancelTransfer(&shared) }
            let extras = shared.extra
            return (action, extras?.driver, extras?.onCancel, extras?.readerEndsTask ?? false)
        }
        unsafe wake?.resume()
        switch action {
        case .cancelTransfer:
            driver?.cancel()
            onCancel?()
            if readerEndsTask { end(cancellation("the task was cancelled")) }
        case .endUnstarted:
            startDriver()
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

    private func control(_ command: TransferCommand, _ transfer: Transfer?) {
        if let transfer { registry.transport.control(transfer, command) }
    }

    /// Ends the running attempt, but not the task.
    func cancelTransfer() {
        var wake: Transfer.Wake?
        shared.withLock { shared in unsafe wake = cancelTransfer(&shared) }
        unsafe wake?.resume()
    }

    /// Cancels the attempt. Returns the reader to wake if the transport does not know the attempt yet.
    private func cancelTransfer(_ shared: inout Shared) -> Transfer.Wake? {
        guard shared.isTransferUnstarted, let transfer = shared.transfer else {
            control(.cancel, shared.transfer)
            return nil
        }
        shared.isTransferUnstarted = false
        return unsafe transfer.complete(TransferOutcome(failure: .cancelled))
    }

    // MARK: Work for others

    /// Sets what a cancellation and a pause of the task have to ask, because others can wait for its response; nil for
    /// a task that works for itself.
    func setSharing(_ sharing: TaskSharing?) {
        shared.withLock { shared in
            if sharing != nil || shared.extra != nil { shared.makeExtras().sharing = sharing }
        }
    }

    /// Continues the work of a paused task, because others wait for its response.
    func continueForOthers() {
        shared.withLock { shared in
            guard shared.lifecycle.isPaused else { return }
            if shared.isTransferUnstarted, let transfer = shared.transfer {
                shared.isTransferUnstarted = false
                registry.start(transfer)
                control(.prioritize(shared.priority), transfer)
            } else {
                control(.resume, shared.transfer)
            }
        }
    }

    /// Pauses the work of a paused task again, unless others wait for its response.
    func pauseAgain() {
        shared.withLock { shared in
            guard shared.lifecycle.isPaused, !shared.isTransferUnstarted, shared.extra?.sharing?.isShared() != true
            else {
                return
            }
            control(.pause, shared.transfer)
        }
    }

    /// Ends the task as cancelled. Its work goes on, because others wait for its response.
    private func endKeepingWork() {
        let (result, isLive) = shared.withLock { ($0.extra?.result, !$0.lifecycle.state.isTerminal) }
        guard isLive else { return }
        let error = cancellation("the task was cancelled")
        end(error, keepsWork: true) { result?.fail(error) }
    }

    /// Cancels the work of a task that has ended, because nobody waits for its response any more.
    func cancelWork() {
        var wake: Transfer.Wake?
        let (driver, onCancel) = shared.withLock { shared in
            shared.makeExtras().isWorkCancelled = true
            unsafe wake = cancelTransfer(&shared)
            return (shared.extra?.driver, shared.extra?.onCancel)
        }
        unsafe wake?.resume()
        driver?.cancel()
        onCancel?()
    }

    private func cancellation(_ reason: String) -> NetworkError {
        NetworkError(.cancelled, reason: reason).identified(task: id, session: registry.sessionID, label: label)
    }

    /// Ends a task before it began, as failed.
    func fail() {
        _ = shared.withLock { $0.lifecycle.end(.failed) }
        meter.finish()
    }

    /// Cancels and ends the task of a stream that was dropped. Nothing waits for the end of its transfer.
    func abandon() {
        guard !state.isTerminal else { return }
        cancel()
        end(cancellation("the response stream was dropped before its end"))
    }

    // MARK: The work

    /// Sets the work of a task with a handle. It runs in a Swift task of its own once the task is resumed.
    func assign(_ result: any TaskResult, work: @escaping Work) {
        shared.withLock { shared in
            let extras = shared.makeExtras()
            extras.result = result
            extras.work = work
        }
    }

    /// Starts a task whose work runs in the caller's own Swift task. Returns false if the session was invalidated.
    func startInCaller() -> Bool {
        guard registry.admission.admit() else {
            fail()
            return false
        }
        guard registry.hasSubscribers else {
            shared.withLock { shared in
                _ = shared.lifecycle.resume()
                shared.isUnregistered = true
            }
            return true
        }
        publish(
            shared.withLock { shared in
                _ = shared.lifecycle.resume()
                registry.post(.run, of: self)
                return announce(.running, shared.extra?.states)
            })
        return true
    }

    /// Registers the task now, because the work before its first attempt takes time.
    func register() {
        shared.withLock { shared in
            if shared.isUnregistered { registry.post(.run, of: self) }
            shared.isUnregistered = false
        }
    }

    /// Returns the priority of the next attempt, and the task if that attempt is to register it.
    func prepareAttempt() -> (priority: Request.Priority, owner: (any ExecutorMessage)?) {
        shared.withLock { shared in
            if shared.isUnregistered, registry.announcesOwners { return (shared.priority, self) }
            if shared.isUnregistered { registry.post(.run, of: self) }
            shared.isUnregistered = false
            return (shared.priority, nil)
        }
    }

    /// Leaves the end of the task to the reader of a stream, or to a cancellation.
    func handToReader() {
        let isCancelled = shared.withLock { shared in
            shared.makeExtras().readerEndsTask = true
            shared.mayEndLazily = shared.request.map { $0.hasOnlyValues } ?? false
            return shared.lifecycle.isCancelled
        }
        if isCancelled { end(cancellation("the task was cancelled")) }
    }

    /// Starts the work.
    ///
    /// - Parameter onLoop: Whether the work begins on the caller's thread and continues on the transport's, which saves
    ///   two changes of threads. Code of the caller must not run there.
    private func startDriver(onLoop: Bool = false) {
        let work = shared.withLock { shared -> Work? in
            defer { shared.extra?.work = nil }
            return shared.extra?.work
        }
        guard let work else { return }
        // Owned by this record and cancelled by `cancel`; it ends with the transfer.
        let driver: Task<Void, Never>
        if onLoop, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            driver = .immediate(executorPreference: registry.transport.taskExecutor) { await work(self) }
        } else {
            driver = Task { await work(self) }
        }
        let isCancelled = shared.withLock { shared in
            // The work can have ended by now.
            if !shared.lifecycle.state.isTerminal { shared.makeExtras().driver = driver }
            return shared.lifecycle.isCancelled
        }
        if isCancelled { driver.cancel() }
    }

    // MARK: Reports of the execution

    /// Starts an attempt. Returns false if the task was cancelled. The attempt of a paused task starts when the task is
    /// resumed, because an attempt that is started and then paused may send its request in between.
    func begin(_ transfer: Transfer) -> Bool {
        meter.beginAttempt(transfer.id)
        return shared.withLock { shared in
            guard !shared.lifecycle.isCancelled, shared.extra?.isWorkCancelled != true else { return false }
            shared.transfer = transfer
            if transfer.owner != nil {
                shared.isUnregistered = false
                // Read in place, because a copy of the request would have many fields. The usual request costs no
                // retain.
                shared.mayEndLazily =
                    shared.request.map { $0.request.hasNoExtras && $0.request.body.isNone || $0.hasOnlyValues } ?? false
            }
            shared.isTransferUnstarted = shared.lifecycle.isPaused && shared.extra?.sharing?.isShared() != true
            if shared.isTransferUnstarted { return true }
            registry.start(transfer)
            // The priority can have changed since `prepareAttempt()`.
            if shared.priority != transfer.request.priority { control(.prioritize(shared.priority), transfer) }
            return true
        }
    }

    /// Sets the function that wakes the work when the task is cancelled; nil for none. Returns false if it is cancelled
    /// already.
    func setCancellation(_ wake: (@Sendable () -> Void)?) -> Bool {
        shared.withLock { shared in
            shared.makeExtras().onCancel = wake
            return !shared.lifecycle.isCancelled
        }
    }

    /// Sets the function that is called when the task is paused. Returns false if it is paused already.
    func setPauseAction(_ action: @escaping @Sendable () -> Void) -> Bool {
        shared.withLock { shared in
            shared.makeExtras().onPause = action
            return !shared.lifecycle.isPaused
        }
    }

    /// Receives the head of the response and wakes those who wait for it.
    func receive(_ head: ResponseHead) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            shared.head = head
            guard let extras = shared.extra else { return [] }
            defer { extras.headWaiters = [] }
            return extras.headWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Records the end of an attempt, and the head of its response if that is the final one.
    func attemptEnded(_ outcome: TransferOutcome, isFinal: Bool) {
        let end = outcome.withoutBody
        shared.withLock { shared in
            shared.transfer = nil
            shared.outcome = end
            if isFinal, shared.head == nil { shared.head = outcome.head }
        }
    }

    /// Sets the data that continue a download.
    func setResumeData(_ resumeData: ResumeData?) {
        shared.withLock { $0.makeExtras().resumeData = resumeData }
    }

    /// Ends the task, in this order: it leaves the registry, `deliver` delivers its value, then `completed` is
    /// published. Without `deliver`, the caller has the value itself. `value` is for the observers. With `keepsWork`,
    /// the work goes on for others.
    func end(
        _ error: NetworkError?, file: URL? = nil, value: (any Sendable)? = nil, keepsWork: Bool = false,
        deliver: (() -> Void)? = nil
    ) {
        let state: Session.TaskState = error.map { $0.isCancelled ? .cancelled : .failed } ?? .completed
        guard let ended = takeEnd(state, outcome: nil, deliversLater: deliver != nil, keepsWork: keepsWork) else {
            return
        }
        if deliver != nil { registry.post(.leave, of: self) }
        meter.finish()
        deliver?()
        notifyWaiters(ended, state)
        if registry.hasSubscribers {
            registry.publish(TaskRegistry.Completion(AnySessionTask(self), error: error, file: file), value: value)
        }
        reportDelivery(ended)
    }

    /// Ends the task of a plain call, whose caller has the value, in a session without observers.
    ///
    /// - Parameter outcome: That of its attempt (`TransferOutcome.kept(by:)`).
    func endPlain(with outcome: TransferOutcome) {
        guard let ended = takeEnd(.completed, outcome: outcome, deliversLater: false) else { return }
        meter.finish()
        notifyWaiters(ended, .completed)
        if registry.hasSubscribers {
            registry.publish(TaskRegistry.Completion(AnySessionTask(self), error: nil, file: nil), value: nil)
        }
        reportDelivery(ended)
    }

    /// Takes out what the task has until its end; nil if it has ended before.
    ///
    /// - Parameter deliversLater: Whether the caller delivers the value afterwards.
    private func takeEnd(
        _ state: Session.TaskState, outcome: TransferOutcome?, deliversLater: Bool, keepsWork: Bool = false
    ) -> End? {
        shared.withLock { shared -> End? in
            guard shared.lifecycle.end(state) else { return nil }
            if !keepsWork { shared.transfer = nil }
            if let outcome {
                shared.outcome = outcome
                if shared.head == nil { shared.head = outcome.head }
            }
            // Checked in place, because a copy of the request would have many fields.
            if let prepared = shared.request, prepared.request.body.isSequence {
                shared.makeExtras().requestWithoutBody = prepared.request.withoutSequence
                shared.request = nil
            }
            var end = End(
                isLazy: !deliversLater && shared.mayEndLazily, isUnregistered: !deliversLater && shared.isUnregistered)
            if let extras = shared.extra {
                end.states = extras.states
                end.waiters = extras.headWaiters
                extras.work = nil
                if !keepsWork { extras.driver = nil }
                extras.onPause = nil
                extras.headWaiters = []
            }
            return end
        }
    }

    /// Wakes those who wait for the head, and ends the streams of states.
    private func notifyWaiters(_ ended: End, _ state: Session.TaskState) {
        for waiter in ended.waiters { waiter.resume() }
        ended.states?.finish { _ in state }
    }

    /// Tells the registry that the value was delivered.
    private func reportDelivery(_ ended: End) {
        if ended.isUnregistered { return registry.endUnregistered() }
        if ended.isLazy { registry.postDeliveryLazily(of: self) } else { registry.post(.deliver, of: self) }
    }

    private struct End {
        var states: Latest<Session.TaskState>?
        var waiters: [Waiter<Void>] = []
        let isLazy: Bool
        /// Whether the registry has never heard of the task.
        let isUnregistered: Bool
    }
}

/// The part of those who wait for the response of another task.
struct TaskSharing: Sendable {
    /// Returns whether others wait for the response. Called with the lock of the record held.
    let isShared: @Sendable () -> Bool
    /// Records that the task itself does not need the response any more. Returns false if nobody else does.
    let leave: @Sendable () -> Bool

    init(isShared: @escaping @Sendable () -> Bool, leave: @escaping @Sendable () -> Bool) {
        self.isShared = isShared
        self.leave = leave
    }
}

extension TaskRecord: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show the request.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
