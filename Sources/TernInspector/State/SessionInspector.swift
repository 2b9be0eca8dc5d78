public import Tern
import TernConcurrency
public import TernTesting

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps the last requests of a session, and shows them on a page of this machine: `Session.inspect(port:ready:)`.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.observers.append(SessionInspector())
/// let session = Session(configuration: configuration)
/// let page = Task {
///     try await session.inspect(port: 8077) { print("Requests: \($0)") }
/// }
/// ```
///
/// A task has its requests on the wire (redirects, challenges and retries), the header fields of each, the sizes, the
/// times by phase, the number of the connection, the record of the cache and the error. Bodies are not kept. The
/// header fields of a request are those of the caller and the client: what the session adds itself, such as cookies and
/// the `User-Agent`, is not seen by observers.
///
/// An inspector keeps at most `limit` tasks that run, and as many that have ended, each without its body, its value and
/// objects of the caller, and with at most 16 KiB of header fields for each message. It is meant for debugging: secrets
/// are hidden before anything is shown, but the rest of the requests is not.
public final class SessionInspector: SessionObserver {
    private typealias Key = InspectedTask.Key

    /// Hides secrets before anything leaves the inspector.
    let redaction: Recording.Redaction
    private let state: Lock<InspectorState>
    /// The pages, each of which ends with its session.
    private let pages = Lock<(last: UInt64, open: [Page])>((0, []))

    private struct Page {
        let number: UInt64
        let session: Session.ID
        let end: @Sendable () -> Void
    }

    /// Creates an inspector. One inspector can serve several sessions, whose requests its pages all show.
    ///
    /// - Parameters:
    ///   - limit: The number of tasks that have ended and are kept, from 10 to 10,000. 1,000 by default.
    ///   - redaction: The redaction of URLs and header fields; by default it hides secrets, as in recordings.
    public init(limit: Int = 1_000, redaction: Recording.Redaction = .secrets) {
        state = Lock(InspectorState(limit: min(max(limit, 10), 10_000)))
        self.redaction = redaction
    }

    // MARK: The stages that are kept

    /// Records the start and the end of a task.
    public func didObserve(_ event: TaskRegistry.Event) {
        switch event {
        case .resumed(let task): start(task)
        case .completed(let completion): end(completion)
        case .sessionInvalidated(let session): endPages(of: session)
        default: break
        }
    }

    /// Records a request on the wire.
    public func willSend(_ request: Request, of task: AnySessionTask) {
        let now = MonotonicClock.nanoseconds()
        let headers = request.headers
        let kept =
            headers.areLimited(toBytes: InspectedTask.headLimit)
            ? headers : headers.limited(toBytes: InspectedTask.headLimit)
        let (method, url) = (request.method.rawValue, InspectedTask.kept(request.urlString))
        state.withLock { state in
            state.change(Key(task)) { task in
                task.endAttempt(at: now)
                task.add(
                    InspectedAttempt(cause: task.nextCause, method: method, url: url, headers: kept, start: now))
                task.nextCause = .again
            }
        }
    }

    /// Records the head of a response, so that a task that runs has its status.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) {
        let head = response.limited(toBytes: InspectedTask.headLimit)
        state.withLock { state in
            state.change(Key(task)) { task in
                if !task.attempts.isEmpty { task.attempts[task.attempts.count - 1].response = head }
            }
        }
    }

    /// Records that a redirect is followed.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
        willContinue(task, .redirect)
    }

    /// Records that credentials are asked for.
    public func didReceive(_ challenge: AuthenticationChallenge, of task: AnySessionTask) {
        willContinue(task, .challenge)
    }

    /// Records that an interceptor sends a request again.
    public func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {
        willContinue(task, .retry)
    }

    /// Records a request that failed.
    public func didFail(_ error: NetworkError, of task: AnySessionTask) {
        let now = MonotonicClock.nanoseconds()
        let failure = InspectedFailure(error)
        state.withLock { state in
            state.change(Key(task)) { $0.endAttempt(at: now, failure: failure, metrics: error.metrics) }
        }
    }

    /// Records the measurements of a request.
    public func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) {
        state.withLock { state in
            state.change(Key(task)) { task in
                if !task.attempts.isEmpty { task.attempts[task.attempts.count - 1].metrics = metrics }
            }
        }
    }

    private func willContinue(_ task: AnySessionTask, _ cause: InspectedAttempt.Cause) {
        let now = MonotonicClock.nanoseconds()
        state.withLock { state in
            state.change(Key(task)) { task in
                task.endAttempt(at: now)
                task.nextCause = cause
            }
        }
    }

    private func start(_ task: AnySessionTask) {
        // A task can be resumed again after a pause, and the event of that can come when the task has ended.
        guard !task.state.isTerminal else { return }
        let now = MonotonicClock.nanoseconds()
        state.withLock { state in
            state.start(Key(task)) { InspectedTask(task, number: $0, start: now, isRunning: true) }
        }
    }

    private func end(_ completion: TaskRegistry.Completion) {
        let now = MonotonicClock.nanoseconds()
        let end = InspectedTask.End(
            time: now, response: completion.response?.limited(toBytes: InspectedTask.headLimit),
            failure: completion.error.map { InspectedFailure($0) }, metrics: completion.metrics)
        let task = completion.task
        state.withLock { state in
            state.end(Key(task), as: end) { number in
                let total = completion.metrics?.total?.wholeNanoseconds ?? 0
                return InspectedTask(task, number: number, start: now - min(now, total), isRunning: false)
            }
        }
    }

    // MARK: Views

    /// Returns the newest tasks that changed after a revision.
    func changes(since revision: UInt64, limit: Int) -> InspectorState.Changes {
        state.withLock { $0.changes(since: revision, limit: limit) }
    }

    func task(_ number: UInt64) -> InspectedTask? { state.withLock { $0.task(number) } }

    var endedTasks: [InspectedTask] { state.withLock { $0.endedTasks } }

    // MARK: Pages

    /// Adds a page, which is to end with the session. Returns its number.
    func addPage(of session: Session.ID, end: @escaping @Sendable () -> Void) -> UInt64 {
        pages.withLock { pages in
            pages.last += 1
            pages.open.append(Page(number: pages.last, session: session, end: end))
            return pages.last
        }
    }

    func removePage(_ number: UInt64) {
        pages.withLock { $0.open.removeAll { $0.number == number } }
    }

    private func endPages(of session: Session.ID) {
        let ended = pages.withLock { $0.open.filter { $0.session == session } }
        for page in ended { page.end() }
    }
}

extension InspectedTask.Key {
    fileprivate init(_ task: AnySessionTask) {
        self.init(session: task.sessionID.number, task: task.id.number)
    }
}

extension InspectedTask {
    fileprivate init(_ task: AnySessionTask, number: UInt64, start: UInt64, isRunning: Bool) {
        let request = task.request
        self.init(
            key: Key(task), number: number, label: task.label.map { String($0.prefix(200)) },
            method: request?.method.rawValue ?? "", url: Self.kept(request?.urlString ?? ""),
            priority: task.priority.rawValue, start: start)
        handle = isRunning ? task : nil
    }
}

extension InspectedFailure {
    init(_ error: NetworkError) {
        // The texts of an error have no secrets.
        self.init(kind: error.kind.rawValue, reason: String(error.description.prefix(1_000)))
    }
}
