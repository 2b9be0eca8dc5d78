public import Logging
public import Tern
import TernObservation

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Writes the requests of a session to a `Logger`, with metadata in place of texts.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.observers = [LoggingObserver(logger: Logger(label: "network"))]
/// ```
///
/// | Entry | Level |
/// |---|---|
/// | `request sent` | `level` |
/// | `response received`: also with a redirect, a challenge or a refused status | `level` |
/// | `request failed`: without a response, or in its body | `level` |
/// | `task failed`: the error that the caller receives | `failureLevel` |
/// | `task cancelled` | `level` |
///
/// The metadata has the names of OpenTelemetry's conventions for HTTP, `tern.task`, `tern.session`, `tern.label`, and
/// `duration_ms`, which is the time of one request until its body was complete. No entry has secrets: a URL has no user
/// information and no query values except revealed ones, and header fields and bodies are left out.
///
/// The entries are written where their event happens, so that the metadata provider of the logger sees the context of
/// the Swift task. Unlike `LoggingInterceptor` of Tern, it sees each request on the wire, also those after a redirect.
public struct LoggingObserver: SessionObserver {
    private let tracker: AttemptTracker<LogRecorder>

    /// Creates an observer. One observer can serve several sessions.
    ///
    /// - Parameters:
    ///   - logger: The logger.
    ///   - level: The level of all entries about requests. `.debug` by default.
    ///   - failureLevel: The level of a task that failed and was not cancelled. `.warning` by default.
    ///   - revealed: The names of query parameters whose values are written. None by default.
    public init(
        logger: Logger, level: Logger.Level = .debug, failureLevel: Logger.Level = .warning,
        revealing revealed: RevealedValues = .none
    ) {
        tracker = AttemptTracker(
            LogRecorder(logger: logger, level: level, failureLevel: failureLevel, revealed: revealed))
    }

    /// The number of tasks that have not ended.
    package var count: Int { tracker.count }

    /// Writes that a request is sent.
    public func willSend(_ request: Request, of task: AnySessionTask) { tracker.willSend(request, of: task) }

    /// Records the status.
    public func didReceive(_ response: ResponseHead, of task: AnySessionTask) { tracker.didReceive(response, of: task) }

    /// Records the time of the newest bytes.
    public func didReceive(bytes: Data, of task: AnySessionTask) { tracker.didReceiveBytes(of: task) }

    /// Writes that a response was refused.
    public func didValidate(_ response: ResponseHead, error: NetworkError?, of task: AnySessionTask) {
        tracker.didValidate(error: error, of: task)
    }

    /// Writes that a request failed.
    public func didFail(_ error: NetworkError, of task: AnySessionTask) { tracker.didFail(error, of: task) }

    /// Writes the response to a request that is sent again.
    public func willRetry(_ request: Request, after error: NetworkError?, of task: AnySessionTask) {
        tracker.willContinue(task, isRedirect: false)
    }

    /// Writes that a request was redirected.
    public func didRedirect(to request: Request, after response: ResponseHead, of task: AnySessionTask) {
        tracker.willContinue(task, isRedirect: true)
    }

    /// Writes the response of a request whose measurements are there.
    public func didCollect(_ metrics: TaskMetrics, of task: AnySessionTask) { tracker.didCollect(metrics, of: task) }

    /// Writes that a task failed.
    public func didObserve(_ event: TaskRegistry.Event) { tracker.observe(event) }
}

/// Writes the entries about tasks and their requests.
private struct LogRecorder: AttemptRecorder {
    struct AttemptState: Sendable {
        let task: AnySessionTask
        let facts: RequestFacts
        let number: Int
    }

    let logger: Logger
    let level: Logger.Level
    let failureLevel: Logger.Level
    let revealed: RevealedValues

    func taskStarted(_ task: AnySessionTask) -> AnySessionTask { task }

    func attemptStarted(_ request: Request, as start: AttemptStart, of task: AnySessionTask) -> AttemptState {
        let facts = RequestFacts(request, revealing: revealed, isRedirected: start.isRedirected)
        let attempt = AttemptState(task: task, facts: facts, number: start.number)
        logger.log(level: level, "request sent", metadata: metadata(of: attempt))
        return attempt
    }

    func attemptEnded(_ attempt: AttemptState, as end: AttemptEnd) {
        let isAnswered = end.response != nil && (end.error == nil || end.error?.kind == .status)
        logger.log(
            level: level, isAnswered ? "response received" : "request failed", metadata: metadata(of: attempt, end))
    }

    func taskEnded(_ task: AnySessionTask, as completion: TaskRegistry.Completion, attempts: Int) {
        guard let error = completion.error else { return }
        let isCancelled = error.isCancelled
        logger.log(
            level: isCancelled ? level : failureLevel, isCancelled ? "task cancelled" : "task failed",
            metadata: metadata(of: task, error))
    }

    private func metadata(of task: AnySessionTask) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "tern.session": "\(task.sessionID.number)", "tern.task": "\(task.id.number)",
        ]
        if let label = task.label { metadata["tern.label"] = "\(label)" }
        return metadata
    }

    private func metadata(of attempt: AttemptState) -> Logger.Metadata {
        var metadata = metadata(of: attempt.task)
        metadata["http.request.method"] = "\(attempt.facts.originalMethod ?? attempt.facts.method)"
        metadata["url.full"] = "\(attempt.facts.url)"
        if let template = attempt.facts.template { metadata["url.template"] = "\(template)" }
        if attempt.number > 1 { metadata["http.request.resend_count"] = "\(attempt.number - 1)" }
        return metadata
    }

    private func metadata(of attempt: AttemptState, _ end: AttemptEnd) -> Logger.Metadata {
        var metadata = metadata(of: attempt)
        if let status = end.response?.status { metadata["http.response.status_code"] = "\(status)" }
        if let version = end.response?.version { metadata["network.protocol.version"] = "\(version.number)" }
        if let address = end.metrics?.remoteAddress { metadata["network.peer.address"] = "\(address)" }
        if let type = end.errorType { metadata["error.type"] = "\(type)" }
        if let error = end.error, error.kind != .status {
            metadata["error.message"] = "\(error.description(revealing: revealed))"
        }
        let tenths = Int64(end.duration / .microseconds(100))
        metadata["duration_ms"] = "\(tenths / 10).\(tenths % 10)"
        return metadata
    }

    private func metadata(of task: AnySessionTask, _ error: NetworkError) -> Logger.Metadata {
        var metadata = metadata(of: task)
        if let facts = task.request.map({ RequestFacts($0, revealing: revealed) }) {
            metadata["http.request.method"] = "\(facts.originalMethod ?? facts.method)"
            metadata["url.full"] = "\(facts.url)"
        }
        metadata["error.type"] = "\(error.errorType)"
        metadata["error.message"] = "\(error.description(revealing: revealed))"
        return metadata
    }
}
