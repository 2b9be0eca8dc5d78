import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One task as the session knows it: what all its handles share. It holds the work until the end and then lets go of it,
/// whoever still holds a handle.
package final class TaskRecord: Sendable {
    /// What runs when the task is first resumed. It ends by calling `end`.
    package typealias Work = @Sendable (TaskRecord) async -> Void

    private struct Shared {
        var lifecycle = TaskLifecycle()
        /// Until the end, where it holds a sequence that was given as the body.
        var plan: RequestPlan?
        /// The request of a task that could not be, and of one that has ended and let go of its body.
        var released: Request?
        var label: String?
        var priority: Request.Priority
        var work: Work?
        /// Runs the work of a task with a handle. Owned here, cancelled by `cancel`, released at the end.
        var driver: Task<Void, Never>?
        var transfer: Transfer?
        /// The transfer was not started: the task was paused before.
        var isHeld = false
        /// What came of the work is with a reader, who ends the task: a stream whose head was accepted.
        var isWithReader = false
        var head: ResponseHead?
        var headWaiters: [Waiter<Void>] = []
        var states: Latest<Session.TaskState>?
        var metrics: TaskMetrics?
        var resumeData: ResumeData?
        weak var result: (any TaskResult)?
    }

    package let id: TaskID
    package let context: SessionContext
    /// The name of the type that the task gives.
    let valueType: any Any.Type
    package let meter = ProgressMeter()
    private let shared: Lock<Shared>

    /// `plan` is nil for a task that the system kept from an earlier run, and for one that could not be.
    init(
        id: TaskID, context: SessionContext, plan: RequestPlan?, refused: Request? = nil, valueType: any Any.Type
    ) {
        self.id = id
        self.context = context
        self.valueType = valueType
        shared = Lock(
            Shared(
                plan: plan, released: refused, label: plan?.request.label,
                priority: plan?.request.priority ?? .normal))
    }

    deinit {
        // A task that was never resumed and that nobody can resume any more; one that has ended the ledger knows no more.
        if !shared.withLock({ $0.lifecycle.state.isTerminal }) { context.ledger.forget(id) }
    }

    // MARK: What a handle shows

    package var request: Request? { shared.withLock { $0.plan?.request ?? $0.released } }

    var label: String? {
        get { shared.withLock { $0.label } }
        set { shared.withLock { $0.label = newValue } }
    }

    package var state: Session.TaskState { shared.withLock { $0.lifecycle.state } }
    var metrics: TaskMetrics? { shared.withLock { $0.metrics } }
    var resumeData: ResumeData? { shared.withLock { $0.resumeData } }
    var head: ResponseHead? { shared.withLock { $0.head } }
    var result: (any TaskResult)? { shared.withLock { $0.result } }
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
            if let states = shared.states { return states }
            let states = Latest(shared.lifecycle.state)
            if shared.lifecycle.state.isTerminal { states.finish { $0 } }
            shared.states = states
            return states
        }
    }

    /// The head as soon as it is there; nil when the task ends, or the caller is cancelled, without one.
    func headWhenThere() async -> ResponseHead? {
        let waiter = Waiter<Void>()
        let isWaiting = shared.withLock { shared in
            guard shared.head == nil, !shared.lifecycle.state.isTerminal else { return false }
            shared.headWaiters.append(waiter)
            return true
        }
        if isWaiting {
            await waiter.wait()
            shared.withLock { $0.headWaiters.removeAll { $0 === waiter } }
        }
        return head
    }

    // MARK: What a handle does. The order of calls is the order of effects: a transport only queues a command, so it is
    // told under the lock that decided.

    package func resume() {
        let (action, change) = shared.withLock { shared -> (TaskLifecycle.Action, Change?) in
            let action = shared.lifecycle.resume()
            switch action {
            case .start:
                context.ledger.addRunning(self)
            case .resumeTransfer:
                if shared.isHeld, let transfer = shared.transfer {
                    shared.isHeld = false
                    context.transport.start(transfer)
                    control(.prioritize(shared.priority), transfer)
                } else {
                    control(.resume, shared.transfer)
                }
            default:
                return (action, nil)
            }
            return (action, noteChange(to: .running, shared.states))
        }
        if let change { tell(change) }
        if action == .start { startDriver() }
    }

    func pause() {
        let change = shared.withLock { shared -> Change? in
            guard shared.lifecycle.pause() == .pauseTransfer else { return nil }
            if !shared.isHeld { control(.pause, shared.transfer) }
            return noteChange(to: .suspended, shared.states)
        }
        if let change { tell(change) }
    }

    package func cancel() {
        var wake: Transfer.Wake?
        let (action, driver, isWithReader) = shared.withLock { shared in
            let action = shared.lifecycle.cancel()
            if action == .cancelTransfer { unsafe wake = cancelTransfer(&shared) }
            return (action, shared.driver, shared.isWithReader)
        }
        unsafe wake?.resume()
        switch action {
        case .cancelTransfer:
            driver?.cancel()
            if isWithReader { end(cancellation("the task was cancelled")) }
        case .endUnstarted:
            startDriver()
        default:
            break
        }
    }

    private struct Change {
        let states: Latest<Session.TaskState>?
        let aftermath: TaskLedger.Aftermath
    }

    /// Told under the lock that decided, so that no two events of a task change places.
    private func noteChange(to state: Session.TaskState, _ states: Latest<Session.TaskState>?) -> Change {
        let aftermath = context.ledger.note {
            state == .running ? .resumed(AnySessionTask(self)) : .suspended(AnySessionTask(self))
        }
        return Change(states: states, aftermath: aftermath)
    }

    private func tell(_ change: Change) {
        meter.taskPausedOrResumed()
        // The state at this moment, and not the one that was decided: another change may have come since.
        change.states?.update { old in
            let state = self.state
            return old.isTerminal || state.isTerminal || state == old ? nil : state
        }
        change.aftermath.settle()
    }

    private func control(_ command: TransferCommand, _ transfer: Transfer?) {
        if let transfer { context.transport.control(transfer, command) }
    }

    /// Ends the running attempt, not the task.
    func cancelTransfer() {
        var wake: Transfer.Wake?
        shared.withLock { shared in unsafe wake = cancelTransfer(&shared) }
        unsafe wake?.resume()
    }

    /// Its reader to be woken, when the transport knows nothing of the attempt yet.
    private func cancelTransfer(_ shared: inout Shared) -> Transfer.Wake? {
        guard shared.isHeld, let transfer = shared.transfer else {
            control(.cancel, shared.transfer)
            return nil
        }
        shared.isHeld = false
        return unsafe transfer.complete(TransferOutcome(failure: .cancelled))
    }

    private func cancellation(_ reason: String) -> NetworkError {
        NetworkError(.cancelled, reason: reason).identified(task: id, session: context.id, label: label)
    }

    /// A task that could not be: it has ended before it began.
    func fail() {
        _ = shared.withLock { $0.lifecycle.end(.failed) }
        meter.finish()
    }

    /// A stream that nobody reads any more: its transfer ends, and nobody waits for that.
    func abandon() {
        guard !state.isTerminal else { return }
        cancel()
        end(cancellation("the response stream was dropped before its end"))
    }

    // MARK: The work

    /// The task has a handle: `work` runs in a Swift task of its own once it is resumed.
    func assign(_ result: any TaskResult, work: @escaping Work) {
        shared.withLock { shared in
            shared.result = result
            shared.work = work
        }
    }

    /// The task's work runs in the caller's own Swift task. False when the session was invalidated meanwhile.
    func startInCaller() -> Bool {
        guard context.ledger.addRunning(self) else { return false }
        let change = shared.withLock { shared -> Change? in
            _ = shared.lifecycle.resume()
            let isWatched = shared.states != nil || context.ledger.hasSubscribers
            return isWatched ? noteChange(to: .running, shared.states) : nil
        }
        if let change { tell(change) }
        return true
    }

    /// The work is done, and its value with a reader who ends the task: it, or a cancellation, does from now on.
    func handToReader() {
        let isCancelled = shared.withLock { shared in
            shared.isWithReader = true
            return shared.lifecycle.isCancelled
        }
        if isCancelled { end(cancellation("the task was cancelled")) }
    }

    private func startDriver() {
        shared.withLock { shared in
            guard let work = shared.work else { return }
            shared.work = nil
            // Owned by this record and cancelled by `cancel`; it ends with the transfer.
            let driver = Task { await work(self) }
            shared.driver = driver
            if shared.lifecycle.isCancelled { driver.cancel() }
        }
    }

    // MARK: What the life of the request reports

    /// Starts an attempt, or refuses when the task was cancelled. A paused task's attempt starts when it is resumed: one
    /// that is started and then paused may have sent its request in between.
    func begin(_ transfer: Transfer) -> Bool {
        shared.withLock { shared in
            guard !shared.lifecycle.isCancelled else { return false }
            shared.transfer = transfer
            shared.isHeld = shared.lifecycle.isPaused
            if !shared.isHeld { context.transport.start(transfer) }
            return true
        }
    }

    func receive(_ head: ResponseHead) {
        let waiters = shared.withLock { shared -> [Waiter<Void>] in
            shared.head = head
            defer { shared.headWaiters = [] }
            return shared.headWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func attemptEnded(_ metrics: TaskMetrics, head: ResponseHead?) {
        shared.withLock { shared in
            shared.transfer = nil
            shared.metrics = metrics
            if shared.head == nil { shared.head = head }
        }
    }

    func keep(_ resumeData: ResumeData?) {
        shared.withLock { $0.resumeData = resumeData }
    }

    /// The end, in this order: the task leaves the registry, `deliver` hands its value over, then `completed` is told.
    /// Without `deliver` the value is the caller's own, who runs this.
    func end(_ error: NetworkError?, file: URL? = nil, deliver: (() -> Void)? = nil) {
        let state: Session.TaskState = error.map { $0.isCancelled ? .cancelled : .failed } ?? .completed
        let ended = shared.withLock { shared -> (states: Latest<Session.TaskState>?, waiters: [Waiter<Void>])? in
            guard shared.lifecycle.end(state) else { return nil }
            defer {
                shared.work = nil
                shared.driver = nil
                shared.transfer = nil
                shared.headWaiters = []
                if let request = shared.plan?.request, request.body.isSequence {
                    shared.released = request.withoutSequence
                    shared.plan = nil
                }
            }
            return (shared.states, shared.headWaiters)
        }
        guard let ended else { return }
        if deliver != nil { context.ledger.remove(id) }
        meter.finish()
        deliver?()
        for waiter in ended.waiters { waiter.resume() }
        ended.states?.finish { _ in state }
        context.ledger.delivered(id) { [self] in
            .completed(TaskRegistry.Completion(AnySessionTask(self), error: error, file: file))
        }
    }
}

extension TaskRecord: CustomReflectable {
    /// Empty. Otherwise, `dump` of every value that refers to this one would show the request.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
