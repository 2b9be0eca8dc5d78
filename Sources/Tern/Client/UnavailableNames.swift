#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

// Names that users of URLSession, Alamofire and others try first. Each is unavailable, and the compiler's message names
// the call to use.

extension Session {
    /// Unavailable. Use `response(for:)`, whose value is the data.
    @available(*, unavailable, message: "use 'response(for:)'; its 'value' is the data")
    public func data(for request: Request) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "use response(for:)")
    }

    /// Unavailable. Use `Client().get(url)`, or `response(for:)`.
    @available(*, unavailable, message: "use 'Client().get(url)', or 'response(for: try Request(url: url))'")
    public func data(from url: URL) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "use response(for:)")
    }

    /// Unavailable. Use `stream(_:)`, whose `bytes`, `chunks` and `lines` are sequences.
    @available(*, unavailable, message: "use 'stream(_:)'; its 'bytes', 'chunks' and 'lines' are sequences")
    public func bytes(for request: Request) async throws(NetworkError) -> ResponseStream {
        throw NetworkError(.unsupported, reason: "use stream(_:)")
    }

    /// Unavailable. Use `download(_:to:)`, whose value is the file.
    @available(*, unavailable, message: "use 'download(_:to:)'; its 'value' is the file")
    public func download(for request: Request) async throws(NetworkError) -> URL {
        throw NetworkError(.unsupported, reason: "use download(_:to:)")
    }

    /// Unavailable. Set `Request.body`, and use `response(for:)`, or `task(for:)` for progress.
    @available(*, unavailable, message: "set 'request.body', and use 'response(for:)', or 'task(for:)' for progress")
    public func upload(for request: Request, from data: Data) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "use response(for:)")
    }
}

extension SessionTask {
    /// Unavailable. Iterate over `progress`.
    @available(*, unavailable, message: "iterate over 'task.progress': for await progress in task.progress")
    public func makeAsyncIterator() -> AsyncStream<Session.Progress>.Iterator { progress.makeAsyncIterator() }
}

extension ResponseStream {
    /// Unavailable. Use `Session.response(for:)` or a verb of `Client`, which collect the body.
    @available(*, unavailable, message: "use 'client.get(_:)' or 'session.response(for:)', which collect the body")
    public var data: Data {
        get async throws(NetworkError) { throw NetworkError(.unsupported, reason: "use response(for:)") }
    }
}

extension NetworkError {
    /// Unavailable. Use `reason`, or `description` for the whole text.
    @available(*, unavailable, message: "use 'reason'; 'description' also names the request and the response")
    public var message: String { reason }
}

extension Response {
    /// Unavailable. Use `value`, which is the body as it was asked for.
    @available(*, unavailable, message: "use 'value': the body as data, or decoded")
    public var body: Value { value }

    /// Unavailable. Use `value`; a response whose type is not stated has `Data`.
    @available(*, unavailable, message: "use 'value': the body as data, or decoded")
    public var data: Value { value }

    /// Unavailable. Use `status`.
    @available(*, unavailable, renamed: "status")
    public var statusCode: Int { status }

    /// Unavailable. Ask for the type of the value.
    @available(
        *, unavailable,
        message: "state the type of the value: 'let user: User = try await client.get(\"users/1\")', or 'JSONValue'"
    )
    public var json: Value { value }
}

extension ResponseHead {
    /// Unavailable. Use `status`.
    @available(*, unavailable, renamed: "status")
    public var statusCode: Int { status }
}

extension NetworkError {
    /// Unavailable. Use `status`.
    @available(*, unavailable, renamed: "status")
    public var statusCode: Int? { status }

    /// Unavailable. Use `body`, or `decode(as:)`.
    @available(*, unavailable, message: "use 'body', the start of the response's body, or 'decode(as:)'")
    public var data: Data { body }
}

extension Client {
    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.send(method, path) { $0.timeouts.total = .seconds(5) }'")
    public func send<T: Decodable & Sendable>(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none, as type: T.Type = T.self,
        timeout: Duration
    ) async throws(NetworkError) -> T {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.get(path) { $0.timeouts.total = .seconds(5) }'")
    public func get<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], as type: T.Type = T.self,
        timeout: Duration
    ) async throws(NetworkError) -> T {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.post(path, body: body) { $0.timeouts.total = .seconds(5) }'")
    public func post<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        timeout: Duration
    ) async throws(NetworkError) -> T {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.put(path, body: body) { $0.timeouts.total = .seconds(5) }'")
    public func put<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        timeout: Duration
    ) async throws(NetworkError) -> T {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.patch(path, body: body) { $0.timeouts.total = .seconds(5) }'")
    public func patch<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        timeout: Duration
    ) async throws(NetworkError) -> T {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.delete(path) { $0.timeouts.total = .seconds(5) }'")
    public func delete<T: Decodable & Sendable>(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        as type: T.Type = T.self,
        timeout: Duration
    ) async throws(NetworkError) -> T {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.send(method, path) { $0.timeouts.total = .seconds(5) }'")
    public func send(
        _ method: Request.Method, _ path: String, query: Request.Query = [:], headers: Headers = [:],
        body: Request.Body = .none,
        timeout: Duration
    ) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.get(path) { $0.timeouts.total = .seconds(5) }'")
    public func get(
        _ path: String, query: Request.Query = [:], headers: Headers = [:],
        timeout: Duration
    ) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.post(path, body: body) { $0.timeouts.total = .seconds(5) }'")
    public func post(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        timeout: Duration
    ) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.put(path, body: body) { $0.timeouts.total = .seconds(5) }'")
    public func put(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        timeout: Duration
    ) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.patch(path, body: body) { $0.timeouts.total = .seconds(5) }'")
    public func patch(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        timeout: Duration
    ) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.delete(path) { $0.timeouts.total = .seconds(5) }'")
    public func delete(
        _ path: String, query: Request.Query = [:], headers: Headers = [:], body: Request.Body = .none,
        timeout: Duration
    ) async throws(NetworkError) -> Data {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }

    /// Unavailable. Set the limit in the closure of the call.
    @available(*, unavailable, message: "use 'client.head(path) { $0.timeouts.total = .seconds(5) }'")
    public func head(
        _ path: String, query: Request.Query = [:], headers: Headers = [:],
        timeout: Duration
    ) async throws(NetworkError) -> ResponseHead {
        throw NetworkError(.unsupported, reason: "set timeouts.total in the closure of the call")
    }
}
