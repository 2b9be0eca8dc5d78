import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request that was checked and combined with the session's configuration. The first one of a task is checked before
/// the task exists, and each one that takes its place before it is sent.
///
/// A class, because it passes through every stage, and copies of its many fields showed in profiles.
final class PreparedRequest: Sendable {
    /// How the task takes the body of the response.
    enum Delivery {
        /// In memory, whole.
        case collected
        /// In chunks: a stream or a download.
        case streamed
    }

    let request: Request
    let registry: TaskRegistry
    let delivery: Delivery
    /// Whether the caller has a handle, with which it can pause the task or read its head before the end.
    let hasHandle: Bool
    /// The content types that are accepted for the task's value.
    let acceptedTypes: AcceptedTypes
    /// The header fields of the session and of the request.
    let headers: Headers
    let decompresses: Bool
    private let attributes: Attributes

    /// The attributes that a request keeps from the one whose place it takes.
    private struct Attributes: Sendable {
        /// Whether the request asks for an uncompressed body, because offsets count its bytes.
        var requestsIdentity = false
        /// Whether the request must not use a pooled connection, because one answered that it does not serve the
        /// origin.
        var needsNewConnection = false
        var isRefresh = false
        var redirectedFrom: [Target] = []
        var challengeAnswer: Authorization?
        var upgrade: UpgradeOffer?
        var sessionFields: SessionFields?
        /// Receives the head before a body that is collected.
        var onHead: (@Sendable (ResponseHead) -> Void)?

        /// The attributes for a request that is a new one for the server.
        var ofOtherRequest: Attributes {
            var other = self
            (other.challengeAnswer, other.needsNewConnection) = (nil, false)
            (other.sessionFields, other.onHead) = (nil, nil)
            return other
        }
    }

    /// The URLs of the redirects that led here, oldest first.
    var redirectedFrom: [Target] { attributes.redirectedFrom }
    /// The answer to a challenge of this request; nil if a remembered authorization is sent, if any.
    var challengeAnswer: Authorization? { attributes.challengeAnswer }
    /// Whether the request answers a challenge. Known without a copy of the answer.
    var answersChallenge: Bool { attributes.challengeAnswer != nil }
    /// Whether the request refreshes a stored response in the background.
    var isRefresh: Bool { attributes.isRefresh }
    /// The protocol that the request asks the server to switch to; nil for none.
    var upgrade: UpgradeOffer? { attributes.upgrade }
    /// The cookies and the authorization to send; nil for those that the session has when the request is sent.
    var sessionFields: SessionFields? { attributes.sessionFields }
    /// Whether the request asks for another protocol.
    var isUpgrade: Bool { attributes.upgrade != nil }

    /// Checks a request.
    ///
    /// - Throws: An error of kind `.invalidRequest` for a request that cannot be sent.
    // Not inlined, because its variables would lie in the frame of each asynchronous function that sends a request.
    @inline(never)
    init(
        _ request: consuming Request, registry: TaskRegistry, delivery: Delivery, isPausable: Bool = false,
        acceptedTypes: AcceptedTypes = .any, upgrade: UpgradeOffer? = nil
    ) throws(NetworkError) {
        let hasNoHeaders = request.headers.isEmpty
        let standard =
            request.sendsDefaultFields
            ? registry.headers.forEveryOrigin ?? registry.headers.fields(for: request.target) : [:]
        let headers = hasNoHeaders ? standard : standard.overriding(with: request.headers)
        let isChecked = hasNoHeaders && registry.hasValidHeaders
        let problem =
            (isChecked ? nil : registry.headers.problem) ?? upgrade?.problem(of: request)
            ?? Self.problem(of: request, headers: headers, isChecked: isChecked)
        if let problem { throw NetworkError(FailureCause(.invalidRequest, problem), request: request) }
        // Moved, because a copy has many fields.
        self.request = consume request
        self.acceptedTypes = acceptedTypes
        self.registry = registry
        self.delivery = delivery
        self.headers = headers
        hasHandle = isPausable || delivery == .streamed
        decompresses = registry.configuration.decompresses
        attributes = Attributes(upgrade: upgrade)
    }

    /// Creates the request of a task that the system kept. An earlier process checked and sent it.
    init(restoring request: Request, registry: TaskRegistry) {
        self.request = request
        self.registry = registry
        delivery = .collected
        hasHandle = true
        acceptedTypes = .any
        headers = [:]
        decompresses = registry.configuration.decompresses
        attributes = Attributes()
    }

    @inline(never)
    private init(like other: PreparedRequest, request: Request, headers: Headers, attributes: Attributes) {
        self.attributes = attributes
        self.request = request
        registry = other.registry
        delivery = other.delivery
        acceptedTypes = other.acceptedTypes
        hasHandle = other.hasHandle
        self.headers = headers
        decompresses = other.decompresses
    }

    /// Returns this request with other properties; nil leaves a property as it is.
    private func with(
        _ request: Request? = nil, headers: Headers? = nil, _ change: (inout Attributes) -> Void = { _ in }
    ) -> PreparedRequest {
        var attributes = attributes
        change(&attributes)
        return PreparedRequest(
            like: self, request: request ?? self.request, headers: headers ?? self.headers, attributes: attributes)
    }

    // MARK: Requests that take its place

    /// Returns the same request for an uncompressed body. Offsets count bytes as they arrive, and a compressed body has
    /// no offset to continue at. If the server compresses the body anyway, it is decompressed like any other body.
    func requestingIdentity(adding extra: Headers = [:]) -> PreparedRequest {
        var headers = headers.overriding(with: extra)
        // Without the field, every coding is acceptable (RFC 9110 §12.5.3).
        if !headers.contains("Accept-Encoding") { headers["Accept-Encoding"] = "identity" }
        return with(headers: headers) { $0.requestsIdentity = true }
    }

    /// Checks a request that an interceptor or a policy sends in place of this one. It is delivered like this one.
    func replacing(_ other: Request) throws(NetworkError) -> PreparedRequest {
        let prepared = try PreparedRequest(
            other, registry: registry, delivery: delivery, isPausable: hasHandle, acceptedTypes: acceptedTypes,
            upgrade: upgrade)
        return attributes.requestsIdentity ? prepared.requestingIdentity() : prepared
    }

    /// Checks a request that a policy sends in answer to a challenge. After a redirect its headers are complete, and
    /// the session's are not added again: the redirect has removed what is not meant for the present origin.
    func answeringChallenge(with other: Request) throws(NetworkError) -> PreparedRequest {
        if redirectedFrom.isEmpty { return try replacing(other) }
        if let problem = Self.problem(of: other, headers: other.headers, isChecked: false) {
            throw NetworkError(FailureCause(.invalidRequest, problem), request: other)
        }
        return with(other, headers: other.headers) { $0 = $0.ofOtherRequest }
    }

    /// Checks a request that follows a redirect. Its headers are complete; the session's are not added again.
    func following(_ other: Request) throws(NetworkError) -> PreparedRequest {
        if let problem = Self.problem(of: other, headers: other.headers, isChecked: false) {
            throw NetworkError(FailureCause(.invalidRequest, problem), request: other)
        }
        return with(other, headers: other.headers) { attributes in
            attributes = attributes.ofOtherRequest
            attributes.redirectedFrom.append(request.target)
        }
    }

    /// Returns the same request with less time, because earlier requests used some of its limits.
    @inline(never)
    func limitingTime(spent: Duration) -> PreparedRequest {
        var timeouts = timeouts
        guard timeouts.total != nil || timeouts.attempt != nil else { return self }
        timeouts.spent = spent
        var other = request
        other.timeouts = timeouts
        return with(other)
    }

    /// The part of the time limits that was spent before the request, if there are such limits.
    var timeSpent: Duration { request.timeouts.spent }

    /// The time limits of the request, with those of the session.
    var timeouts: Timeouts { request.timeouts(in: registry.configuration.timeouts) }

    /// Returns the time limits of the request, with what is left of that of its task.
    func timeouts(of task: TaskRecord) -> Timeouts {
        var timeouts = timeouts
        timeouts.left = task.timeLeft
        return timeouts
    }

    /// The limit on the time of a whole task, with this request as its first one; nil for no limit.
    var totalLimit: Duration? {
        let own = request.ownTimeouts != nil
        guard let limit = own ? timeouts.total : registry.configuration.timeouts.total else { return nil }
        #if TERN_URLSESSION || !os(Linux)
        // The app of a background session can be suspended meanwhile.
        if registry.transport is BackgroundTransport { return nil }
        #endif
        return limit
    }

    /// Returns the same request with another body.
    func sending(_ body: Request.Body) -> PreparedRequest {
        var other = request
        other.body = body
        return with(other)
    }

    /// Returns the same request for a new connection.
    func onNewConnection() -> PreparedRequest { with { $0.needsNewConnection = true } }

    /// Returns the same request with fields that replace its own, for one attempt. The final response is that to this
    /// request.
    ///
    /// - Parameters:
    ///   - added: The cookies and the authorization to send; nil for those of this request.
    ///   - onHead: Receives the head before a body that is collected; nil for that of this request.
    func adding(
        _ fields: Headers, with added: SessionFields? = nil, onHead: (@Sendable (ResponseHead) -> Void)? = nil
    ) -> PreparedRequest {
        with(headers: headers.overriding(with: fields)) { attributes in
            if let added { attributes.sessionFields = added }
            if let onHead { attributes.onHead = onHead }
        }
    }

    /// Returns the same request as one that refreshes the stored response. It has the choice `revalidate`.
    func refreshing() -> PreparedRequest {
        var other = request
        other.cache = .revalidate
        return with(other) { $0.isRefresh = true }
    }

    /// Returns the same request with the answer to its challenge.
    func answering(_ authorization: Authorization) -> PreparedRequest {
        with { attributes in
            attributes = attributes.ofOtherRequest
            attributes.challengeAnswer = authorization
        }
    }

    /// Returns the same request without `Expect: 100-continue`; nil if it has no such expectation, or no body.
    func withoutExpectation() -> PreparedRequest? {
        guard !request.body.isNone, request.expectsContinue || headers.contains("Expect") else { return nil }
        var (other, headers) = (request, headers)
        other.expectsContinue = false
        headers.remove("Expect")
        return with(other, headers: headers)
    }

    // MARK: Responses

    /// Returns the reason why a response is refused; nil if it is accepted.
    func refusal(of response: IncomingResponse) -> FailureCause? {
        if response.isStoppedRedirect || isSwitched(response.head) { return nil }
        let isEmpty = response.outcome?.body.isEmpty ?? (response.head.contentLength == 0)
        return refusal(of: response.head, isEmpty: isEmpty)
    }

    /// Returns the reason why a response with or without a body is refused; nil if it is accepted.
    func refusal(of head: ResponseHead, isEmpty: Bool) -> FailureCause? {
        if head.status == 206, !headers.contains("Range") {
            let reason = "a part of the content (206) came, and no Range was sent (RFC 9110 §15.3.7)"
            return FailureCause(.malformedResponse, reason)
        }
        if let own = request.validation { return own.refusal(of: head, acceptedTypes: acceptedTypes, isEmpty: isEmpty) }
        return registry.configuration.validation.refusal(of: head, acceptedTypes: acceptedTypes, isEmpty: isEmpty)
    }

    /// Returns whether the server of a response speaks the protocol that the request asks for: after 101 over HTTP/1,
    /// and after a successful status over HTTP/2, where the request is an extended CONNECT (RFC 8441 §5).
    func isSwitched(_ head: ResponseHead) -> Bool {
        guard isUpgrade else { return false }
        return head.version == .http2 ? 200..<300 ~= head.status : head.status == 101
    }

    /// Whether the caller has rules of its own for the status.
    private var hasStatusRules: Bool { (request.validation ?? registry.configuration.validation).statuses != nil }

    /// Returns whether the validation accepts a status.
    func accepts(_ status: Int) -> Bool { (request.validation ?? registry.configuration.validation).accepts(status) }

    /// Returns whether the status of a response is refused and the failure of its body therefore does not matter. The
    /// error then shows only the start of the body.
    func ignoresBodyFailure(_ failure: FailureCause, of head: ResponseHead?) -> Bool {
        guard let head, !isSwitched(head) else { return false }
        return switch failure.kind {
        case .tooLarge, .truncatedBody, .malformedResponse: !accepts(head.status)
        default: false
        }
    }

    /// Decodes a collected body.
    func decode<Value: Sendable>(
        _ outcome: AttemptOutcome, head: ResponseHead, with decoder: BodyDecoder<Value>, of task: TaskRecord
    ) throws(NetworkError) -> Value {
        do {
            guard !decoder.isImmediate, let deadline = decodingDeadline(after: outcome, of: task) else {
                return try decoder.decode(outcome.body, head, registry.configuration.json)
            }
            return try DecodingLimit.withDeadline(deadline) {
                try decoder.decode(outcome.body, head, registry.configuration.json)
            }
        } catch let problem as NetworkError {
            throw problem
        } catch is DecodingLimit.Passed {
            throw self.error(decodingTimedOut(outcome, of: task), outcome)
        } catch is CancellationError where Task.isCancelled {
            throw self.error(.cancelled, outcome)
        } catch {
            let reason =
                "the response body (\(outcome.body.count) bytes) could not be decoded as \(Value.self): "
                + DecodingProblem.text(error)
                + (head.file == nil ? "" : "; a policy made a download of it")
            throw self.error(FailureCause(.decoding, reason, underlying: error), outcome)
        }
    }

    /// Returns the time at which the first of the limits on the whole ends; nil for no limit.
    @inline(never)
    private func decodingDeadline(after outcome: AttemptOutcome, of task: TaskRecord) -> UInt64? {
        guard let end = end(after: outcome, of: task) else { return nil }
        let (deadline, overflows) = MonotonicClock.nanoseconds().addingReportingOverflow(end.after.wholeNanoseconds)
        return overflows ? nil : deadline
    }

    private func end(after outcome: AttemptOutcome, of task: TaskRecord) -> (after: Duration, limit: Timeouts.Phase)? {
        var timeouts = timeouts(of: task)
        timeouts.spent += .nanoseconds(Int64(clamping: outcome.metrics.activeTime))
        return timeouts.end
    }

    @inline(never)
    private func decodingTimedOut(_ outcome: AttemptOutcome, of task: TaskRecord) -> FailureCause {
        let isAttempt = end(after: outcome, of: task)?.limit == .attempt
        let limit = (isAttempt ? timeouts.attempt : timeouts.total).map { " within \($0)" } ?? " in time"
        return FailureCause(
            isAttempt ? .attemptTimedOut : .totalTimedOut,
            "the response body (\(outcome.body.count) bytes) was not decoded\(limit) of the start")
    }

    /// Returns the decoder for a body that the session decompresses; nil if nothing is to be decompressed.
    @inline(never)
    func decoder(for head: ResponseHead) -> ContentDecoder? {
        guard decompresses, !isSwitched(head), registry.transport.leavesStreamsCompressed,
            case let codings = head.removableCodings, !codings.isEmpty
        else { return nil }
        // The reader of a live stream limits each of its parts. The whole has no end.
        let isLimited = !request.isLive
        return ContentDecoder(
            codings, host: head.target.host,
            limit: isLimited ? registry.configuration.maximumDecompressedSize : .max,
            ratio: isLimited ? registry.configuration.maximumDecompressionRatio : .max)
    }

    /// Returns the public error of a failed attempt, with the request, the head and the start of the body.
    @inline(never)
    func error(_ failure: FailureCause, _ outcome: AttemptOutcome) -> NetworkError {
        NetworkError(
            failure, request: request, response: outcome.head,
            body: Data(outcome.body.prefix(max(0, registry.configuration.errorBodyLimit))), metrics: outcome.metrics
        ).carrying(registry.configuration.json)
    }

    // MARK: Hooks

    /// Whether the request has neither a body nor an object or code of the caller.
    var hasOnlyValues: Bool { request.body.isNone && !request.hasCallerObjects }

    /// Whether the request can stay on the caller's actor until its value is decoded: nothing takes more than
    /// microseconds, and no code of the caller runs.
    var staysWithCaller: Bool { registry.staysWithCaller && hasOnlyValues }

    /// Whether code of the caller can wait for something that a cancellation of the session's task ends only together
    /// with the Swift task that executes the request: an interceptor or a policy.
    var needsSwiftTask: Bool {
        registry.stages.needsSwiftTask || hasPolicy || request.interceptors.contains { !$0.waitsOnlyInNext }
    }

    /// Whether a policy decides on the heads of responses.
    var hasPolicy: Bool { registry.hasPolicy || request.policy != nil }

    /// The policies of the session and of the request; nil for none.
    var policies: Policies? {
        hasPolicy ? Policies(registry.configuration.policy, request.policy) : nil
    }

    /// The cookies that the request sends and stores; nil for none.
    private var cookieStore: CookieStore? {
        guard let use = request.cookies else { return registry.cookies }
        return use.makeStore()
    }

    /// Stores the cookies of a response. A head without any is not parsed.
    func storeCookies(of head: ResponseHead) {
        guard head.maySetCookies, let cookieStore else { return }
        cookieStore.store(bytes: head.setCookies, from: head.target)
    }

    /// Returns the value of the `Cookie` field with the present cookies, after those that the caller wrote; nil without
    /// cookies of a store.
    func cookieField() -> [UInt8]? {
        guard let cookieStore, !cookieStore.isEmpty else { return nil }
        let own = Array(headers.values(for: "Cookie").joined(separator: "; ").utf8)
        guard
            let cookies = cookieStore.headerBytes(
                for: request.target, method: request.method, redirects: redirectedFrom, taken: own.count)
        else { return nil }
        return own.isEmpty ? cookies : own + "; ".utf8 + cookies
    }

    /// Adds the present cookies.
    private func addCookies(to message: inout WireRequest.Message) {
        guard let field = sessionFields.map(\.cookies) ?? cookieField() else { return }
        if let text = String(validating: field, as: UTF8.self) {
            message.headers["Cookie"] = text
        } else {
            message.headers.remove("Cookie")
            message.rawCookie = field
        }
    }

    // MARK: The wire

    /// Returns the function that receives the head before a body that is collected, or before the end of a task with a
    /// handle; nil for none.
    func headReceiver(of task: TaskRecord) -> (@Sendable (ResponseHead) -> Void)? {
        // With a cache, the head of the wire can differ from that of the response.
        if !hasHandle || registry.hasCache { return attributes.onHead }
        return { @Sendable head in if !head.mayBeFollowed { task.receive(head) } }
    }

    /// Returns the header fields with the present cookies, and, for another protocol, the pipe for its bytes.
    @inline(never)
    func makeMessage() -> WireRequest.Message {
        var message = WireRequest.Message(headers: headers)
        if request.expectsContinue, !request.body.isNone { message.headers["Expect"] = "100-continue" }
        if let upgrade {
            message.headers = message.headers.overriding(with: upgrade.makeFields())
            message.source = .pipe(UploadPipe(capacity: upgrade.pipeCapacity), length: nil)
        }
        addCookies(to: &message)
        return message
    }

    /// Returns the request for the transport.
    // Inlined, so that it is built in its place: it has many fields.
    @inline(__always)
    func makeWireRequest(
        _ message: WireRequest.Message, priority: Request.Priority, timeouts: Timeouts, onNewConnection: Bool = false,
        after delay: Duration = .zero
    ) -> WireRequest {
        WireRequest(
            method: request.method, target: request.target, headers: message.headers, source: message.source,
            rawCookie: message.rawCookie,
            delivery: delivery == .streamed
                ? .streamed : .collected(limit: request.maximumBodySize ?? registry.configuration.maximumBodySize),
            timeouts: timeouts, priority: priority,
            headLimit: registry.configuration.maximumHeadSize,
            decompressionLimit: registry.configuration.maximumDecompressedSize, decompresses: decompresses,
            needsFreshConnection: onNewConnection || attributes.needsNewConnection,
            announcesHead: hasHandle || attributes.onHead != nil, isDecidedAtHead: hasPolicy,
            reportsInterimResponses: !registry.observers.isEmpty || request.onInterimResponse != nil,
            acceptsAnyStatus: hasStatusRules, options: request.options,
            unixSocketPath: request.unixSocketPath ?? registry.configuration.unixSocketPath, upgrade: upgrade,
            startDelay: delay)
    }

    /// Returns the reason why a request cannot be sent; nil if it can. With `isChecked`, the headers are those of the
    /// session, which fit any request (`TaskRegistry.hasValidHeaders`).
    private static func problem(of request: Request, headers: Headers, isChecked: Bool) -> String? {
        guard request.method.isValidToken else { return "the method is not a token (RFC 9110 §9.1)" }
        if !isChecked, let problem = Self.problem(of: request, headers: headers) { return problem }
        if !request.body.isNone, let problem = Self.problem(ofBodyOf: request) { return problem }
        if let problem = request.ownTimeouts?.problem { return problem }
        if request.method == .connect { return "CONNECT is for proxies and cannot be sent as a request" }
        return nil
    }

    /// Returns the reason why a request cannot have its body; nil if it can.
    private static func problem(ofBodyOf request: Request) -> String? {
        if let type = request.body.contentType, let problem = Headers.Field(name: "Content-Type", value: type).problem {
            return problem
        }
        if request.method == .get || request.method == .head || request.method == .trace {
            return "a \(request.method) request cannot have a body (RFC 9110 §9.3)"
        }
        return request.body.problem
    }

    /// Returns the reason why a request cannot have its header fields; nil if it can.
    private static func problem(of request: Request, headers: Headers) -> String? {
        if let problem = problem(of: headers) { return problem }
        if request.body.isNone, let stated = headers.values(for: "Content-Length").first, Int64(stated) != 0 {
            return "Content-Length says \(stated.printable(limit: 80)) bytes and there is no body (RFC 9110 §8.6)"
        }
        if request.body.hasTrailers, headers.contains("Content-Length") {
            return "trailers follow only a body that is sent chunked: leave out Content-Length (RFC 9112 §7.1)"
        }
        return nil
    }

    /// Returns the reason why header fields cannot be sent; nil if they can.
    static func problem(of headers: Headers) -> String? {
        if let problem = headers.firstProblem() { return problem }
        for value in headers.values(for: "Content-Length") where !isLength(value) {
            return "Content-Length is no number of bytes (RFC 9110 §8.6): \(value.printable(limit: 80))"
        }
        if Set(headers.values(for: "Content-Length").map { Int64($0) }).count > 1 {
            return "the request has two different Content-Length fields (RFC 9112 §6.3)"
        }
        if headers.contains("Transfer-Encoding") {
            return "Transfer-Encoding is set by Tern: give the body as a stream without a length"
        }
        return nil
    }

    private static func isLength(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            && Int64(value) != nil
    }

    /// The Content-Length that the caller wrote.
    var statedLength: Int64? { headers.values(for: "Content-Length").first.flatMap { Int64($0) } }
}

extension PreparedRequest: CustomReflectable {
    // Empty. Otherwise, `dump` of every value that refers to this one would show headers and credentials.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension PreparedRequest {
    /// The maximum number of attempts of a request that the server has not processed. Most of them wait until a
    /// connection has room.
    private static let maximumAttempts = 10

    /// Returns the time to wait after a number of refusals before the request is sent again. After the first one, it is
    /// sent at once: most often, it waits for a connection with room. The times double from 50 ms to 2 s, so that a
    /// server which refuses for a moment is not asked ten times within it, and are drawn from their upper half, so that
    /// the requests of a burst part.
    static func delay(afterRefusals refusals: Int) -> Duration {
        guard refusals > 1 else { return .zero }
        let limit = min(2_000, 50 << min(refusals - 2, 10))
        return .milliseconds(Int.random(in: limit / 2...limit))
    }

    /// Returns whether the request can be sent again: after a first attempt on a dead pooled connection if it is
    /// idempotent (RFC 9110 §9.2.2), and after each time that the server stated that it has not processed it. Its body
    /// must be one that can be produced again.
    func canBeSentAgain(after failure: FailureCause, attempt: Int) -> Bool {
        guard request.body.isReplayable else { return false }
        if failure.wasNotProcessed { return attempt < Self.maximumAttempts }
        return failure.isDeadPooledConnection && attempt == 1 && request.method.isIdempotent
    }
}
