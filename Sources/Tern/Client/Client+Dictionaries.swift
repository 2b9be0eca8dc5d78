#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// The verbs with the query items or header fields of a variable that is no `Request.Query` or `Headers`: a dictionary,
// `KeyValuePairs`, or an array of `URLQueryItem`. A literal is always a `Request.Query` or `Headers`, whose order and
// mixed types it keeps: these forms are disfavored.

/// A type whose values the verbs of a client take as a query: `Request.Query`, dictionaries and `KeyValuePairs` of
/// text, numbers and Booleans, and `[URLQueryItem]`. Your own types can conform.
///
/// ```swift
/// let filters: [String: String] = ["state": "open"]
/// let issues: [Issue] = try await client.get("issues", query: filters)
/// ```
public protocol QueryConvertible {
    /// The query items in the order in which they are sent.
    var requestQuery: Request.Query { get }
}

/// A type whose values the verbs of a client take as header fields: `Headers` and `[String: String]`. Your own types can
/// conform.
public protocol HeadersConvertible {
    /// The header fields.
    var requestHeaders: Headers { get }
}

extension Request.Query: QueryConvertible {
    /// The query itself.
    public var requestQuery: Request.Query { self }
}

extension Dictionary: QueryConvertible where Key == String, Value: LosslessStringConvertible {
    /// The items, ordered by name so that the result is the same in every run.
    public var requestQuery: Request.Query {
        Request.Query(
            sorted { $0.key < $1.key }.map { Request.Query.Item(name: $0.key, value: $0.value.description) })
    }
}

extension KeyValuePairs: QueryConvertible where Key == String, Value: LosslessStringConvertible {
    /// The items in their order.
    public var requestQuery: Request.Query {
        Request.Query(map { Request.Query.Item(name: $0.key, value: $0.value.description) })
    }
}

extension Array: QueryConvertible where Element == URLQueryItem {
    /// The items in their order.
    public var requestQuery: Request.Query { Request.Query(map { .init(name: $0.name, value: $0.value) }) }
}

extension Headers: HeadersConvertible {
    /// The header fields themselves.
    public var requestHeaders: Headers { self }
}

extension Dictionary: HeadersConvertible where Key == String, Value == String {
    /// The header fields, ordered by name so that the result is the same in every run.
    public var requestHeaders: Headers { Headers(self) }
}

extension Client {
    /// Returns the request that a verb sends, changed by `configure`, like the function with a `Request.Query` and
    /// `Headers`.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` if path and base URL do not form a URL that can be requested.
    @_disfavoredOverload
    public func request<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ method: Request.Method, _ path: String, query: Query = Request.Query(), headers: Fields = Headers(),
        body: Request.Body = .none, configure: Request.Change = { _ in }
    ) throws(NetworkError) -> Request {
        try request(
            method, path, query: query.requestQuery, headers: headers.requestHeaders, body: body, configure: configure)
    }

    /// Sends a request of any method and decodes the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func send<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ method: Request.Method, _ path: String, query: Query = Request.Query(), headers: Fields = Headers(),
        body: Request.Body = .none, as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await send(
            method, path, query: query.requestQuery, headers: headers.requestHeaders, body: body, as: type,
            configure: configure)
    }

    /// Sends a request of any method and returns the body. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    @discardableResult
    public func send<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ method: Request.Method, _ path: String, query: Query = Request.Query(), headers: Fields = Headers(),
        body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await send(
            method, path, query: query.requestQuery, headers: headers.requestHeaders, body: body,
            configure: configure)
    }

    /// Sends a HEAD request, and returns the head of the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func head<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(),
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> ResponseHead {
        try await head(
            path, query: query.requestQuery, headers: headers.requestHeaders,
            configure: configure)
    }

    /// Sends a GET request, and decodes the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func get<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await get(
            path, query: query.requestQuery, headers: headers.requestHeaders, as: type,
            configure: configure)
    }

    /// Sends a GET request, and returns the body of the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    @discardableResult
    public func get<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(),
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await get(
            path, query: query.requestQuery, headers: headers.requestHeaders,
            configure: configure)
    }

    /// Sends a GET request, and decodes the response; nil if there is no such resource (404, 410). Like the function
    /// with a `Request.Query` and `Headers`, with the same errors.
    @_disfavoredOverload
    public func getIfPresent<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T? {
        try await getIfPresent(
            path, query: query.requestQuery, headers: headers.requestHeaders, as: type,
            configure: configure)
    }

    /// Sends a POST request, and decodes the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func post<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await post(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body, as: type,
            configure: configure)
    }

    /// Sends a POST request, and returns the body of the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    @discardableResult
    public func post<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await post(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body,
            configure: configure)
    }

    /// Sends a PUT request, and decodes the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func put<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await put(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body, as: type,
            configure: configure)
    }

    /// Sends a PUT request, and returns the body of the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    @discardableResult
    public func put<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await put(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body,
            configure: configure)
    }

    /// Sends a PATCH request, and decodes the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func patch<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await patch(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body, as: type,
            configure: configure)
    }

    /// Sends a PATCH request, and returns the body of the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    @discardableResult
    public func patch<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await patch(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body,
            configure: configure)
    }

    /// Sends a DELETE request, and decodes the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    public func delete<T: Decodable & Sendable, Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        as type: T.Type = T.self,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> T {
        try await delete(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body, as: type,
            configure: configure)
    }

    /// Sends a DELETE request, and returns the body of the response. Like the function with a `Request.Query` and
    /// `Headers`, with the same errors.
    @_disfavoredOverload
    @discardableResult
    public func delete<Query: QueryConvertible, Fields: HeadersConvertible>(
        _ path: String, query: Query = Request.Query(), headers: Fields = Headers(), body: Request.Body = .none,
        configure: Request.Change = { _ in }
    ) async throws(NetworkError) -> Data {
        try await delete(
            path, query: query.requestQuery, headers: headers.requestHeaders, body: body,
            configure: configure)
    }
}
