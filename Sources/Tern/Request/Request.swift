import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What is to be sent: a value, made by `Client`'s verbs or by hand, and checked before any task exists.
///
/// ```swift
/// var request = try Request(.put, "https://api.example.com/v1/users/1")
/// request.headers["If-Match"] = "\"7\""
/// request.body = .json(["name": "Ada"])
/// let response = try await Session.shared.response(for: request)
/// ```
public struct Request: Sendable {
    /// The method; any RFC 9110 token.
    public var method: Method
    /// The fields of the head. The session's default headers are added where a name is missing here.
    public var headers: Headers
    /// The body; none by default.
    public var body: Body
    /// The place among what is still queued; `.normal` by default.
    public var priority: Priority
    package var target: Target
    /// What few requests have.
    private var extras: Extras?

    package init(_ method: Method, _ target: Target, headers: Headers = [:], body: Body = .none) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        priority = .normal
    }

    /// Creates a request of a client. `origin` says which of its headers the client added.
    init(_ method: Method, _ target: Target, headers: Headers, body: Body, origin: Extras?) {
        self.init(method, target, headers: headers, body: body)
        extras = origin
    }

    /// A request to an absolute http or https URL.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the URL is not one that can be requested.
    public init(_ method: Method = .get, url: URL, headers: Headers = [:], body: Body = .none) throws(NetworkError) {
        do {
            self.init(method, try Target(url), headers: headers, body: body)
        } catch {
            throw NetworkError(.invalidRequest, method: method, reason: error.reason)
        }
    }

    /// A request to an absolute http or https URL. Bytes that a URL cannot hold are percent-encoded (RFC 3986 §2.1).
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

    /// What stood behind the `#` of the URL; never sent, and kept for who shows the response.
    public var fragment: String? { target.fragment }

    /// The absolute URL as it is sent, without user information and fragment.
    public var urlString: String { target.string }
}

extension Request {
    /// The place of a request among those that wait for a connection.
    public enum Priority: Int, Sendable, Hashable, Comparable, CaseIterable {
        /// Behind all others.
        case veryLow
        /// Behind the ordinary ones.
        case low
        /// The default.
        case normal
        /// Before the ordinary ones.
        case high
        /// Before all others.
        case veryHigh

        /// Orders by urgency: `.veryLow` is the least.
        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }
}

extension Request {
    // Behind one word: a request is copied on its way, and each field of its own would be counted up and down every time.
    final class Extras: Sendable {
        fileprivate struct Fields: Sendable {
            var timeouts: Timeouts?
            var label: String?
            var maximumBodySize: Int?
            var unixSocketPath: String?
            var interceptors: [any Interceptor] = []
            var policy: (any SessionPolicy)?
            var cookies: CookieUse?
            var validation: ResponseValidation?
            var trust: TrustPolicy?
            var credentials: (any CredentialProvider)?
            /// Tells apart whose provider and policy they are: what was let in with one is never sent for another.
            var owner: UInt64?
            /// The headers that the client added.
            var clientHeaders: ClientHeaders?
        }

        fileprivate let fields: Fields
        /// A Boolean value that indicates whether only the origin of the headers is set.
        fileprivate let isPlain: Bool

        fileprivate init(_ fields: Fields) {
            self.fields = fields
            isPlain = false
        }

        /// Creates the value that all requests of a client share.
        init(_ headers: ClientHeaders) {
            var fields = Fields()
            fields.clientHeaders = headers
            self.fields = fields
            isPlain = true
        }

        private static let lastOwner = Atomic<UInt64>(0)

        fileprivate static func nextOwner() -> UInt64 { lastOwner.wrappingAdd(1, ordering: .relaxed).newValue }
    }

    /// Of whom this request's credentials are; nil for the session.
    var credentialOwner: UInt64? { extras?.fields.owner }

    /// The headers that a client with a base URL added; nil for none.
    var clientHeaders: ClientHeaders? { extras?.fields.clientHeaders }

    private mutating func change(_ change: (inout Extras.Fields) -> Void) {
        var fields = extras?.fields ?? Extras.Fields()
        change(&fields)
        extras = Extras(fields)
    }

    /// Whether the request has nothing but method, URL, headers, body and priority.
    var isPlain: Bool { extras?.isPlain ?? true }

    /// The time limits of this request; nil for the session's.
    public var timeouts: Timeouts? {
        get { extras?.fields.timeouts }
        set { change { $0.timeouts = newValue } }
    }

    /// A name for logs, events and errors; it is never sent.
    public var label: String? {
        get { extras?.fields.label }
        set { change { $0.label = newValue } }
    }

    /// Bytes that a body collected in memory may have, after decompression; nil for the session's limit.
    public var maximumBodySize: Int? {
        get { extras?.fields.maximumBodySize }
        set { change { $0.maximumBodySize = newValue } }
    }

    /// The path of a Unix domain socket to connect to in place of the URL's host and port; nil for the session's.
    public var unixSocketPath: String? {
        get { extras?.fields.unixSocketPath }
        set { change { $0.unixSocketPath = newValue } }
    }

    /// What stands between this request and the wire, within the session's interceptors; outermost first.
    public var interceptors: [any Interceptor] {
        get { extras?.fields.interceptors ?? [] }
        set { change { $0.interceptors = newValue } }
    }

    /// Which cookies this request sends and stores; nil for the session's. `.separate` is a store of this request's own,
    /// which its redirects share.
    public var cookies: CookieUse? {
        get { extras?.fields.cookies }
        set {
            // A store of the request's own is made once, and not for each of its redirects.
            var use = newValue
            if case .separate? = use { use = .store(CookieStore()) }
            change { $0.cookies = use }
        }
    }

    /// What the response must be to be taken; nil for the session's rules.
    public var validation: ResponseValidation? {
        get { extras?.fields.validation }
        set { change { $0.validation = newValue } }
    }

    /// Whom this request's connection may be made with, in place of the session's policy for the host; nil for that one. The
    /// connection is not shared with requests of another policy, and a redirect to another origin leaves it behind.
    public var trust: TrustPolicy? {
        get { extras?.fields.trust }
        set { change { $0.trust = newValue } }
    }

    /// Who has the credentials for this request; nil for the session's provider.
    public var credentials: (any CredentialProvider)? {
        get { extras?.fields.credentials }
        set {
            change { fields in
                fields.credentials = newValue
                fields.owner = Extras.nextOwner()
            }
        }
    }

    /// Decides where the session's policy has no opinion; nil by default.
    public var policy: (any SessionPolicy)? {
        get { extras?.fields.policy }
        set {
            change { fields in
                fields.policy = newValue
                fields.owner = Extras.nextOwner()
            }
        }
    }
}

extension Request: CustomStringConvertible, CustomReflectable {
    /// Method and URL; user information and the values of the query are left out.
    public var description: String { "\(method) \(target)" }

    /// Method, URL and headers without what is secret in them: `dump` would show that, and the body.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "url": target.description, "headers": headers])
    }
}
