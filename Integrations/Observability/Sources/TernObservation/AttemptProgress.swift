package import Tern

/// The end of one request on the wire.
package struct AttemptEnd: Sendable {
    /// The head of the response; nil without one.
    package var response: ResponseHead?
    /// The error of the request itself; nil for a response that was accepted, or that a redirect or a challenge
    /// followed.
    package var error: NetworkError?
    /// The time from the beginning to the end, without a wait before a retry.
    package var duration: Duration
    /// The measurements of the transport; nil where it has made none, or they came too late.
    package var metrics: TaskMetrics?
    /// The number of bytes of the request's body that were sent; nil without a body.
    package var sentBodyBytes: Int64?

    /// The type of the failure (`error.type` of OpenTelemetry); nil for none. The status from 400, otherwise the kind
    /// of the error: a bounded number of values.
    package var errorType: String? {
        if let status = response?.status, status >= 400 { return "\(status)" }
        return error?.errorType
    }
}

extension AttemptEnd {
    /// The number of bytes of the response's body as it was sent; nil if it is not known, which is so for a compressed
    /// body without a length.
    package var receivedBodyBytes: Int64? {
        guard let response, let metrics else { return nil }
        return response.headers.contains("Content-Encoding") ? response.contentLength : metrics.decodedBodyBytes
    }

    /// The transport below HTTP for `network.transport`: `tcp`, `udp` or `unix`; nil without a connection.
    package var transport: String? {
        guard let metrics else { return nil }
        if metrics.remoteAddress == nil { return metrics.connectionNumber == nil ? nil : "unix" }
        return (metrics.httpVersion ?? response?.version) == .http3 ? "udp" : "tcp"
    }
}

extension NetworkError {
    /// The type of the failure (`error.type` of OpenTelemetry).
    package var errorType: String {
        if kind == .status, let status { "\(status)" } else { kind.rawValue }
    }
}

/// Decides when the requests of one task begin and end, from the stages that a `SessionObserver` sees. Pure.
///
/// A task sends one request at a time. `State` is the state that a recorder keeps for each.
package struct AttemptProgress<State: Sendable>: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// A request that has ended.
    package struct Ended: Sendable {
        package let state: State
        package let end: AttemptEnd
    }

    private struct Open {
        let state: State
        let start: Instant
        /// The time of the newest stage.
        var latest: Instant
        var response: ResponseHead?
        var error: NetworkError?
        var metrics: TaskMetrics?
        var sentBodyBytes: Int64?
        /// Whether the response was accepted.
        var isAccepted = false
        /// Whether another request follows, so that only the measurements are missing.
        var isOver = false
    }

    /// The number of requests so far.
    package private(set) var count = 0
    /// Whether the next request follows a redirect, so that its URL is another than that of the task.
    package private(set) var isRedirected = false
    private var open: Open?
    private var hasEnded = false

    package init() {}

    /// The state of the request that has not ended; nil without one.
    package var state: State? { open?.state }

    /// Counts a request that is about to be sent. Returns the one before, if its end was not reported.
    package mutating func beginAttempt() -> Ended? {
        count += 1
        return endAtLatestStage()
    }

    /// Opens the request that was counted. Returns it as ended if its task has ended meanwhile, because a stream can be
    /// cancelled by another thread.
    package mutating func open(_ state: State, at now: Instant) -> Ended? {
        let attempt = Open(state: state, start: now, latest: now)
        if hasEnded { return Self.end(attempt, at: now) }
        open = attempt
        return nil
    }

    /// Records the head of a response. A later one, with which a cache answers after a 304, is not that of the request.
    package mutating func receive(_ response: ResponseHead, at now: Instant) {
        if open?.response == nil { open?.response = response }
        open?.latest = now
    }

    /// Records a portion of the body.
    package mutating func receiveBytes(at now: Instant) { open?.latest = now }

    /// Records the number of bytes of the request's body that were sent.
    package mutating func send(bodyBytes count: Int64) { open?.sentBodyBytes = count }

    /// Records the measurements of the transport. Returns the request if it waited only for them.
    package mutating func measure(_ metrics: TaskMetrics) -> Ended? {
        open?.metrics = metrics
        return open?.isOver == true ? endAtLatestStage() : nil
    }

    /// Records that another request follows: a redirect is followed, or an interceptor sends the request again. Returns
    /// the present one, unless its measurements are still to come.
    package mutating func willContinue(isRedirect: Bool) -> Ended? {
        isRedirected = isRedirect
        if open?.metrics != nil { return endAtLatestStage() }
        open?.isOver = true
        return nil
    }

    /// Records the check of the response. Returns the request if the response was refused: nothing more arrives for it.
    package mutating func validate(error: NetworkError?, at now: Instant) -> Ended? {
        open?.latest = now
        open?.error = error
        open?.isAccepted = error == nil
        return error == nil ? nil : endAtLatestStage()
    }

    /// Records the failure of the request.
    package mutating func fail(_ error: NetworkError, at now: Instant) -> Ended? {
        open?.latest = now
        open?.error = error
        if let response = error.response, open?.response == nil { open?.response = response }
        if open?.metrics == nil { open?.metrics = error.metrics }
        return endAtLatestStage()
    }

    /// Ends the request at the time of its newest stage.
    package mutating func endAtLatestStage() -> Ended? {
        guard let attempt = open.take() else { return nil }
        return Self.end(attempt, at: attempt.latest)
    }

    /// Records the end of the task. Returns the request that was running.
    ///
    /// The end of a body that a stream or a download reads is not a stage. The transport measures it.
    package mutating func endTask(
        error: NetworkError?, total: Duration?, metrics: TaskMetrics? = nil, at now: Instant
    ) -> Ended? {
        hasEnded = true
        guard var attempt = open.take() else { return nil }
        if attempt.isOver { return Self.end(attempt, at: attempt.latest) }
        if attempt.metrics == nil { attempt.metrics = metrics }
        let measured = total.map { min(now, attempt.start.advanced(by: $0)) } ?? now
        if let error, attempt.error == nil, error.isOfTheWire(isAccepted: attempt.isAccepted) { attempt.error = error }
        return Self.end(attempt, at: max(attempt.latest, measured))
    }

    private static func end(_ attempt: Open, at instant: Instant) -> Ended {
        let duration = max(.zero, attempt.start.duration(to: instant))
        return Ended(
            state: attempt.state,
            end: AttemptEnd(
                response: attempt.response, error: attempt.error, duration: duration, metrics: attempt.metrics,
                sentBodyBytes: attempt.sentBodyBytes))
    }
}

extension NetworkError {
    /// Returns whether the error of a task is also that of its last request, which has no error of its own. An
    /// interceptor, a policy and a decoder fail a task whose request was answered.
    fileprivate func isOfTheWire(isAccepted: Bool) -> Bool {
        switch kind {
        case .decoding, .interceptor, .policy, .authentication, .redirect, .redirectLoop, .tooManyRedirects,
            .fileSystem:
            false
        case .status, .contentType, .validation:
            !isAccepted
        default:
            true
        }
    }
}
