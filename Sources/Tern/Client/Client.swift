#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sends requests over a session with one function per HTTP method, a base URL and common headers.
///
/// ```swift
/// let client = try Client(baseURL: "https://api.example.com/v1")
/// let user: User = try await client.get("users/1")
/// let page = try await client.get("users", query: ["page": 2], as: [User].self)
/// let made: User = try await client.post("users", body: .json(draft))
/// try await client.delete("users/1")
/// let names: [String] = try await client.get("names") { $0.timeouts.total = .seconds(5) }
/// ```
///
/// A client is a small value: a thousand clients add no thread and no connection. Every verb has two forms, one for a
/// `Decodable` type (also `Data`, `String`, `NoContent` and optionals) and one that returns `Data`.
/// Cancelling the calling Swift task cancels the transfer. Decoding runs off the caller's actor.
public struct Client: Sendable {
    /// The session that sends the requests.
    public let session: Session
    /// The headers of this client's requests. They replace the session's, and the headers of a call replace both.
    ///
    /// A path can be a whole URL or begin with `//host`, and a redirect can lead to any host. If the client has a base
    /// URL, these headers are therefore sent only to the origin of the base URL, unless ``sendsHeadersToOtherOrigins``
    /// is true. Without a base URL, the headers are sent to every host that a path names. Headers given in a call are
    /// sent to the URL of that call.
    public var headers: Headers {
        didSet { updateMarkedHeaders() }
    }
    /// A Boolean value that indicates whether the headers of a client with a base URL are also sent to other origins,
    /// when a path names one or a redirect leads there. False by default.
    ///
    /// `Authorization`, `Proxy-Authorization` and `Cookie` are never sent to other origins, and a header that holds a
    /// secret never follows a redirect to another origin.
    public var sendsHeadersToOtherOrigins = false {
        didSet { updateMarkedHeaders() }
    }
    private let base: Result<BaseURL, NetworkError>?
    /// The authority of the base URL; nil without a usable one.
    private let baseAuthority: Target.Authority?
    /// Marks the headers that came from this client, so that a redirect to another origin can remove them; nil when
    /// they can follow every redirect.
    private var markedHeaders: RequestOptions?

    /// Creates a client that resolves paths against a base URL. Without one, every path must be an absolute URL.
    ///
    /// A base URL with a non-empty path counts as a folder: `users/1` under `https://host/v1` is
    /// `https://host/v1/users/1`, `/users/1` is `https://host/users/1`, and an absolute URL stays as it is (RFC 3986
    /// §5.2). With a base that is not an http or https URL, every call fails with `.invalidRequest`.
    public init(baseURL: URL? = nil, session: Session = .shared, headers: Headers = [:]) {
        self.session = session
        self.headers = headers
        base = baseURL.map { url in
            do throws(Target.Problem) {
                return .success(try BaseURL(url))
            } catch {
                return .failure(NetworkError(.invalidRequest, reason: "the base URL: \(error.reason)"))
            }
        }
        baseAuthority = if case .success(let base) = base { base.root.authority } else { nil }
        updateMarkedHeaders()
    }

    /// Creates a client like `init(baseURL:session:headers:)`, from the text of a base URL.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` if the text is not an http or https URL.
    public init(baseURL: String, session: Session = .shared, headers: Headers = [:]) throws(NetworkError) {
        self.session = session
        self.headers = headers
        do {
            let base = try BaseURL(absolute: baseURL)
            self.base = .success(base)
            baseAuthority = base.root.authority
        } catch {
            throw NetworkError(.invalidRequest, reason: "the base URL: \(error.reason)")
        }
        updateMarkedHeaders()
    }

    /// Creates a client with a session of its own that has these interceptors, outermost first.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` if the text is not an http or https URL.
    public init(
        baseURL: String, interceptors: [any Interceptor], headers: Headers = [:]
    ) throws(NetworkError) {
        try self.init(baseURL: baseURL, session: Session(interceptors: interceptors), headers: headers)
    }

    /// Creates a client like `init(baseURL:session:headers:)`, with a session of its own that has these interceptors,
    /// outermost first.
    public init(baseURL: URL, interceptors: [any Interceptor], headers: Headers = [:]) {
        self.init(baseURL: baseURL, session: Session(interceptors: interceptors), headers: headers)
    }

    /// The base URL, with a slash at its end and without user information; nil if the client has none, or if it cannot be
    /// requested: each call then fails with `.invalidRequest`, unless its path is a whole URL and the client has no base.
    public var baseURL: URL? { if case .success(let base) = base { base.root.url } else { nil } }

    private mutating func updateMarkedHeaders() {
        guard case .success(let base) = base, !headers.isEmpty, !sendsHeadersToOtherOrigins else {
            markedHeaders = nil
            return
        }
        markedHeaders = RequestOptions(ClientHeaders(fields: headers, origin: base.root.origin))
    }

    /// Returns the request that a verb sends, changed by `configure`.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` if path and base URL do not form a URL that can be requested.
    public func request(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, configure: Request.Change = { _ in }
    ) throws(NetworkError) -> Request {
        var target = try self.target(path, method)
        if !query.isEmpty { target = target.appending(query) }
        let isOwn = isOwnOrigin(target)
        let own = isOwn ? self.headers : sendsHeadersToOtherOrigins ? ClientHeaders.unbound(self.headers) : [:]
        // Created once, because a copy has many fields.
        var request = Request(
            method, consume target, headers: combined(own, headers), body: body,
            options: isOwn ? markedHeaders : nil)
        try configure(&request)
        return request
    }

    /// Returns the absolute URL that the verbs send a request for a path to, as for a `TransferQueue` or an
    /// `ImageRequest`.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` if path and base URL do not form a URL that can be requested.
    public func url(_ path: String, query: Request.Query = [:]) throws(NetworkError) -> URL {
        let target = try self.target(path, .get)
        guard let url = (query.isEmpty ? target : target.appending(query)).url else {
            throw NetworkError(.invalidRequest, reason: "Foundation cannot represent the URL of the path")
        }
        return url
    }

    /// Returns whether the client's headers can be sent to a URL: the client has no base URL, or the URL has the same
    /// origin.
    private func isOwnOrigin(_ target: Target) -> Bool {
        guard let baseAuthority else { return true }
        return baseAuthority === target.authority || baseAuthority.origin == target.origin
    }

    private func combined(_ own: Headers, _ headers: Headers) -> Headers {
        if headers.isEmpty { return own }
        return own.isEmpty ? headers : own.overriding(with: headers)
    }

    private func target(_ path: String, _ method: Request.Method) throws(NetworkError) -> Target {
        let failure: NetworkError
        do throws(Target.Problem) {
            if case .success(let base) = base { return try base.resolve(path) }
            guard case .failure(let error) = base else { return try Target(absolute: path) }
            failure = error
        } catch {
            failure = NetworkError(.invalidRequest, method: method, reason: error.reason)
        }
        throw failure
    }

    /// Sends a request and returns its response with status, headers, body and metrics.
    public func response(for request: Request) async throws(NetworkError) -> Response<Data> {
        try await session.response(for: request)
    }

    /// Sends a request and returns its response with a decoded value.
    public func response<T: Decodable & Sendable>(
        for request: Request, as type: T.Type
    ) async throws(NetworkError) -> Response<T> {
        try await session.response(for: request, decode: .automatic)
    }
}

extension Client: CustomStringConvertible, CustomReflectable {
    /// The base URL, without user information.
    public var description: String {
        switch base {
        case .success(let base): "client of \(base.root)"
        case .failure(let error): "client without a usable base URL: \(error.reason)"
        case nil: "client with no base URL"
        }
    }

    /// The headers without secrets. Without this mirror, `dump` would show those of the session as well.
    public var customMirror: Mirror { Mirror(self, children: ["headers": headers]) }
}

extension Request {
    /// Changes a request of a client before it is sent, as in `client.get("list") { $0.label = "list" }`. An error
    /// fails the call.
    public typealias Change = (inout Request) throws(NetworkError) -> Void

    /// Returns a path of these segments, for the functions of a client: each segment is percent-encoded as a whole, so
    /// that `/`, `?` and `#` in a name stay in it. An empty last segment ends the path with `/`.
    ///
    /// ```swift
    /// try await client.delete(Request.path(["files", name]))
    /// ```
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` for a segment `.` or `..`, with which a name would lead to
    ///   another folder (RFC 3986 §5.2.4), and for an empty segment before the last.
    public static func path(_ segments: [String]) throws(NetworkError) -> String {
        var bytes: [UInt8] = []
        for (index, segment) in segments.enumerated() {
            if segment == "." || segment == ".." {
                throw NetworkError(.invalidRequest, reason: "the path segment \"\(segment)\" names another folder")
            }
            if segment.isEmpty, index < segments.count - 1 || index == 0 {
                throw NetworkError(.invalidRequest, reason: "the path has an empty segment")
            }
            if index > 0 { bytes.append(UInt8(ascii: "/")) }
            for byte in segment.utf8 {
                if ByteSet.unreserved.contains(byte) { bytes.append(byte) } else { bytes.appendPercentEncoded(byte) }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
