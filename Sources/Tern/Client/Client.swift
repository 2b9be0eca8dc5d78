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
    /// Sent with every request of this client, over the session's own; a call's headers come before both.
    public var headers: Headers
    private let base: Result<BaseURL, NetworkError>?

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
            return Request(method, target, headers: combined(headers), body: body)
        } catch let problem as Target.Problem {
            throw NetworkError(.invalidRequest, method: method, reason: problem.reason)
        } catch let error as NetworkError {
            throw error
        } catch {
            throw NetworkError(.invalidRequest, method: method, reason: "\(error)")
        }
    }

    private func combined(_ headers: Headers) -> Headers {
        if headers.isEmpty { return self.headers }
        return self.headers.isEmpty ? headers : self.headers.overriding(with: headers)
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
