#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What people type: verbs over a session, with a base URL and headers of its own.
///
/// ```swift
/// let client = try Client(baseURL: "https://api.example.com/v1")
/// let user: User = try await client.get("users/1")
/// let page = try await client.get("users", query: ["page": 2], as: [User].self)
/// let made: User = try await client.post("users", body: .json(draft))
/// try await client.delete("users/1")
/// ```
///
/// A small value: a thousand clients add no thread and no connection. Every verb has two forms, one for a `Decodable` type
/// (`Data`, `String`, `NoContent` and optionals of anything are taken as body types) and one that gives `Data`.
/// Cancelling the calling Swift task cancels the transfer. Decoding runs off the caller's actor.
public struct Client: Sendable {
    /// The session that does the work.
    public let session: Session
    /// Sent with the requests of this client, over the session's own; a call's headers come before both.
    ///
    /// A path can be a whole URL or begin with `//host`, and a redirect can lead to any host. If the client has a base
    /// URL, these headers are therefore sent only to the origin of the base URL, unless ``sendsHeadersToOtherOrigins``
    /// is true. Without a base URL, the headers are sent to every host that a path names. Headers given in a call are
    /// sent to the URL of that call.
    public var headers: Headers {
        didSet { mark() }
    }
    /// A Boolean value that indicates whether the headers of a client with a base URL are also sent to other origins,
    /// when a path names one or a redirect leads there. False by default.
    ///
    /// `Authorization`, `Proxy-Authorization` and `Cookie` are never sent to other origins, and a header that holds a
    /// secret never follows a redirect to another origin.
    public var sendsHeadersToOtherOrigins = false {
        didSet { mark() }
    }
    private let base: Result<BaseURL, NetworkError>?
    /// Marks the headers that came from this client, so that a redirect to another origin can remove them; nil when
    /// they can follow every redirect.
    private var origin: Request.Extras?

    /// A client whose paths are joined to a base URL; without one every path must be an absolute URL.
    ///
    /// A base URL with a non-empty path counts as a folder: `users/1` under `https://host/v1` is
    /// `https://host/v1/users/1`, `/users/1` is `https://host/users/1`, and an absolute URL stands for itself (RFC 3986
    /// §5.2). A base that is no http or https URL makes every call fail with `.invalidRequest`.
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
        mark()
    }

    /// Like `init(baseURL:session:headers:)`, with the base URL as text.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when the text is no http or https URL.
    public init(baseURL: String, session: Session = .shared, headers: Headers = [:]) throws(NetworkError) {
        self.session = session
        self.headers = headers
        do {
            base = .success(try BaseURL(absolute: baseURL))
        } catch {
            throw NetworkError(.invalidRequest, reason: "the base URL: \(error.reason)")
        }
        mark()
    }

    private mutating func mark() {
        guard case .success(let base) = base, !headers.isEmpty, !sendsHeadersToOtherOrigins else {
            origin = nil
            return
        }
        origin = Request.Extras(ClientHeaders(fields: headers, origin: base.root.origin))
    }

    /// The request that a verb sends.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` when path and base URL give no URL that can be requested.
    public func request(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none
    ) throws(NetworkError) -> Request {
        do {
            var target = try self.target(path)
            if !query.isEmpty { target = target.appending(query) }
            if isHome(target) {
                return Request(method, target, headers: combined(self.headers, headers), body: body, origin: origin)
            }
            let own = sendsHeadersToOtherOrigins ? ClientHeaders.unbound(self.headers) : [:]
            return Request(method, target, headers: combined(own, headers), body: body)
        } catch let problem as Target.Problem {
            throw NetworkError(.invalidRequest, method: method, reason: problem.reason)
        } catch let error as NetworkError {
            throw error
        } catch {
            throw NetworkError(.invalidRequest, method: method, reason: "\(error)")
        }
    }

    /// Returns whether the client's headers can be sent to a URL: the client has no base URL, or the URL has the same
    /// origin.
    private func isHome(_ target: Target) -> Bool {
        guard case .success(let base) = base else { return true }
        return base.root.authority === target.authority || base.root.origin == target.origin
    }

    private func combined(_ own: Headers, _ headers: Headers) -> Headers {
        if headers.isEmpty { return own }
        return own.isEmpty ? headers : own.overriding(with: headers)
    }

    private func target(_ path: String) throws -> Target {
        switch base {
        case .success(let base): try base.resolve(path)
        case .failure(let error): throw error
        case nil: try Target(absolute: path)
        }
    }

    /// Sends a request and collects its response: status, headers, body and metrics.
    public func response(for request: Request) async throws(NetworkError) -> Response<Data> {
        try await session.response(for: request)
    }

    /// Sends a request and gives its response with a decoded value.
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

    /// ``description`` and the headers without what is secret in them: `dump` would show the session's as well.
    public var customMirror: Mirror { Mirror(self, children: ["headers": headers]) }
}
