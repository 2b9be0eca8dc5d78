#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request that has been checked and joined with the session's configuration: all that can be refused is refused here,
/// before any task exists.
///
/// A reference: it is handed from stage to stage, and a copy of its many fields at each of them showed in profiles.
final class RequestPlan: Sendable {
    enum Delivery {
        case collected
        case streamed
    }

    let request: Request
    let context: SessionContext
    let delivery: Delivery
    /// The task has a handle: it may be paused, and its head is asked for before its end.
    let hasHandle: Bool
    /// The content types that fit what the task gives.
    let fitting: AcceptedTypes
    /// The session's headers and the request's.
    let headers: Headers
    let decompresses: Bool
    /// A Boolean value that indicates whether the request asks for an uncompressed body, because offsets count its
    /// bytes.
    private let asksForIdentity: Bool
    /// The URLs that redirects led here from, oldest first.
    private let redirectedFrom: [Target]
    /// The answer to a challenge of this very request; nil where what is remembered is sent, if anything is.
    let answer: Authorization?

    init(
        _ request: consuming Request, _ context: SessionContext, delivery: Delivery, isPausable: Bool = false,
        fitting: AcceptedTypes = .any
    ) throws(NetworkError) {
        self.fitting = fitting
        self.context = context
        self.delivery = delivery
        hasHandle = isPausable || delivery == .streamed
        decompresses = context.configuration.decompresses
        asksForIdentity = false
        redirectedFrom = []
        answer = nil
        let isPlain = request.headers.isEmpty
        let standard = context.headers.fields(for: request.target)
        let headers = isPlain ? standard : standard.overriding(with: request.headers)
        self.headers = headers
        let problem =
            context.headers.problem
            ?? Self.problem(of: request, headers, isChecked: isPlain && context.hasValidHeaders)
        self.request = request
        if let problem { throw NetworkError(TransferFailure(.invalidRequest, problem), request: self.request) }
    }

    private init(
        _ plan: RequestPlan, _ request: Request, headers: Headers, asksForIdentity: Bool? = nil,
        redirectedFrom: [Target]? = nil, answer: Authorization? = nil
    ) {
        self.redirectedFrom = redirectedFrom ?? plan.redirectedFrom
        self.answer = answer
        self.request = request
        context = plan.context
        delivery = plan.delivery
        fitting = plan.fitting
        hasHandle = plan.hasHandle
        self.headers = headers
        decompresses = plan.decompresses
        self.asksForIdentity = asksForIdentity ?? plan.asksForIdentity
    }

    /// Returns the same request for an uncompressed body. Offsets count bytes as they arrive, and a compressed body has
    /// no offset to continue at. If the server compresses the body anyway, it is decompressed like any other body.
    func askingForIdentity(adding extra: Headers = [:]) -> RequestPlan {
        var headers = headers.overriding(with: extra)
        // Without the field any coding would do (RFC 9110 §12.5.3).
        if !headers.contains("Accept-Encoding") { headers["Accept-Encoding"] = "identity" }
        return RequestPlan(self, request, headers: headers, asksForIdentity: true)
    }

    /// What an interceptor sends in place of the task's request, to be delivered like that one.
    func replacing(_ other: Request) throws(NetworkError) -> RequestPlan {
        let plan = try RequestPlan(other, context, delivery: delivery, isPausable: hasHandle, fitting: fitting)
        return asksForIdentity ? plan.askingForIdentity() : plan
    }

    /// What follows a redirect: its headers are all that is sent, and the session's are not added again.
    func following(_ other: Request) throws(NetworkError) -> RequestPlan {
        if let problem = Self.problem(of: other, other.headers, isChecked: false) {
            throw NetworkError(TransferFailure(.invalidRequest, problem), request: other)
        }
        return RequestPlan(
            self, other, headers: other.headers,
            redirectedFrom: redirectedFrom + [request.target])
    }

    /// The same request with less time: attempts before it have had some of the total.
    func having(spent: Duration) -> RequestPlan {
        var timeouts = request.timeouts ?? context.configuration.timeouts
        guard timeouts.total != nil else { return self }
        timeouts.spent = spent
        var other = request
        other.timeouts = timeouts
        return RequestPlan(self, other, headers: headers, answer: answer)
    }

    /// The same request with another body.
    func sending(_ body: Request.Body) -> RequestPlan {
        var other = request
        other.body = body
        return RequestPlan(self, other, headers: headers)
    }

    /// The same request with the answer to its challenge.
    func answering(_ answer: Authorization) -> RequestPlan {
        RequestPlan(self, request, headers: headers, answer: answer)
    }

    /// Why a response is not what the task wants; nil when it is taken.
    func refusal(of arrival: Arrival) -> TransferFailure? {
        if arrival.isWanted { return nil }
        if arrival.head.status == 206, !headers.contains("Range") {
            let reason = "a part of the content (206) came, and no Range was sent (RFC 9110 §15.3.7)"
            return TransferFailure(.malformedResponse, reason)
        }
        let isEmpty = arrival.outcome?.body.isEmpty ?? (arrival.head.contentLength == 0)
        if let own = request.validation { return own.refusal(of: arrival.head, fitting: fitting, isEmpty: isEmpty) }
        return context.configuration.validation.refusal(of: arrival.head, fitting: fitting, isEmpty: isEmpty)
    }

    func accepts(_ status: Int) -> Bool { (request.validation ?? context.configuration.validation).accepts(status) }

    /// Whether anything stands between the task and the wire.
    var hasInterceptors: Bool {
        context.hasInterceptors || !(request.isPlain || request.interceptors.isEmpty)
    }

    /// A Boolean value that indicates whether a policy decides on the heads of responses.
    private var hasPolicy: Bool { context.hasPolicy || (!request.isPlain && request.policy != nil) }

    /// Those who decide; nil for nobody.
    var policies: Policies? {
        context.hasPolicy || !request.isPlain ? Policies(context.configuration.policy, request.policy) : nil
    }

    /// The cookies that the request sends and stores; nil for none.
    private var cookieStore: CookieStore? {
        guard let use = request.cookies else { return context.cookies }
        return use.makeStore()
    }

    /// Takes in the cookies of an answer. A head without any is not even parsed.
    func storeCookies(of head: ResponseHead) {
        guard head.maySetCookies, let cookieStore else { return }
        cookieStore.store(bytes: head.setCookies, from: head.target)
    }

    /// The cookies are those of the moment, and a field that the caller wrote stands before them.
    private func addCookies(to order: inout TransferOrder) {
        guard let cookieStore, !cookieStore.isEmpty else { return }
        let own = headers["Cookie"].map { Array($0.utf8) } ?? []
        guard
            let cookies = cookieStore.headerBytes(
                for: request.target, method: request.method, redirects: redirectedFrom, taken: own.count)
        else { return }
        let field = own.isEmpty ? cookies : own + "; ".utf8 + cookies
        if let text = String(validating: field, as: UTF8.self) {
            order.headers["Cookie"] = text
        } else {
            order.headers.remove("Cookie")
            order.rawCookie = field
        }
    }

    /// What the transport is asked for, complete but for the body.
    @inline(__always)
    func order(priority: Request.Priority, attempt: Int) -> TransferOrder {
        var order = TransferOrder(
            method: request.method, target: request.target, headers: headers,
            delivery: delivery == .streamed
                ? .streamed : .collected(limit: request.maximumBodySize ?? context.configuration.maximumBodySize),
            timeouts: request.timeouts ?? context.configuration.timeouts,
            headLimit: context.configuration.maximumHeadSize,
            decompressionLimit: context.configuration.maximumDecompressedSize, decompresses: decompresses,
            priority: priority, isPausable: hasHandle, announcesHead: hasHandle, isDecidedAtHead: hasPolicy,
            needsFreshConnection: attempt > 1,
            unixSocketPath: request.unixSocketPath ?? context.configuration.unixSocketPath,
            trust: request.isPlain ? nil : OwnTrust(request.trust))
        addCookies(to: &order)
        return order
    }

    /// `isChecked`: the headers are the session's own, which were looked at once.
    private static func problem(of request: Request, _ headers: Headers, isChecked: Bool) -> String? {
        guard request.method.isValidToken else { return "the method is not a token (RFC 9110 §9.1)" }
        if !isChecked, let problem = Self.problem(of: headers) { return problem }
        if let type = request.body.contentType, let problem = Headers.Field(name: "Content-Type", value: type).problem {
            return problem
        }
        if !request.body.isNone, request.method == .get || request.method == .head || request.method == .trace {
            return "a \(request.method) request cannot have a body (RFC 9110 §9.3)"
        }
        if let problem = request.body.problem { return problem }
        if let problem = request.timeouts?.problem { return problem }
        if request.method == .connect { return "CONNECT is for proxies, and not sent as a request" }
        return nil
    }

    static func problem(of headers: Headers) -> String? {
        if let problem = headers.firstProblem() { return problem }
        if headers.contains("Transfer-Encoding") {
            return "Transfer-Encoding is the engine's to set: give the body as a stream without a length"
        }
        return nil
    }

    /// The Content-Length among the caller's headers, when the body's own length is not known.
    var statedLength: Int64? { headers["Content-Length"].flatMap { Int64($0) } }
}

extension RequestPlan: CustomReflectable {
    // Empty. Otherwise, `dump` of every value that refers to this one would show headers and credentials.
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
