#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// Each verb has two overloads: one decodes a `Decodable` type, and one returns `Data`, for calls that do not state a
// type. `configure` changes the request before it is sent.

extension Client {
    /// Sends a request of any method and decodes the response.
    ///
    /// - Throws: `NetworkError`; of kind `.status` for a status outside 200–299, with the start of the body.
    public func send<T: Decodable & Sendable>(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(method, path, query: query, headers: headers, body: body, configure: configure),
            decode: BodyDecoder<T>.automatic
        ).takeValue()
    }

    /// Sends a request of any method and returns the body.
    @discardableResult
    public func send(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await session.response(
            for: request(method, path, query: query, headers: headers, body: body, configure: configure),
            decode: BodyDecoder.data
        ).takeValue()
    }

    /// Sends a HEAD request to a path, and returns the head of the response.
    public func head(
        _ path: String, query: Request.Query = [:], headers: Headers = [:],
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> ResponseHead {
        try await session.response(for: request(.head, path, query: query, headers: headers, configure: configure)).head
    }

    /// Sends a GET request to a path, and decodes the response.
    public func get<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(.get, path, query: query, headers: headers, as: type, configure: configure)
    }

    /// Sends a GET request to a path, and returns the body of the response.
    @discardableResult
    public func get(
        _ path: String, query: Request.Query = [:], headers: Headers = [:],
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(.get, path, query: query, headers: headers, configure: configure)
    }

    /// Sends a GET request to a path, and decodes the response; nil if there is no such resource (404, 410).
    ///
    /// ```swift
    /// let user: User? = try await client.getIfPresent("users/42")
    /// ```
    public func getIfPresent<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T? {
        do throws(NetworkError) {
            return try await get(path, query: query, headers: headers, as: type, configure: configure)
        } catch {
            if error.isNotFound { return nil }
            throw error
        }
    }

    /// Sends a POST request to a path, and decodes the response.
    public func post<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(.post, path, query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a POST request to a path, and returns the body of the response.
    @discardableResult
    public func post(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(.post, path, query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a PUT request to a path, and decodes the response.
    public func put<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(.put, path, query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a PUT request to a path, and returns the body of the response.
    @discardableResult
    public func put(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(.put, path, query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a PATCH request to a path, and decodes the response.
    public func patch<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(.patch, path, query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a PATCH request to a path, and returns the body of the response.
    @discardableResult
    public func patch(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(.patch, path, query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a DELETE request to a path, and decodes the response.
    public func delete<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(.delete, path, query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a DELETE request to a path, and returns the body of the response.
    @discardableResult
    public func delete(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(.delete, path, query: query, headers: headers, body: body, configure: configure)
    }
}

// GET requests to a URL, and to a path of segments.

extension Client {
    /// Sends a GET request to a URL, and decodes the response.
    public func get<T: Decodable & Sendable>(
        _ url: URL, query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await get(url.absoluteString, query: query, headers: headers, as: type, configure: configure)
    }

    /// Sends a GET request to a URL, and returns the body of the response.
    @discardableResult
    public func get(
        _ url: URL, query: Request.Query = [:], headers: Headers = [:], configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await get(url.absoluteString, query: query, headers: headers, configure: configure)
    }

    /// Sends a GET request to a path of segments, each of which is percent-encoded (``Request/path(_:)``), and decodes
    /// the response.
    public func get<T: Decodable & Sendable>(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await get(Request.path(segments), query: query, headers: headers, as: type, configure: configure)
    }

    /// Sends a GET request to a path of segments, each of which is percent-encoded (``Request/path(_:)``), and returns
    /// the body of the response.
    @discardableResult
    public func get(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:],
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await get(Request.path(segments), query: query, headers: headers, configure: configure)
    }
}

// The other methods with a path of segments.

extension Client {
    /// Returns the request that a verb sends to a path of segments, each of which is percent-encoded
    /// (``Request/path(_:)``), changed by `configure`.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` if a segment is `.` or `..`, or is empty before the last.
    public func request(
        _ method: Request.Method, path segments: [String], query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, configure: Request.Change = { _ in }
    ) throws(NetworkError) -> Request {
        try request(
            method, Request.path(segments), query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a HEAD request to a path of segments (``Request/path(_:)``), and returns the head of the response.
    public func head(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:],
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> ResponseHead {
        try await head(Request.path(segments), query: query, headers: headers, configure: configure)
    }

    /// Sends a POST request to a path of segments (``Request/path(_:)``), and decodes the response.
    public func post<T: Decodable & Sendable>(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self, configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(
            .post, Request.path(segments), query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a POST request to a path of segments (``Request/path(_:)``), and returns the body of the response.
    @discardableResult
    public func post(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(
            .post, Request.path(segments), query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a PUT request to a path of segments (``Request/path(_:)``), and decodes the response.
    public func put<T: Decodable & Sendable>(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self, configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(
            .put, Request.path(segments), query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a PUT request to a path of segments (``Request/path(_:)``), and returns the body of the response.
    @discardableResult
    public func put(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(
            .put, Request.path(segments), query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a PATCH request to a path of segments (``Request/path(_:)``), and decodes the response.
    public func patch<T: Decodable & Sendable>(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self, configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(
            .patch, Request.path(segments), query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a PATCH request to a path of segments (``Request/path(_:)``), and returns the body of the response.
    @discardableResult
    public func patch(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(
            .patch, Request.path(segments), query: query, headers: headers, body: body, configure: configure)
    }

    /// Sends a DELETE request to a path of segments (``Request/path(_:)``), and decodes the response.
    public func delete<T: Decodable & Sendable>(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self, configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(
            .delete, Request.path(segments), query: query, headers: headers, body: body, as: type, configure: configure)
    }

    /// Sends a DELETE request to a path of segments (``Request/path(_:)``), and returns the body of the response.
    @discardableResult
    public func delete(
        path segments: [String], query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(
            .delete, Request.path(segments), query: query, headers: headers, body: body, configure: configure)
    }
}
