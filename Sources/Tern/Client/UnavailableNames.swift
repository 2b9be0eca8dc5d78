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
