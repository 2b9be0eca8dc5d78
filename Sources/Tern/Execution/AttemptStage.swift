import TernConcurrency

/// Sends one request and returns its response: the whole of it if the transport collects the body, or else the head. A
/// request that fails on a dead pooled connection, or that the server has not processed, is sent again if that is safe.
final class AttemptStage: Stage {
    @inline(__always)
    func response(to request: PreparedRequest, of task: TaskRecord) async throws(NetworkError) -> IncomingResponse {
        if request.request.cache == .onlyStored { throw request.hasNoCache }
        do throws(NetworkError) {
            let sentRequest = try Self.announced(request, task)
            let body = request.request.body.isNone ? nil : try await prepareBody(of: request, task)
            var attempts = Attempts(request, sentAs: sentRequest, task: task)
            var attempt = try attempts.start(body)
            while true {
                let (head, end) = await attempt.response { head in Self.report(interim: head, request, task) }
                switch try attempts.next(after: attempt, (head, end), sending: body) {
                case .sendAgain(let other): attempt = other
                case .deliver(let response): return response
                }
            }
        } catch {
            throw task.failed(error)
        }
    }

    /// Tells the observers about the request. Returns it with the fields that they add. A redirect does not carry these
    /// fields, because the response refers to the request without them.
    @inline(never)
    private static func announced(
        _ request: PreparedRequest, _ task: TaskRecord
    ) throws(NetworkError) -> PreparedRequest {
        let registry = task.registry
        if registry.observers.isEmpty { return request }
        registry.observe { $0.willSend(request.request, of: AnySessionTask(task)) }
        var fields = Headers()
        registry.observe { fields.override(with: $0.fields(for: request.request, of: AnySessionTask(task))) }
        if fields.isEmpty { return request }
        if let problem = PreparedRequest.problem(of: fields) {
            let failure = FailureCause(.invalidRequest, "the fields that an observer adds: \(problem)")
            throw NetworkError(failure, request: request.request)
        }
        return request.adding(fields)
    }

    @inline(never)
    private static func report(interim head: ResponseHead, _ request: PreparedRequest, _ task: TaskRecord) {
        task.registry.observe { $0.didReceive(interim: head, of: AnySessionTask(task)) }
        request.request.onInterimResponse?(head)
    }

    /// Encodes or opens the body of a request. A task that is already cancelled reads no file and encodes nothing.
    private func prepareBody(
        of request: PreparedRequest, _ task: TaskRecord
    ) async throws(NetworkError) -> PreparedBody {
        if task.isCancelled { throw NetworkError(FailureCause.cancelled, request: request.request) }
        return try await PreparedBody(request, files: task.registry.files)
    }
}

/// The attempts of one request: the first, and each further one after a dead connection, or because the server has not
/// processed the request.
private struct Attempts {
    /// The next step after the result of an attempt.
    enum Step {
        case sendAgain(Attempt)
        case deliver(IncomingResponse)
    }

    private let request: PreparedRequest
    private let task: TaskRecord
    /// The request as it is sent, with the time that is left.
    private var sentRequest: PreparedRequest
    /// Feeds a body that is produced piece by piece.
    private var pump: BodyPump?
    private var count = 0
    /// The number of attempts that the server stated not to have processed.
    private var unprocessedCount = 0

    init(_ request: PreparedRequest, sentAs sentRequest: PreparedRequest, task: TaskRecord) {
        self.request = request
        self.sentRequest = sentRequest
        self.task = task
    }

    /// Starts an attempt.
    ///
    /// - Parameter failure: That of the attempt before; nil for the first attempt.
    @inline(never)
    mutating func start(
        _ body: PreparedBody?, after failure: FailureCause? = nil
    ) throws(NetworkError) -> Attempt {
        let registry = task.registry
        let timeouts = sentRequest.timeouts(of: task)
        let pipe = body?.makePipe()
        var message = sentRequest.makeMessage()
        body?.add(to: &message, pipe: pipe)
        if sentRequest.answersChallenge || registry.authorizations.hasAny {
            try sentRequest.addAuthorization(to: &message, body ?? .none)
        }
        // Only a dead connection requires a new one: the pool itself avoids connections that take no more requests.
        let attempt = Attempt(
            sentRequest.makeWireRequest(
                message, priority: task.priority, timeouts: timeouts,
                onNewConnection: failure?.isDeadPooledConnection ?? false,
                after: PreparedRequest.delay(afterRefusals: unprocessedCount)),
            meter: task.meter, onHead: sentRequest.headReceiver(of: task))
        if let refusal = registry.refusal(of: attempt) { throw NetworkError(refusal, request: request.request) }
        if let left = timeouts.left, left <= .zero { throw task.deadlineError(request.request) }
        guard task.begin(attempt, sending: body.map(\.length) ?? 0) else {
            throw NetworkError(FailureCause.cancelled, request: request.request)
        }
        if let body, let pipe { pump = BodyPump(body, into: pipe, for: attempt, over: registry.transport) }
        count += 1
        return attempt
    }

    /// Returns the next step after the result of an attempt: the head of a body that is still to be read, or the end.
    @inline(never)
    mutating func next(
        after attempt: Attempt, _ result: (head: ResponseHead?, end: AttemptOutcome?), sending body: PreparedBody?
    ) throws(NetworkError) -> Step {
        guard let end = result.end else { return .deliver(try open(attempt, result.head)) }
        if end.hasFailed, let failure = end.failure {
            if request.canBeSentAgain(after: failure, attempt: count) {
                return .sendAgain(try startAgain(body, after: failure, end))
            }
            if !request.ignoresBodyFailure(failure, of: end.head) { throw error(failure, ended(end)) }
        }
        return .deliver(try whole(ended(end)))
    }

    private mutating func startAgain(
        _ body: PreparedBody?, after failure: FailureCause, _ end: AttemptOutcome
    ) throws(NetworkError) -> Attempt {
        pump?.stop()
        task.reportSentBody()
        if failure.wasNotProcessed { unprocessedCount += 1 }
        // All of them together have the time limits of one.
        let spent = Duration.nanoseconds(Int64(clamping: end.metrics.activeTime))
        sentRequest = sentRequest.limitingTime(spent: sentRequest.timeSpent + spent)
        return try start(body, after: failure)
    }

    /// Records the end of the last attempt. Returns it with the number of attempts.
    private func ended(_ end: AttemptOutcome) -> AttemptOutcome {
        task.endAttempt(with: count > 1 ? end.counted(count) : end, pump: pump)
    }

    private func error(_ failure: FailureCause, _ end: AttemptOutcome) -> NetworkError {
        let error = request.error(failure, end)
        if unprocessedCount == 0 || failure.wasNotProcessed || failure.kind == .cancelled { return error }
        return error.adding("the server had not processed the request \(unprocessedCount) times")
    }

    /// Returns a response that has arrived whole.
    private func whole(_ outcome: AttemptOutcome) throws(NetworkError) -> IncomingResponse {
        guard let head = outcome.head else { throw request.error(.noHead, outcome) }
        receive(head)
        return IncomingResponse(whole: outcome, request: request, head: head)
    }

    /// Returns a response whose body is still to be read.
    private func open(_ attempt: Attempt, _ head: ResponseHead?) throws(NetworkError) -> IncomingResponse {
        guard let head else { throw request.error(.noHead, AttemptOutcome()) }
        receive(head)
        return IncomingResponse(
            request: request, head: head, record: task, attempt: attempt, pump: pump, number: count,
            decoder: request.decoder(for: head))
    }

    /// Stores the cookies and the authorization of a response, and tells the observers.
    private func receive(_ head: ResponseHead) {
        request.storeCookies(of: head)
        if request.answersChallenge || task.registry.authorizations.hasAny {
            request.rememberAuthorization(from: head)
        }
        task.registry.observe { $0.didReceive(head, of: AnySessionTask(task)) }
    }
}

extension PreparedRequest {
    /// The error of a request that must be answered from a store, in a session without a cache.
    fileprivate var hasNoCache: NetworkError {
        let failure = FailureCause(.notStored, "the session has no cache (Session.Configuration.cache)")
        return NetworkError(failure, request: request)
    }
}

extension FailureCause {
    static let noHead = FailureCause(.malformedResponse, "the response ended without a head")
}
