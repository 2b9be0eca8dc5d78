import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request to send. It is a value, created by `Client`'s methods or directly, and validated before a task exists.
///
/// ```swift
/// var request = try Request(.put, "https://api.example.com/v1/users/1")
/// request.headers["If-Match"] = "\"7\""
/// request.body = .json(["name": "Ada"])
/// let response = try await Session.shared.response(for: request)
/// ```
public struct Request: Sendable {
    /// The method. Any token of RFC 9110 is valid.
    public var method: Method
    /// The header fields. The session's default headers are added for names that are missing here.
    public var headers: Headers
    /// The body. None by default.
    public var body: Body
    /// The priority among queued requests. `.normal` by default.
    public var priority: Priority
    package var target: Target
    /// The settings that few requests have; nil for the defaults.
    package private(set) var options: RequestOptions?
}

extension Request {
    package init(_ method: Method, _ target: Target, headers: Headers = [:], body: Body = .none) {
        self.init(method, target, headers: headers, body: body, options: nil)
    }

    /// Creates a request with the settings of a client, which record the headers that the client added.
    ///
    /// The memberwise initializer builds the value in its place. Any other one makes a copy at its end, with a count
    /// for each reference.
    @inline(__always)
    init(_ method: Method, _ target: Target, headers: Headers, body: Body, options: RequestOptions?) {
        self.init(method: method, headers: headers, body: body, priority: .normal, target: target, options: options)
    }

    /// Creates a request to an absolute http or https URL.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the URL cannot be requested.
    public init(_ method: Method = .get, url: URL, headers: Headers = [:], body: Body = .none) throws(NetworkError) {
        do {
            self.init(method, try Target(url), headers: headers, body: body)
        } catch {
            throw NetworkError(.invalidRequest, method: method, reason: error.reason)
        }
    }

    /// Creates a request to an absolute http or https URL. Bytes that a URL cannot contain are percent-encoded (RFC
    /// 3986 §2.1).
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the text is not a URL that can be requested.
    public init(
        _ method: Method = .get, _ url: String, headers: Headers = [:], body: Body = .none
    ) throws(NetworkError) {
        do {
            self.init(method, try Target(absolute: url), headers: headers, body: body)
        } catch {
            throw NetworkError(.invalidRequest, method: method, reason: error.reason)
        }
    }

    /// The absolute URL, without user information and fragment.
    public var url: URL? { target.url }

    /// The part of the URL after `#`. It is never sent, and is kept for callers that show the response.
    public var fragment: String? { target.fragment }

    /// The absolute URL as it is sent, without user information and fragment.
    public var urlString: String { target.string }
}

extension Request {
    /// The position of a request among those that wait for a connection.
    ///
    /// Over HTTP/2, the engine for Linux also tells the server the priority, unless it is `.normal` or the request has
    /// a `Priority` field: `u=0` for `.veryHigh`, `u=1` for `.high`, `u=5` for `.low` and `u=7` for `.veryLow` (RFC
    /// 9218). A server that supports RFC 9218 is told changes, too.
    public enum Priority: Int, Sendable, Hashable, Comparable, CaseIterable {
        /// After all others.
        case veryLow
        /// After normal requests.
        case low
        /// The default.
        case normal
        /// Before normal requests.
        case high
        /// Before all others.
        case veryHigh

        /// Orders priorities from `.veryLow` to `.veryHigh`.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }
}

extension Request {
    /// The owner of the request's own credentials; nil for the session's credentials.
    var credentialOwner: UInt64? { options?.fields.credentialScope }

    /// The headers that a client with a base URL added; nil for none.
    var clientHeaders: ClientHeaders? { options?.fields.clientHeaders }

    mutating func change(_ change: (inout RequestOptions.Fields) -> Void) {
        var fields = options?.fields ?? RequestOptions.Fields()
        change(&fields)
        options = RequestOptions(fields)
    }

    /// The same request without the functions that are called during an attempt. One who keeps the error of a request
    /// can be captured by them, and both would live for ever.
    var withoutCallbacks: Request {
        guard let fields = options?.fields, fields.onQueueChange != nil || fields.onInterimResponse != nil else {
            return self
        }
        var request = self
        request.change { ($0.onQueueChange, $0.onInterimResponse) = (nil, nil) }
        return request
    }

    /// The same request without the sequence of its body.
    var withoutSequence: Request {
        var request = self
        request.body = body.withoutSequence
        return request
    }

    /// Whether the request can hold an object or run code of the caller: interceptors, policies, providers, cookie
    /// stores, functions and user info. Also true for any validation or trust policy of its own, which are not looked into.
    var hasCallerObjects: Bool {
        guard let fields = options?.fields else { return false }
        return !fields.interceptors.isEmpty || fields.policy != nil || fields.onInterimResponse != nil
            || fields.validation != nil || fields.trust != nil || fields.suspendedTrust != nil
            || fields.credentials != nil || fields.cookies != nil || fields.userInfo?.isEmpty == false
    }

    /// The time limits of this request. ``Timeouts/inherited`` by default: those of the session. A single limit can be
    /// changed, as in `request.timeouts.total = .seconds(5)`.
    public var timeouts: Timeouts {
        get { options?.fields.timeouts ?? .inherited }
        set { change { $0.timeouts = newValue } }
    }

    /// The time limits of this request; nil if it has the session's.
    var ownTimeouts: Timeouts? { options?.fields.timeouts }

    /// Returns the limits of this request in a session with these limits.
    package func timeouts(in session: Timeouts) -> Timeouts {
        options?.fields.timeouts?.completed(by: session) ?? session
    }

    /// A name for logs, events and errors. It is never sent.
    public var label: String? {
        get { options?.fields.label }
        set { change { $0.label = newValue } }
    }

    /// The maximum size of a body collected in memory, in bytes after decompression; nil for the session's limit.
    public var maximumBodySize: Int? {
        get { options?.fields.maximumBodySize }
        set { change { $0.maximumBodySize = newValue } }
    }

    /// A Boolean value that indicates whether the body waits until the server agrees to receive it (`Expect:
    /// 100-continue`, RFC 9110 §10.1.1). False by default. Use it for a large body that the server may refuse. Has no
    /// effect without a body, and with an empty one.
    ///
    /// The head is sent first. The body follows when the server answers 100 (Continue), when the head of a final
    /// response with a status below 300 arrives, or after `Timeouts.expectContinue` (1 second by default). If the
    /// server answers with a status of 300 or more before, such as 401 or 413, the body is not sent, and an HTTP/1
    /// connection is closed (RFC 9112 §9.3); over HTTP/2 only the stream ends. A paused or cancelled task sends no
    /// body. A 417 (Expectation Failed) is not delivered if the body can be sent again: the request is sent once more,
    /// without the expectation (RFC 9110 §15.5.18).
    ///
    /// An `Expect: 100-continue` field among the headers has the same effect. Any other expectation is refused with
    /// `.invalidRequest`.
    public var expectsContinue: Bool {
        get { options?.fields.expectsContinue ?? false }
        set { change { $0.expectsContinue = newValue } }
    }

    /// The path of a Unix domain socket to connect to in place of the URL's host and port; nil for that of the session.
    /// A redirect to another origin is refused with `.redirect`.
    public var unixSocketPath: String? {
        get { options?.fields.unixSocketPath }
        set { change { $0.unixSocketPath = newValue } }
    }

    /// The interceptors of this request, outermost first. The session's interceptors surround them.
    public var interceptors: [any Interceptor] {
        get { options?.fields.interceptors ?? [] }
        set { change { $0.interceptors = newValue } }
    }

    /// The cookies that this request sends and stores; nil for the session's. `.separate` creates a store for this
    /// request, which its redirects share.
    public var cookies: CookieUse? {
        get { options?.fields.cookies }
        set {
            // A store of the request's own is created once, not for each of its redirects.
            var use = newValue
            if case .separate? = use { use = .store(CookieStore()) }
            change { $0.cookies = use }
        }
    }

    /// The choice between stored responses and the network, for a session with a cache. ``CacheChoice/useProtocol`` by
    /// default.
    public var cache: CacheChoice {
        get { options?.fields.cache ?? .useProtocol }
        set { change { $0.cache = newValue } }
    }

    /// Whether the response is a stream without an end: the limits on the whole size of a compressed body do not apply,
    /// and over HTTP/1 its connection does not count for `maximumConnectionsPerHost`.
    package var isLive: Bool {
        get { options?.fields.isLive ?? false }
        set { change { $0.isLive = newValue } }
    }

    /// Called when the request begins to wait for a connection that becomes free, and when that ends. It can run on the
    /// event loop, and must not block.
    package var onQueueChange: (@Sendable (_ isQueued: Bool) -> Void)? {
        get { options?.fields.onQueueChange }
        set { change { $0.onQueueChange = newValue } }
    }

    /// Whether the caller sends the request again by itself after a failure, so that `RetryInterceptor` does not.
    package var isRetriedByCaller: Bool {
        get { options?.fields.isRetriedByCaller ?? false }
        set { change { $0.isRetriedByCaller = newValue } }
    }

    /// Whether a server has moved the request to another origin, now or earlier (`move(to:)`).
    var hasLeftOrigin: Bool { options?.fields.hasLeftOrigin ?? false }

    /// The number of bytes of a streamed response that may wait for the reader before the connection is read no
    /// further; nil for 1 MiB. For a reader that must not lose more when its process is killed.
    package var bufferLimit: Int? {
        get { options?.fields.bufferLimit }
        set { change { $0.bufferLimit = newValue } }
    }

    /// The largest number of bytes of a streamed response that are read at once and delivered as one chunk, at most 256
    /// KiB; nil for half of the buffer's limit. With a chunk that is being read, up to `bufferLimit + chunkLimit - 1`
    /// bytes wait for the reader.
    package var chunkLimit: Int? {
        get { options?.fields.chunkLimit }
        set { change { $0.chunkLimit = newValue } }
    }

    /// A function that receives each interim response to the request, as `SessionObserver.didReceive(interim:of:)`
    /// does; nil for none.
    package var onInterimResponse: (@Sendable (ResponseHead) -> Void)? {
        get { options?.fields.onInterimResponse }
        set { change { $0.onInterimResponse = newValue } }
    }

    /// Whether the request has a connection of its own while it runs, and thus speaks HTTP/1 to a server that it
    /// reaches by TLS. A session for HTTP/2 without TLS shares its connection nevertheless.
    package var avoidsHTTP2: Bool {
        get { options?.fields.avoidsHTTP2 ?? false }
        set { change { $0.avoidsHTTP2 = newValue } }
    }

    /// A Boolean value that indicates whether the fields that every request gets are sent: those of
    /// `Session.Configuration.headers`, `Accept`, `Accept-Encoding`, and over HTTP/2 and HTTP/3 the `Content-Length` of
    /// a body whose length is known. True by default.
    ///
    /// With false, the server receives the request's own fields, a `Content-Type` that its body has, cookies,
    /// authorizations, and the fields by which HTTP/1 frames the message. For protocols over HTTP in which each field
    /// has a meaning, such as gRPC. URLSession, on other systems than Linux, adds fields by itself.
    public var sendsDefaultFields: Bool {
        get { options?.fields.sendsDefaultFields ?? true }
        set { change { $0.sendsDefaultFields = newValue } }
    }

    /// The use of HTTP/3 for this request, in place of the session's (`Session.Configuration.http3`); nil for that.
    ///
    /// Applies to the requests that redirects lead to, too. Connections are shared among requests with the same value.
    public var http3: Session.Configuration.HTTP3Use? {
        get { options?.fields.http3 }
        set { change { $0.http3 = newValue } }
    }

    /// The rules by which a response is accepted; nil for the session's rules.
    public var validation: ResponseValidation? {
        get { options?.fields.validation }
        set { change { $0.validation = newValue } }
    }

    /// The redirects that are followed when no policy decides; nil for the choice of the session.
    public var redirects: Session.Configuration.Redirects? {
        get { options?.fields.redirects }
        set { change { $0.redirects = newValue } }
    }

    /// The trust policy of this request, in place of the session's policy for the host; nil for that one. The
    /// connection is not shared with requests of another policy. The policy does not apply to another origin that a
    /// redirect leads to, and applies again if a redirect leads back.
    public var trust: TrustPolicy? {
        get { options?.fields.trust }
        set { change { $0.trust = newValue } }
    }

    /// The trust policy of a request for one origin.
    struct OriginTrust: Sendable {
        let origin: String
        let policy: TrustPolicy
    }

    /// Sets the trust policy that the request has after a redirect from its target. Called before the target changes.
    package mutating func updateTrust(forRedirectTo next: Target) {
        if next.origin == target.origin { return }
        if let trust {
            let suspended = OriginTrust(origin: target.origin, policy: trust)
            change { $0.suspendedTrust = suspended }
        }
        let suspended = options?.fields.suspendedTrust
        let policy = suspended?.origin == next.origin ? suspended?.policy : nil
        if policy != nil || trust != nil { trust = policy }
    }

    /// Changes the target to a URL that a server or a closure of the caller returned. Another origin does not receive
    /// what is meant for the present one, as after a redirect: secrets, the client's own fields, and the trust policy.
    ///
    /// - Throws: An error of kind `.redirect` if the origin changes and the request has a Unix socket of its own.
    package mutating func move(to other: Target) throws(NetworkError) {
        if other.origin != target.origin {
            if unixSocketPath != nil {
                let reason = "\(other) is another origin, and the request has a Unix socket of its own"
                throw NetworkError(FailureCause(.redirect, reason), request: self)
            }
            if let own = clientHeaders, own.origin != other.origin {
                headers = own.removed(from: headers, standard: [:])
            }
            headers.removeFieldsForOneOrigin()
            updateTrust(forRedirectTo: other)
            change { $0.hasLeftOrigin = true }
        }
        target = other
    }

    /// The provider of credentials for this request; nil for the session's provider.
    public var credentials: (any CredentialProvider)? {
        get { options?.fields.credentials }
        set {
            change { fields in
                fields.credentials = newValue
                fields.credentialScope = RequestOptions.nextCredentialScope()
            }
        }
    }

    /// The policy that decides if the session's policy does not; nil by default.
    public var policy: (any SessionPolicy)? {
        get { options?.fields.policy }
        set {
            change { fields in
                fields.policy = newValue
                fields.credentialScope = RequestOptions.nextCredentialScope()
            }
        }
    }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// The method, the URL without user information and query values, and the label.
    public var description: String { description(revealing: .none) }

    /// Returns the text of ``description`` with the revealed values of query parameters.
    public func description(revealing revealed: RevealedValues) -> String {
        let label = label.map { " [\($0.printable())]" } ?? ""
        return "\(method.rawValue.printable(limit: 80)) \(target.description(revealing: revealed))\(label)"
    }

    /// Returns the URL as it is sent, for logs: the values of query parameters are hidden except those that `revealed`
    /// names, and so is the user information unless `revealed` is `.all`.
    ///
    /// - Parameter revealed: The query parameters whose values are shown. None by default.
    public func urlDescription(revealing revealed: RevealedValues = .none) -> String {
        target.description(revealing: revealed)
    }

    /// The method, URL and headers without secrets. Without this mirror, `dump` would show them and the body.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "url": target.description, "headers": headers])
    }
}

extension Request {
    /// The place and the form of a request's parameters.
    public enum ParameterEncoding: Sendable {
        /// Names and values: in the query if the method has no body, otherwise as a form in the body.
        case form(FormEncoder)
        /// JSON, encoded by the session's encoder.
        case json
        /// A property list.
        case propertyList

        /// A form, encoded by the default encoder.
        public static var form: Self { .form(FormEncoder()) }
    }

    /// Sets parameters in the place that fits the method: for GET, HEAD and DELETE in the query, after existing items,
    /// otherwise in the body. The `Content-Type` is set only if the request has none.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the values do not fit into a query. A body is encoded
    ///   when the request is sent.
    public mutating func setParameters(
        _ parameters: some Encodable & Sendable, as encoding: ParameterEncoding = .form
    ) throws(NetworkError) {
        if method == .get || method == .head || method == .delete {
            var encoder = FormEncoder()
            if case .form(let given) = encoding { encoder = given }
            target = target.appending(try Query(encoding: parameters, with: encoder))
            return
        }
        switch encoding {
        case .form(let encoder): body = .form(parameters, encoder: encoder)
        case .json: body = .json(parameters)
        case .propertyList: body = .propertyList(parameters)
        }
    }
}
