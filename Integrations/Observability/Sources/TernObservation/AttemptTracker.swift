import Synchronization
package import Tern

/// The place of a request on the wire among those of its task.
package struct AttemptStart: Sendable, Hashable {
    /// 1 for the first request of the task.
    package let number: Int
    /// Whether a redirect has led to another URL than that of the task.
    package let isRedirected: Bool

    package init(number: Int, isRedirected: Bool = false) {
        self.number = number
        self.isRedirected = isRedirected
    }
}

/// Records the tasks of a session and their requests on the wire. ``AttemptTracker`` calls it, without a lock held.
package protocol AttemptRecorder: Sendable {
    /// The state that the recorder keeps for a task.
    associatedtype TaskState: Sendable
    /// The state that the recorder keeps for a request on the wire.
    associatedtype AttemptState: Sendable

    /// Called when a task starts, in the Swift task that starts it.
    func taskStarted(_ task: AnySessionTask) -> TaskState

    /// Called before a request is sent.
    func attemptStarted(_ request: Request, as start: AttemptStart, of task: TaskState) -> AttemptState

    /// Called when a request has ended, before the next one of the task.
    func attemptEnded(_ attempt: AttemptState, as end: AttemptEnd)

    /// Called when a task has ended, after its last request.
    func taskEnded(_ task: TaskState, as completion: TaskRegistry.Completion, attempts: Int)
}

/// Calls a recorder at the beginning and the end of each task and of each request on the wire. It receives the stages
/// that a `SessionObserver` sees.
package final class AttemptTracker<Recorder: AttemptRecorder>: Sendable {
    private typealias Progress = AttemptProgress<Recorder.AttemptState>

    private struct Key: Hashable {
        let session: Session.ID
        let task: TaskID

        init(_ task: AnySessionTask) { (session, self.task) = (task.sessionID, task.id) }
    }

    private final class Entry: Sendable {
        let state: Recorder.TaskState
        let progress = Mutex(Progress())

        init(_ state: Recorder.TaskState) { self.state = state }
    }

    private let recorder: Recorder
    /// The tasks that run. An entry leaves at the end of its task.
    private let entries = Mutex<[Key: Entry]>([:])

    package init(_ recorder: Recorder) { self.recorder = recorder }

    /// The number of tasks that run.
    package var count: Int { entries.withLock { $0.count } }

    private func entry(of task: AnySessionTask) -> Entry? { entries.withLock { $0[Key(task)] } }

    private var now: ContinuousClock.Instant { ContinuousClock.now }

    /// Returns the state of the request that the task has sent, or is about to send.
    package func attempt(of task: AnySessionTask) -> Recorder.AttemptState? {
        entry(of: task)?.progress.withLock { $0.state }
    }

    // MARK: Stages

    package func observe(_ event: TaskRegistry.Event) {
        switch event {
        case .resumed(let task): start(task)
        case .completed(let completion): end(completion)
        default: break
        }
    }

    /// Records a task. It can be resumed again after a pause, and the event of that can come when the task has ended.
    private func start(_ task: AnySessionTask) {
        guard entry(of: task) == nil, !task.state.isTerminal else { return }
        let entry = Entry(recorder.taskStarted(task))
        entries.withLock { $0[Key(task)] = entry }
    }

    private func end(_ completion: TaskRegistry.Completion) {
        // A task that was cancelled before it started has none.
        guard let entry = entries.withLock({ $0.removeValue(forKey: Key(completion.task)) }) else { return }
        let (ended, count) = entry.progress.withLock { progress in
            let metrics = completion.metrics
            let ended = progress.endTask(error: completion.error, total: metrics?.total, metrics: metrics, at: now)
            return (ended, progress.count)
        }
        record(ended)
        recorder.taskEnded(entry.state, as: completion, attempts: count)
    }

    package func willSend(_ request: Request, of task: AnySessionTask) {
        guard let entry = entry(of: task) else { return }
        let (previous, start) = entry.progress.withLock { progress in
            let previous = progress.beginAttempt()
            return (previous, AttemptStart(number: progress.count, isRedirected: progress.isRedirected))
        }
        record(previous)
        let state = recorder.attemptStarted(request, as: start, of: entry.state)
        record(entry.progress.withLock { $0.open(state, at: now) })
    }

    package func didReceive(_ response: ResponseHead, of task: AnySessionTask) {
        entry(of: task)?.progress.withLock { $0.receive(response, at: now) }
    }

    package func didReceiveBytes(of task: AnySessionTask) {
        entry(of: task)?.progress.withLock { $0.receiveBytes(at: now) }
    }

    package func didValidate(error: NetworkError?, of task: AnySessionTask) {
        record(entry(of: task)?.progress.withLock { $0.validate(error: error, at: now) })
    }

    package func didFail(_ error: NetworkError, of task: AnySessionTask) {
        record(entry(of: task)?.progress.withLock { $0.fail(error, at: now) })
    }

    /// Records that a redirect is followed, or that an interceptor sends the request again.
    package func willContinue(_ task: AnySessionTask, isRedirect: Bool) {
        record(entry(of: task)?.progress.withLock { $0.willContinue(isRedirect: isRedirect) })
    }

    package func didSend(bodyBytes count: Int64, of task: AnySessionTask) {
        entry(of: task)?.progress.withLock { $0.send(bodyBytes: count) }
    }

    package func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) {
        record(entry(of: task)?.progress.withLock { $0.measure(metrics) })
    }

    private func record(_ ended: Progress.Ended??) {
        if let ended = ended ?? nil { recorder.attemptEnded(ended.state, as: ended.end) }
    }
}
