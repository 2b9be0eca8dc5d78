#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// Two overloads per verb and no more: one for what is asked for, one for a bare call or an unannotated `let`.

extension Client {
    /// Sends a request of any method and decodes the response.
    ///
    /// - Throws: `NetworkError`; of kind `.status` for a status outside 200–299, with the body's start on it.
    public func send<T: Decodable & Sendable>(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(method, path, query: query, headers: headers, body: body), decode: BodyDecoder<T>.automatic
        ).value
    }

    /// Sends a request of any method and gives the body.
    @discardableResult
    public func send(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none
    ) async throws(NetworkError) -> Data {
        try await session.response(
            for: request(method, path, query: query, headers: headers, body: body), decode: BodyDecoder.data
        ).value
    }

    /// Fetches the head of a path's response alone.
    public func head(
        _ path: String, query: Request.Query = [:], headers: Headers = [:]
    ) async throws(NetworkError) -> ResponseHead {
        try await session.response(for: request(.head, path, query: query, headers: headers)).head
    }

    /// Fetches a path and decodes it.
    public func get<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:],
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(.get, path, query: query, headers: headers), decode: BodyDecoder<T>.automatic
        ).value
    }

    /// Fetches a path and gives its body.
    @discardableResult
    public func get(
        _ path: String, query: Request.Query = [:], headers: Headers = [:]
    ) async throws(NetworkError) -> Data {
        try await session.response(for: request(.get, path, query: query, headers: headers), decode: BodyDecoder.data)
            .value
    }

    /// Sends a POST request to a path, and decodes the response.
    public func post<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(.post, path, query: query, headers: headers, body: body), decode: BodyDecoder<T>.automatic
        ).value
    }

    /// Sends a POST request to a path, and gives the body of the response.
    @discardableResult
    public func post(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none
    ) async throws(NetworkError) -> Data {
        try await session.response(
            for: request(.post, path, query: query, headers: headers, body: body), decode: BodyDecoder.data
        ).value
    }

    /// Sends a PUT request to a path, and decodes the response.
    public func put<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(.put, path, query: query, headers: headers, body: body), decode: BodyDecoder<T>.automatic
        ).value
    }

    /// Sends a PUT request to a path, and gives the body of the response.
    @discardableResult
    public func put(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none
    ) async throws(NetworkError) -> Data {
        try await session.response(
            for: request(.put, path, query: query, headers: headers, body: body), decode: BodyDecoder.data
        ).value
    }

    /// Sends a PATCH request to a path, and decodes the response.
    public func patch<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(.patch, path, query: query, headers: headers, body: body), decode: BodyDecoder<T>.automatic
        ).value
    }

    /// Sends a PATCH request to a path, and gives the body of the response.
    @discardableResult
    public func patch(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none
    ) async throws(NetworkError) -> Data {
        try await session.response(
            for: request(.patch, path, query: query, headers: headers, body: body), decode: BodyDecoder.data
        ).value
    }

    /// Sends a DELETE request to a path, and decodes the response.
    public func delete<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await session.response(
            for: request(.delete, path, query: query, headers: headers, body: body), decode: BodyDecoder<T>.automatic
        ).value
    }

    /// Sends a DELETE request to a path, and gives the body of the response.
    @discardableResult
    public func delete(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none
    ) async throws(NetworkError) -> Data {
        try await session.response(
            for: request(.delete, path, query: query, headers: headers, body: body), decode: BodyDecoder.data
        ).value
    }
}
