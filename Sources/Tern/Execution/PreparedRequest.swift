import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request that has been checked and combined with the session's configuration. Whatever can be refused is refused
/// here, before a task exists.
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
    /// Whether the task has a handle. It can then be paused, and its head can be requested before its end.
    let hasHandle: Bool
    /// The content types that are accepted for the task's value.
    let acceptedTypes: AcceptedTypes
    /// The header fields of the session and of the request.
    let headers: Headers
    let decompresses: Bool
    /// nil for a request with the defaults.
    private let extras: Extras?

    /// The properties that few requests have. A class, so that the others have one empty reference.
    private final class Extras: Sendable {
        let requestsIdentity: Bool
        let redirectedFrom: [Target]
        let challengeAnswer: Authorization?
        let needsNewConnection: Bool
        let isRefresh: Bool
        let upgrade: UpgradeOffer?
        let sessionFields: SessionFields?

        init(
            requestsIdentity: Bool = false, redirectedFrom: [Target] = [], challengeAnswer: Authorization? = nil,
            needsNewConnection: Bool = false, isRefresh: Bool = false, upgrade: UpgradeOffer? = nil,
            sessionFields: SessionFields? = nil
        ) {
            self.requestsIdentity = requestsIdentity
            self.redirectedFrom = redirectedFrom
            self.challengeAnswer = challengeAnswer
            self.needsNewConnection = needsNewConnection
            self.isRefresh = isRefresh
            self.upgrade = upgrade
            self.sessionFields = sessionFields
        }
    }

    /// Whether the request asks for an uncompressed body, because offsets count its bytes.
    private var requestsIdentity: Bool { extras?.requestsIdentity ?? false }
    /// The URLs of the redirects that led here, oldest first.
    var redirectedFrom: [Target] { extras?.redirectedFrom ?? [] }
    /// The answer to a challenge of this request; nil if a remembered authorization is sent, if any.
    var challengeAnswer: Authorization? { extras?.challengeAnswer }
    /// Whether the request answers a challenge. Known without a copy of the answer.
    var answersChallenge: Bool { extras.map { $0.challengeAnswer != nil } ?? false }
    /// Whether the request must not use a pooled connection, because one answered that it does not serve the origin.
    private var needsNewConnection: Bool { extras?.needsNewConnection ?? false }
    /// Whether the request refreshes a stored response in the background.
    var isRefresh: Bool { extras?.isRefresh ?? false }
    /// The protocol that the request asks the server to switch to; nil for none.
    var upgrade: UpgradeOffer? { extras?.upgrade }
    /// The cookies and the authorization to send; nil for those that the session has when the request is sent.
    var sessionFields: SessionFields? { extras?.sessionFields }
    /// Whether the request asks for another protocol.
    var isUpgrade: Bool { extras.map { $0.upgrade != nil } ?? false }

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
        let standard = registry.headers.forEveryOrigin ?? registry.headers.fields(for: request.target)
        let headers = hasNoHeaders ? standard : standard.overriding(with: request.headers)
        let isChecked = hasNoHeaders && registry.hasValidHeaders
        let problem =
            isChecked && upgrade == nil && request.hasNoExtras && request.body.isNone
            ? Self.problem(ofPlain: request.method)
            : registry.headers.problem ?? upgrade?.problem(of: request)
                ?? Self.problem(of: request, headers: headers, isChecked: isChecked)
        if let problem { throw NetworkError(TransferFailure(.invalidRequest, problem), request: request) }
        // Moved, because a copy has many fields.
        self.request = consume request
        self.acceptedTypes = acceptedTypes
        self.registry = registry
        self.delivery = delivery
        self.headers = headers
        hasHandle = isPausable || delivery == .streamed
        decompresses = registry.configuration.decompresses
        extras = upgrade.map { Extras(upgrade: $0) }
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
        extras = nil
    }

    @inline(never)
    private init(
        like other: PreparedRequest, request: Request, headers: Headers, requestsIdentity: Bool? = nil,
        redirectedFrom: [Target]? = nil, challengeAnswer: Authorization? = nil, needsNewConnection: Bool = false,
        isRefresh: Bool? = nil, sessionFields: SessionFields? = nil
    ) {
        extras = Extras(
            requestsIdentity: requestsIdentity ?? other.requestsIdentity,
            redirectedFrom: redirectedFrom ?? other.redirectedFrom, challengeAnswer: challengeAnswer,
            needsNewConnection: needsNewConnection, isRefresh: isRefresh ?? other.isRefresh, upgrade: other.upgrade,
            sessionFields: sessionFields)
        self.request = request
        registry = other.registry
        delivery = other.delivery
        acceptedTypes = other.acceptedTypes
        hasHandle = other.hasHandle
        self.headers = headers
        decompresses = other.decompresses
    }

    // MARK: Requests that take its place

    /// Returns the same request for an uncompressed body. Offsets count bytes as they arrive, and a compressed body has
    /// no offset to continue at. If the server compresses the body anyway, it is decompressed like any other body.
    func requestingIdentity(adding extra: Headers = [:]) -> PreparedRequest {
        var headers = headers.overriding(with: extra)
        // Without the field, every coding is acceptable (RFC 9110 §12.5.3).
        if !headers.contains("Accept-Encoding") { headers["Accept-Encoding"] = "identity" }
        return PreparedRequest(like: self, request: request, headers: headers, requestsIdentity: true)
    }

    /// Checks a request that an interceptor or a policy sends in place of this one. It is delivered like this one.
    func replacing(_ other: Request) throws(NetworkError) -> PreparedRequest {
        let prepared = try PreparedRequest(
            other, registry: registry, delivery: delivery, isPausable: hasHandle, acceptedTypes: acceptedTypes,
            upgrade: upgrade)
        return requestsIdentity ? prepared.requestingIdentity() : prepared
    }

    /// Checks a request that a policy sends in answer to a challenge. After a redirect its headers are complete, and
    /// the session's are not added again: the redirect has removed what is not meant for the present origin.
    func answeringChallenge(with other: Request) throws(NetworkError) -> PreparedRequest {
        if redirectedFrom.isEmpty { return try replacing(other) }
        if let problem = Self.problem(of: other, headers: other.headers, isChecked: false) {
            throw NetworkError(TransferFailure(.invalidRequest, problem), request: other)
        }
        return PreparedRequest(like: self, request: other, headers: other.headers)
    }

    /// Checks a request that follows a redirect. Its headers are complete; the session's are not added again.
    func following(_ other: Request) throws(NetworkError) -> PreparedRequest {
        if let problem = Self.problem(of: other, headers: other.headers, isChecked: false) {
            throw NetworkError(TransferFailure(.invalidRequest, problem), request: other)
        }
        return PreparedRequest(
            like: self, request: other, headers: other.headers, redirectedFrom: redirectedFrom + [request.target])
    }

    /// Returns the same request with less time, because earlier attempts used some of the total limit.
    @inline(never)
    func limitingTotalTime(spent: Duration) -> PreparedRequest {
        var timeouts = request.timeouts(in: registry.configuration.timeouts)
        guard timeouts.total != nil else { return self }
        timeouts.spent = spent
        var other = request
        other.timeouts = timeouts
        return PreparedRequest(
            like: self, request: other, headers: headers, challengeAnswer: challengeAnswer,
            needsNewConnection: needsNewConnection)
    }

    /// The part of the total time limit that was spent before the request, if there is such a limit.
    var timeSpent: Duration { request.timeouts.spent }

    /// Returns the same request with another body.
    func sending(_ body: Request.Body) -> PreparedRequest {
        var other = request
        other.body = body
        return PreparedRequest(like: self, request: other, headers: headers, challengeAnswer: challengeAnswer)
    }

    /// Returns the same request for a new connection.
    func onNewConnection() -> PreparedRequest {
        PreparedRequest(
            like: self, request: request, headers: headers, challengeAnswer: challengeAnswer, needsNewConnection: true)
    }

    /// Returns the same request with fields that replace its own, for one attempt. The final response is that to this
    /// request.
    ///
    /// - Parameter added: The cookies and the authorization to send; nil for those of this request.
    func adding(_ fields: Headers, with added: SessionFields? = nil) -> PreparedRequest {
        PreparedRequest(
            like: self, request: request, headers: headers.overriding(with: fields), challengeAnswer: challengeAnswer,
            needsNewConnection: needsNewConnection, sessionFields: added ?? sessionFields)
    }

    /// Returns the same request as one that refreshes the stored response. It has the choice `revalidate`.
    func refreshing() -> PreparedRequest {
        var other = request
        other.cache = .revalidate
        return PreparedRequest(
            like: self, request: other, headers: headers, challengeAnswer: challengeAnswer, isRefresh: true)
    }

    /// Returns the same request with the answer to its challenge.
    func answering(_ authorization: Authorization) -> PreparedRequest {
        PreparedRequest(like: self, request: request, headers: headers, challengeAnswer: authorization)
    }

    /// Returns the same request without `Expect: 100-continue`; nil if it has no such expectation, or no body.
    func withoutExpectation() -> PreparedRequest? {
        guard !request.body.isNone, request.expectsContinue || headers.contains("Expect") else { return nil }
        var (other, headers) = (request, headers)
        other.expectsContinue = false
        headers.remove("Expect")
        return PreparedRequest(like: self, request: other, headers: headers, challengeAnswer: challengeAnswer)
    }

    // MARK: Responses

    /// Returns the reason why a response is refused; nil if it is accepted.
    func refusal(of response: IncomingResponse) -> TransferFailure? {
        if response.isStoppedRedirect || isSwitched(response.head) { return nil }
        let isEmpty = response.outcome?.body.isEmpty ?? (response.head.contentLength == 0)
        return refusal(of: response.head, isEmpty: isEmpty)
    }

    /// Returns the reason why a response with or without a body is refused; nil if it is accepted.
    func refusal(of head: ResponseHead, isEmpty: Bool) -> TransferFailure? {
        if head.status == 206, !headers.contains("Range") {
            let reason = "a part of the content (206) came, and no Range was sent (RFC 9110 §15.3.7)"
            return TransferFailure(.malformedResponse, reason)
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
    func ignoresBodyFailure(_ failure: TransferFailure, of head: ResponseHead?) -> Bool {
        guard let head, !isSwitched(head) else { return false }
        return switch failure.kind {
        case .tooLarge, .truncatedBody, .malformedResponse: !accepts(head.status)
        default: false
        }
    }

    /// Decodes a collected body.
    func decode<Value: Sendable>(
        _ outcome: TransferOutcome, head: ResponseHead, with decoder: BodyDecoder<Value>
    ) throws(NetworkError) -> Value {
        do {
            guard !decoder.isImmediate, let deadline = decodingDeadline(after: outcome) else {
                return try decoder.decode(outcome.body, head, registry)
            }
            return try DecodingLimit.withDeadline(deadline) { try decoder.decode(outcome.body, head, registry) }
        } catch let problem as NetworkError {
            throw problem
        } catch is DecodingLimit.Passed {
            throw self.error(decodingTimedOut(outcome), outcome)
        } catch is CancellationError where Task.isCancelled {
            throw self.error(.cancelled, outcome)
        } catch {
            let reason =
                "the response body (\(outcome.body.count) bytes) could not be decoded as \(Value.self): "
                + DecodingProblem.text(error)
                + (head.file == nil ? "" : "; a policy made a download of it")
            throw self.error(TransferFailure(.decoding, reason, underlying: error), outcome)
        }
    }

    /// Returns the time at which the total limit ends; nil for no limit.
    @inline(never)
    private func decodingDeadline(after outcome: TransferOutcome) -> UInt64? {
        let timeouts = request.timeouts(in: registry.configuration.timeouts)
        guard let total = timeouts.total else { return nil }
        let spent = timeouts.spent.wholeNanoseconds.addingReportingOverflow(outcome.metrics.activeTime).partialValue
        let left = total.wholeNanoseconds - min(spent, total.wholeNanoseconds)
        let (deadline, overflows) = MonotonicClock.nanoseconds().addingReportingOverflow(left)
        return overflows ? nil : deadline
    }

    @inline(never)
    private func decodingTimedOut(_ outcome: TransferOutcome) -> TransferFailure {
        let limit = request.timeouts(in: registry.configuration.timeouts).total.map { " within \($0)" } ?? " in time"
        return TransferFailure(
            .totalTimedOut, "the response body (\(outcome.body.count) bytes) was not decoded\(limit) of the start")
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
    func error(_ failure: TransferFailure, _ outcome: TransferOutcome) -> NetworkError {
        NetworkError(
            failure, request: request, response: outcome.head,
            body: Data(outcome.body.prefix(max(0, registry.configuration.errorBodyLimit))), metrics: outcome.metrics
        ).carrying(registry.configuration.json)
    }

    // MARK: Hooks

    /// Whether the request has neither a body nor an object or code of the caller.
    var hasOnlyValues: Bool { request.body.isNone && !request.hasCallerObjects }

    /// Whether no code of the caller can run before the head of the final response. False also with a body or a cache.
    var runsNoCallbacks: Bool { registry.isPlain && hasOnlyValues }

    /// Whether interceptors stand between the task and the wire.
    var hasInterceptors: Bool {
        registry.hasInterceptors || !(request.hasNoExtras || request.interceptors.isEmpty)
    }

    /// Whether a policy decides on the heads of responses.
    private var hasPolicy: Bool { registry.hasPolicy || (!request.hasNoExtras && request.policy != nil) }

    /// Whether there can be policies.
    var mayHavePolicies: Bool { registry.hasPolicy || !request.hasNoExtras }

    /// The policies of the session and of the request; nil for none.
    var policies: Policies? {
        mayHavePolicies ? Policies(registry.configuration.policy, request.policy) : nil
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
    private func addCookies(to wire: inout WireRequest) {
        guard let field = sessionFields.map(\.cookies) ?? cookieField() else { return }
        if let text = String(validating: field, as: UTF8.self) {
            wire.headers["Cookie"] = text
        } else {
            wire.headers.remove("Cookie")
            wire.rawCookie = field
        }
    }

    // MARK: The wire

    /// Whether `makePlainWireRequest(priority:onNewConnection:)` returns the whole request: it has no body, no cookies,
    /// no handle and no properties that few requests have.
    var isPlainOnWire: Bool {
        guard extras == nil, !hasHandle, request.hasNoExtras, request.body.isNone else { return false }
        return registry.configuration.unixSocketPath == nil && !registry.hasStoredCookies
    }

    /// Returns the request for the transport, if `isPlainOnWire`.
    @inline(__always)
    func makePlainWireRequest(priority: Request.Priority, onNewConnection: Bool) -> WireRequest {
        WireRequest(
            method: request.method, target: request.target, headers: headers,
            delivery: .collected(limit: registry.configuration.maximumBodySize),
            timeouts: registry.configuration.timeouts, headLimit: registry.configuration.maximumHeadSize,
            decompressionLimit: registry.configuration.maximumDecompressedSize, decompresses: decompresses,
            priority: priority, isDecidedAtHead: registry.hasPolicy, needsFreshConnection: onNewConnection,
            reportsInterimResponses: !registry.observers.isEmpty, acceptsAnyStatus: hasStatusRules)
    }

    /// Returns the request for the transport, complete except for the body.
    func makeWireRequest(priority: Request.Priority, onNewConnection: Bool = false) -> WireRequest {
        var wire = WireRequest(
            method: request.method, target: request.target, headers: headers,
            delivery: delivery == .streamed
                ? .streamed : .collected(limit: request.maximumBodySize ?? registry.configuration.maximumBodySize),
            timeouts: request.timeouts(in: registry.configuration.timeouts),
            headLimit: registry.configuration.maximumHeadSize,
            decompressionLimit: registry.configuration.maximumDecompressedSize, decompresses: decompresses,
            priority: priority, announcesHead: hasHandle, isDecidedAtHead: hasPolicy,
            needsFreshConnection: onNewConnection || needsNewConnection,
            unixSocketPath: request.unixSocketPath ?? registry.configuration.unixSocketPath,
            trust: request.hasNoExtras ? nil : RequestTrust(request.trust), acceptsAnyStatus: hasStatusRules)
        if !request.hasNoExtras {
            if request.expectsContinue, !request.body.isNone { wire.headers["Expect"] = "100-continue" }
            if let limit = request.bufferLimit { wire.bufferLimit = limit }
            if let limit = request.chunkLimit { wire.chunkLimit = limit }
            if request.avoidsHTTP2 { wire.avoidsHTTP2 = true }
            if request.isLive { wire.isLive = true }
            if let onQueueChange = request.onQueueChange { wire.onQueueChange = onQueueChange }
            if request.onInterimResponse != nil { wire.reportsInterimResponses = true }
        }
        if !registry.observers.isEmpty { wire.reportsInterimResponses = true }
        if let upgrade {
            wire.upgrade = upgrade.name
            wire.upgradeLimit = upgrade.messageLimit
            wire.headers = wire.headers.overriding(with: upgrade.makeFields())
            wire.source = .pipe(UploadPipe(capacity: upgrade.pipeCapacity), length: nil)
        }
        addCookies(to: &wire)
        return wire
    }

    /// Returns the reason why a request without a body, and with the headers and the limits of its session, cannot be
    /// sent; nil if it can.
    private static func problem(ofPlain method: Request.Method) -> String? {
        // GET first: two equal short strings are compared as integers.
        if method == .get { return nil }
        guard method.isValidToken else { return "the method is not a token (RFC 9110 §9.1)" }
        if method == .connect { return "CONNECT is for proxies and cannot be sent as a request" }
        return nil
    }

    /// Returns the reason why a request cannot be sent; nil if it can. With `isChecked`, the headers are those of the
    /// session, which were checked before.
    private static func problem(of request: Request, headers: Headers, isChecked: Bool) -> String? {
        guard request.method.isValidToken else { return "the method is not a token (RFC 9110 §9.1)" }
        if !isChecked, let problem = Self.problem(of: headers) { return problem }
        if let type = request.body.contentType, let problem = Headers.Field(name: "Content-Type", value: type).problem {
            return problem
        }
        if !request.body.isNone, request.method == .get || request.method == .head || request.method == .trace {
            return "a \(request.method) request cannot have a body (RFC 9110 §9.3)"
        }
        if let problem = request.body.problem { return problem }
        if request.body.isNone, let stated = headers.values(for: "Content-Length").first, Int64(stated) != 0 {
            return "Content-Length says \(stated.printable(limit: 80)) bytes and there is no body (RFC 9110 §8.6)"
        }
        if request.body.hasTrailers, headers.contains("Content-Length") {
            return "trailers follow only a body that is sent chunked: leave out Content-Length (RFC 9112 §7.1)"
        }
        if let problem = request.timeouts.problem { return problem }
        if request.method == .connect { return "CONNECT is for proxies and cannot be sent as a request" }
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
    /// The number of times that a request is sent at most which the server has not processed. Most often, it waits
    /// before it is sent again, until a connection has room.
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

    /// Returns whether the request can be sent again: once after a dead pooled connection if it is idempotent (RFC 9110
    /// §9.2.2), and after each time that the server stated that it has not processed it. Its body must be one that can
    /// be produced again.
    func canBeSentAgain(after failure: TransferFailure, attempt: Int) -> Bool {
        guard request.body.isReplayable else { return false }
        if failure.wasNotProcessed { return attempt < Self.maximumAttempts }
        return failure.isDeadPooledConnection && attempt == 1 && request.method.isIdempotent
    }
}
