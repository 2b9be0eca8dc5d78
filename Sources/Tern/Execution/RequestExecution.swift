import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Executes one request from call to value: intercept → send → follow up → validate → collect → decode.
///
/// The functions stand in the order in which they run. ``perform(_:)`` is the loop that sends the request and follows
/// redirects and challenges. Everything runs in the task's own Swift task, or in the caller's for a call without a
/// handle; never on an actor, and on the transport's loop only if the caller prefers its executor. Two exceptions save
/// the way to another thread and back: the few steps of a call without hooks, body and cache, until its value is
/// decoded (`plainResponse(to:decode:)`), and those of a stream without them, until its head has arrived
/// (`startOnLoop()`).
///
/// Functions on the plain path are inlined: each asynchronous call costs a frame and a look at the executor.
struct RequestExecution: Sendable {
    /// The request that the task was created with. Interceptors, redirects and challenges can replace it on the wire.
    let request: PreparedRequest
    let record: TaskRecord

    private var registry: TaskRegistry { record.registry }

    // MARK: From call to value

    /// Registers a task, executes it in the caller's own Swift task and ends it. Cancelling the Swift task cancels the
    /// transfer.
    static func response<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        if request.isPlainOnWire, request.registry.isPlain, !request.registry.authorizations.hasAny {
            return try await plainResponse(to: request, decode: decoder)
        }
        return try await responseOffActor(to: request, decode: decoder)
    }

    /// Does the same off the caller's actor, for any request.
    @concurrent
    private static func responseOffActor<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let registry = request.registry
        if request.hasInterceptors { return try await responseThroughHandle(to: request, decode: decoder) }
        let record = TaskRecord(
            id: registry.nextID(), registry: registry, request: request, valueType: Response<Value>.self)
        guard record.startInCaller() else { throw registry.invalidated(request.request) }
        return try await RequestExecution(request: request, record: record).run { execution throws(NetworkError) in
            try await execution.response(decode: decoder)
        }
    }

    /// Runs an operation in the caller's own Swift task, and ends the session's task with its result.
    @inline(__always)
    func run<Value: Sendable>(
        _ operation: (RequestExecution) async throws(NetworkError) -> Response<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let result = await withTaskCancellationHandler {
            await record.run { _ throws(NetworkError) in try await operation(self) }
        } onCancel: {
            record.cancel()
        }
        // Consumed: copying a response copies many references.
        switch consume result {
        case .success(let response):
            if registry.observers.isEmpty { record.end(nil) } else { record.end(nil, value: response) }
            return response
        case .failure(let error):
            record.end(error)
            throw error
        }
    }

    /// Executes a request with interceptors as a task with a handle. An interceptor can wait for something other than
    /// the wire, so it needs a Swift task that is cancelled together with the session's task, also by the registry.
    /// Returns when the task has left the registry, even if the caller is cancelled.
    private static func responseThroughHandle<Value: Sendable>(
        to request: PreparedRequest, decode decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        let task = request.registry.makeTask(request, startsImmediately: false) { record throws(NetworkError) in
            try await RequestExecution(request: request, record: record).response(decode: decoder)
        }
        let result = await withTaskCancellationHandler {
            // Started here, so that a caller that is already cancelled sends nothing.
            task.resume()
            return await task.result.outcome()
        } onCancel: {
            task.cancel()
        }
        return try result.get()
    }

    /// Returns the response with its decoded body.
    @inline(__always)
    func response<Value: Sendable>(decode decoder: BodyDecoder<Value>) async throws(NetworkError) -> Response<Value> {
        try await decoded(try await acceptedResponse(), with: decoder)
    }

    /// Returns an accepted response with its decoded body.
    @inline(__always)
    func decoded<Value: Sendable>(
        _ response: IncomingResponse, with decoder: BodyDecoder<Value>
    ) async throws(NetworkError) -> Response<Value> {
        // Most responses are whole by now.
        let outcome = if let outcome = response.outcome { outcome } else { await response.finalOutcome() }
        let value =
            registry.observers.isEmpty
            ? try response.request.decode(outcome, head: response.head, with: decoder)
            : try decodeAndReport(response, outcome, with: decoder)
        return Response(value: value, head: response.head, outcome: outcome.kept(by: decoder))
    }

    /// Decodes a collected body, and tells the observers.
    private func decodeAndReport<Value: Sendable>(
        _ response: IncomingResponse, _ outcome: TransferOutcome, with decoder: BodyDecoder<Value>
    ) throws(NetworkError) -> Value {
        let result: Result<Value, NetworkError>
        do throws(NetworkError) {
            result = .success(try response.request.decode(outcome, head: response.head, with: decoder))
        } catch {
            result = .failure(error)
        }
        let reported = result.map { $0 as any Sendable }
        registry.observe { $0.didDecode(reported, from: outcome.body, of: AnySessionTask(record)) }
        return try result.get()
    }

    // MARK: Interceptors and validation

    /// Returns the accepted response, through the interceptors if there are any.
    @inline(__always)
    func acceptedResponse() async throws(NetworkError) -> IncomingResponse {
        if !request.hasInterceptors { return try await validatedResponse(to: request) }
        return try await intercepted { request throws(NetworkError) in try await validatedResponse(to: request) }
    }

    /// Runs the interceptors of the session and of the request around `send`.
    func intercepted(_ send: @escaping InterceptorChain.Innermost) async throws(NetworkError) -> IncomingResponse {
        try await InterceptorChain(prepared: request, record: record, innermost: send).run()
    }

    /// Performs the request, collects the body if the task wants it in memory, and validates the response.
    @inline(__always)
    private func validatedResponse(to request: PreparedRequest) async throws(NetworkError) -> IncomingResponse {
        try await validated(try await perform(request))
    }

    /// Collects the body of a final response if the task wants it in memory, and validates the response.
    @inline(__always)
    func validated(_ response: IncomingResponse) async throws(NetworkError) -> IncomingResponse {
        if let place = response.downloadPlace { return try await download(response, to: place) }
        if response.outcome == nil, request.delivery == .collected { return try await validatedBody(of: response) }
        if let refusal = response.request.refusal(of: response) { throw await refused(response, for: refusal) }
        registry.observe { $0.didValidate(response.head, error: nil, of: AnySessionTask(record)) }
        return response
    }

    /// Collects the body of a response whose head has arrived, and validates the response.
    private func validatedBody(of response: IncomingResponse) async throws(NetworkError) -> IncomingResponse {
        var response = response
        response.outcome = try await collect(response)
        if let refusal = response.request.refusal(of: response) { throw await refused(response, for: refusal) }
        let head = response.head
        registry.observe { $0.didValidate(head, error: nil, of: AnySessionTask(record)) }
        return response
    }

    /// Returns the error of a response that the validation refuses, and tells the observers.
    func refused(_ response: IncomingResponse, for refusal: TransferFailure) async -> NetworkError {
        let error = await response.error(refusal)
        registry.observe { $0.didValidate(response.head, error: error, of: AnySessionTask(record)) }
        return error
    }

    /// Writes the body of a response to a file, because a policy has made a download of it. Returns the response
    /// without a body.
    private func download(
        _ response: IncomingResponse, to place: DownloadPlace
    ) async throws(NetworkError) -> IncomingResponse {
        if let refusal = response.request.refusal(of: response) { throw await refused(response, for: refusal) }
        registry.observe { $0.didValidate(response.head, error: nil, of: AnySessionTask(record)) }
        let path: String
        do throws(FilePath.NotAFile) {
            path = try FilePath.of(place.file)
        } catch {
            let failure = TransferFailure(.policy, "the response cannot become a download: the destination \(error)")
            throw await response.error(failure, readsBody: false)
        }
        let execution = DownloadExecution(
            request: response.request, record: record, destination: .file(path), options: place.options)
        let file = try await execution.save(response.unread)
        var saved = response
        saved.head = response.head.saved(as: file)
        saved.outcome = TransferOutcome(head: saved.head, metrics: record.metrics ?? TaskMetrics())
        record.receive(saved.head)
        return saved
    }

    /// Collects the body of a response whose head has arrived.
    private func collect(_ response: IncomingResponse) async throws(NetworkError) -> TransferOutcome {
        let (request, configuration) = (response.request, registry.configuration)
        let limit = request.request.maximumBodySize ?? configuration.maximumBodySize
        let isRefused = !response.isStoppedRedirect && !request.accepts(response.head.status)
        let outcome = await response.collect(upTo: isRefused ? min(limit, configuration.errorBodyLimit) : limit)
        if let failure = outcome.failure, !(isRefused && request.ignoresBodyFailure(failure, of: response.head)) {
            throw failed(request.error(failure, outcome))
        }
        return outcome
    }

    // MARK: The loop

    /// Sends a request, and then each request that a redirect or a challenge leads to. Returns the final response.
    @inline(__always)
    func perform(_ first: PreparedRequest) async throws(NetworkError) -> IncomingResponse {
        if registry.hasCredentials || !first.request.hasNoExtras {
            record.register()
            let start = MonotonicClock.nanoseconds()
            try await first.prepareAuthorization()
            let spent = Duration.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- start))
            let timed = first.limitingTotalTime(spent: first.timeSpent + spent)
            return try await finalResponse(after: try await exchange(timed), to: timed)
        }
        return try await finalResponse(after: try await exchange(first), to: first)
    }

    /// Returns the final response after the response to the first request, which most often is that.
    @inline(__always)
    func finalResponse(
        after response: IncomingResponse, to first: PreparedRequest
    ) async throws(NetworkError) -> IncomingResponse {
        // Three comparisons for most responses.
        if !FollowUpRules.mayFollow(response.head), !first.mayHavePolicies, registry.observers.isEmpty {
            return response
        }
        return try await followUp(response, to: first)
    }

    /// Sends each request that a redirect or a challenge leads to, after the response to the first request. Returns the
    /// final response.
    private func followUp(
        _ firstResponse: IncomingResponse, to first: PreparedRequest
    ) async throws(NetworkError) -> IncomingResponse {
        var (request, response) = (first, firstResponse)
        var rules = FollowUpRules(maximumRedirects: registry.configuration.maximumRedirects)
        var mayFollow = FollowUpRules.mayFollow(response.head)
        rules.addTime(first.timeSpent)
        while mayFollow {
            // The time of an attempt that has not ended contains that of the caller's code.
            let start = response.outcome == nil ? nil : MonotonicClock.nanoseconds()
            guard let next = try await nextRequest(after: &response, rules: &rules) else { break }
            if let start { rules.addTime(.nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- start))) }
            rules.addTime(of: await response.readRest())
            // A request that waited for an equal one was answered with less time.
            rules.addTime(response.request.timeSpent - request.timeSpent)
            request = next.limitingTotalTime(spent: rules.timeSpent)
            response = try await exchange(request)
            mayFollow = FollowUpRules.mayFollow(response.head)
        }
        if mayFollow || !rules.history.isEmpty {
            response.head = response.head.redirected(by: rules.history)
            record.receive(response.head)
        }
        if let policies = first.policies { try await applyDisposition(of: policies, to: &response) }
        if !registry.observers.isEmpty, let body = response.wholeBody, !body.isEmpty {
            registry.observe { $0.didReceive(bytes: body, of: AnySessionTask(record)) }
        }
        return response
    }

    /// Asks the policies whether the task wants the body of its final response, and where.
    ///
    /// - Throws: An error of kind `.cancelled` if it does not want it.
    private func applyDisposition(
        of policies: Policies, to response: inout IncomingResponse
    ) async throws(NetworkError) {
        let head = response.head
        let disposition = try await policies.ask(about: response.request.request) { policy in
            try await policy.disposition(of: head, for: AnySessionTask(record))
        }
        switch disposition {
        case nil, .accept:
            break
        case .cancel:
            let failure = TransferFailure(.cancelled, "the policy does not want the response")
            throw await response.error(failure, readsBody: false)
        case .becomeDownload(let file, let options):
            guard response.request.delivery == .collected, !response.isStoppedRedirect else { return }
            response = response.becomingDownload(DownloadPlace(file: file, options: options))
        }
    }

    // MARK: One request, answered by the cache or on the wire

    /// Returns the response to one request: from the session's cache, if there is one, or from the wire.
    @inline(__always)
    func exchange(_ request: PreparedRequest) async throws(NetworkError) -> IncomingResponse {
        guard registry.hasCache, !request.isUpgrade, let cache = registry.cache else {
            if !request.request.hasNoExtras, request.request.cache == .onlyStored { throw request.hasNoCache }
            return try await send(request)
        }
        let response = try await cache.cache.response(to: NetworkExchange(execution: self, prepared: request))
        if request.hasHandle, !FollowUpRules.mayFollow(response.head) { record.receive(response.head) }
        return response
    }

    /// Sends one request and returns its response: the whole of it if the transport collects the body, or else the
    /// head.
    ///
    /// - Parameter onHead: Receives the head before a body that is collected.
    @inline(__always)
    func send(
        _ request: PreparedRequest, onHead: (@Sendable (ResponseHead) -> Void)? = nil
    ) async throws(NetworkError) -> IncomingResponse {
        if registry.observers.isEmpty { return try await send(request, onWireAs: request, onHead: onHead) }
        return try await sendObserved(request, onHead: onHead)
    }

    /// Sends one request with the fields that the observers add, and tells them about its beginning and its failure.
    private func sendObserved(
        _ request: PreparedRequest, onHead: (@Sendable (ResponseHead) -> Void)?
    ) async throws(NetworkError) -> IncomingResponse {
        let task = AnySessionTask(record)
        registry.observe { $0.willSend(request.request, of: task) }
        do throws(NetworkError) {
            return try await send(request, onWireAs: try addingFields(to: request), onHead: onHead)
        } catch {
            throw failed(error)
        }
    }

    /// Returns the request with the fields that the observers add to it on the wire.
    private func addingFields(to request: PreparedRequest) throws(NetworkError) -> PreparedRequest {
        var fields = Headers()
        registry.observe { fields.override(with: $0.fields(for: request.request, of: AnySessionTask(record))) }
        if fields.isEmpty { return request }
        if let problem = PreparedRequest.problem(of: fields) {
            let failure = TransferFailure(.invalidRequest, "the fields that an observer adds: \(problem)")
            throw NetworkError(failure, request: request.request)
        }
        return request.adding(fields)
    }

    /// Tells the observers that a request failed on the wire, and returns its error.
    private func failed(_ error: NetworkError) -> NetworkError {
        registry.observe { $0.didFail(error, of: AnySessionTask(record)) }
        return error
    }

    /// Sends one request. A request that fails on a dead pooled connection, or that the server has not processed, is
    /// sent again if that is safe.
    ///
    /// - Parameters:
    ///   - wireRequest: The same request with the fields for the wire. The response is that to `request`, so that these
    ///     fields follow no redirect.
    ///   - onHead: Receives the head before a body that is collected.
    @inline(__always)
    private func send(
        _ request: PreparedRequest, onWireAs wireRequest: PreparedRequest, onHead: (@Sendable (ResponseHead) -> Void)?
    ) async throws(NetworkError) -> IncomingResponse {
        let body = request.request.body.isNone ? nil : try await prepareBody(of: request)
        let (transfer, pump) = try start(wireRequest, body: body, onHead: onHead)
        let (head, outcome) = await response(of: transfer, request)
        let first = FirstAttempt(transfer: transfer, pump: pump, head: head, outcome: outcome)
        return try await response(after: first, to: request, onWireAs: wireRequest, body: body, onHead: onHead)
    }

    /// The first attempt of a request, and its answer: the head of a body that is still to be read, or the end.
    struct FirstAttempt: Sendable {
        let transfer: Transfer
        let pump: BodyPump?
        let head: ResponseHead?
        let outcome: TransferOutcome?
    }

    /// Returns the response to one request, after its first attempt. Makes further ones if that is safe.
    @inline(__always)
    func response(
        after first: FirstAttempt, to request: PreparedRequest, onWireAs wireRequest: PreparedRequest,
        body: PreparedBody?, onHead: (@Sendable (ResponseHead) -> Void)?
    ) async throws(NetworkError) -> IncomingResponse {
        var (transfer, pump, earlyHead, outcome) = (first.transfer, first.pump, first.head, first.outcome)
        var (attempt, refusals, wire) = (1, 0, wireRequest)
        while outcome?.hasFailed == true, let failure = outcome?.failure,
            request.canBeSentAgain(after: failure, attempt: attempt)
        {
            pump?.stop()
            attempt += 1
            if failure.wasNotProcessed { refusals += 1 }
            // All attempts together have the total time limit.
            let spent = Duration.nanoseconds(Int64(clamping: outcome?.metrics.activeTime ?? 0))
            wire = wire.limitingTotalTime(spent: wire.timeSpent + spent)
            // The pool knows the connections whose servers take no more, and the limits of the others.
            (transfer, pump) = try start(
                wire, body: body, onNewConnection: failure.isDeadPooledConnection,
                after: PreparedRequest.delay(afterRefusals: refusals), onHead: onHead)
            (earlyHead, outcome) = await response(of: transfer, request)
        }
        if let end = outcome { outcome = record.endAttempt(with: attempt > 1 ? end.counted(attempt) : end, pump: pump) }
        if let outcome, outcome.hasFailed, let failure = outcome.failure,
            !request.ignoresBodyFailure(failure, of: outcome.head)
        {
            let error = request.error(failure, outcome)
            if refusals == 0 || failure.wasNotProcessed || failure.kind == .cancelled { throw error }
            throw error.adding("the server had not processed the request \(refusals) times")
        }
        guard let head = outcome?.head ?? earlyHead else {
            throw request.error(.noHead, outcome ?? TransferOutcome())
        }
        request.storeCookies(of: head)
        if request.answersChallenge || registry.authorizations.hasAny { request.rememberAuthorization(from: head) }
        registry.observe { $0.didReceive(head, of: AnySessionTask(record)) }
        if let outcome { return IncomingResponse(whole: outcome, request: request, head: head) }
        return IncomingResponse(
            request: request, head: head, record: record, transfer: transfer, pump: pump, attempt: attempt,
            decoder: request.decoder(for: head))
    }

    /// Waits for the response of an attempt, and reports the interim responses before it.
    @inline(__always)
    private func response(
        of transfer: Transfer, _ request: PreparedRequest
    ) async -> (head: ResponseHead?, outcome: TransferOutcome?) {
        await transfer.response { head in
            registry.observe { $0.didReceive(interim: head, of: AnySessionTask(record)) }
            request.request.onInterimResponse?(head)
        }
    }

    /// Encodes or opens the body of a request. A task that is already cancelled reads no file and encodes nothing.
    private func prepareBody(of request: PreparedRequest) async throws(NetworkError) -> PreparedBody {
        record.register()
        if record.isCancelled { throw NetworkError(TransferFailure.cancelled, request: request.request) }
        return try await PreparedBody(request, files: registry.files)
    }

    /// Starts an attempt. The pump feeds a body that is produced piece by piece.
    private func start(
        _ request: PreparedRequest, body: PreparedBody?, onNewConnection: Bool = false, after delay: Duration = .zero,
        onHead: (@Sendable (ResponseHead) -> Void)?
    ) throws(NetworkError) -> (Transfer, BodyPump?) {
        guard body == nil, onHead == nil, delay == .zero, request.isPlainOnWire, !registry.authorizations.hasAny else {
            return try start(
                request, withBody: body ?? .none, onNewConnection: onNewConnection, after: delay, onHead: onHead)
        }
        return (try Self.startPlain(request, of: record, onNewConnection: onNewConnection), nil)
    }

    /// Starts an attempt without a body and anything else that most requests do not have.
    @inline(__always)
    static func startPlain(
        _ request: PreparedRequest, of record: TaskRecord, onNewConnection: Bool = false
    ) throws(NetworkError) -> Transfer {
        let (priority, owner) = record.prepareAttempt()
        // Built in its place, because a wire request has many fields to copy.
        let transfer = Transfer(
            request.makePlainWireRequest(priority: priority, onNewConnection: onNewConnection), meter: record.meter,
            owner: owner)
        try begin(transfer, for: request, of: record)
        return transfer
    }

    /// Starts an attempt with a body, a handle, or anything else that most requests do not have.
    @inline(never)
    private func start(
        _ request: PreparedRequest, withBody body: PreparedBody, onNewConnection: Bool, after delay: Duration,
        onHead announce: (@Sendable (ResponseHead) -> Void)?
    ) throws(NetworkError) -> (Transfer, BodyPump?) {
        let pipe = body.makePipe()
        let (priority, owner) = record.prepareAttempt()
        var wire = request.makeWireRequest(priority: priority, onNewConnection: onNewConnection)
        body.add(to: &wire, pipe: pipe)
        if delay > .zero { wire.startDelay = delay }
        if request.answersChallenge || registry.authorizations.hasAny {
            try request.addAuthorization(to: &wire, body)
        }
        // With a cache, the head of the wire can differ from that of the response.
        let onHead: (@Sendable (ResponseHead) -> Void)? =
            wire.announcesHead && !registry.hasCache
            ? { @Sendable [record] head in if !FollowUpRules.mayFollow(head) { record.receive(head) } } : announce
        if announce != nil { wire.announcesHead = true }
        let transfer = Transfer(consume wire, meter: record.meter, owner: owner, onHead: onHead)
        try Self.begin(transfer, for: request, of: record)
        let pump = pipe.map { BodyPump(body, into: $0, for: transfer, over: registry.transport) }
        return (transfer, pump)
    }

    /// Hands an attempt to the transport.
    @inline(__always)
    private static func begin(
        _ transfer: Transfer, for request: PreparedRequest, of record: TaskRecord
    ) throws(NetworkError) {
        if let refusal = record.registry.refusal(of: transfer) {
            throw NetworkError(refusal, request: request.request)
        }
        guard record.begin(transfer) else { throw NetworkError(TransferFailure.cancelled, request: request.request) }
    }
}

extension PreparedRequest {
    /// The error of a request that must be answered from a store, in a session without a cache.
    fileprivate var hasNoCache: NetworkError {
        let failure = TransferFailure(.notStored, "the session has no cache (Session.Configuration.cache)")
        return NetworkError(failure, request: request)
    }
}

extension TransferFailure {
    static let noHead = TransferFailure(.malformedResponse, "the response ended without a head")
}
