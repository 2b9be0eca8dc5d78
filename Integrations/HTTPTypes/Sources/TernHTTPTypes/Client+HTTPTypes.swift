public import HTTPTypes
public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Client {
    /// Returns the request of Tern that the other functions send, changed by `configure`.
    ///
    /// A request without scheme and authority goes to the client's base URL: its path is resolved like one that begins
    /// with `/`, so that it replaces the path of the base URL. The client's headers are added under the rules of
    /// `Client.headers`, and the request's own replace them.
    ///
    /// - Throws: ``ConversionError``; `NetworkError` of kind `.invalidRequest` if the URL cannot be requested.
    public func request(
        _ request: HTTPRequest, body: Request.Body = .none, configure: Request.Change = { _ in }
    ) throws -> Request {
        let parts = try RequestParts(request)
        // A path that begins with `//` would name a host if it were resolved as a reference (RFC 3986 §4.2).
        let path = parts.origin.map { $0 + parts.path } ?? (parts.path.hasPrefix("//") ? "/." + parts.path : parts.path)
        return try self.request(parts.method, path, headers: parts.headers, body: body, configure: configure)
    }

    /// Sends a request, and returns its response and the body.
    ///
    /// ```swift
    /// let (response, data) = try await client.response(for: HTTPRequest(url: url))
    /// ```
    ///
    /// Redirects, cookies, credentials and the validation of the session apply. A status outside 200–299 is therefore
    /// an error with the start of the body; `{ $0.validation = .any }` returns every response instead. Cancelling the
    /// calling Swift task cancels the transfer.
    ///
    /// - Throws: ``ConversionError`` before anything is sent; `NetworkError`.
    public func response(
        for request: HTTPRequest, body: Request.Body = .none, configure: Request.Change = { _ in }
    ) async throws -> (HTTPResponse, Data) {
        let response = try await session.response(for: self.request(request, body: body, configure: configure))
        return (try HTTPResponse(response.head), response.value)
    }

    /// Sends a request with these bytes as its body, and returns its response and the body. The request states the
    /// `Content-Type`; none is added.
    ///
    /// - Throws: ``ConversionError`` before anything is sent; `NetworkError`.
    public func response(
        for request: HTTPRequest, body: Data, configure: Request.Change = { _ in }
    ) async throws -> (HTTPResponse, Data) {
        try await response(for: request, body: .data(body, contentType: nil), configure: configure)
    }

    /// Sends a request, decodes the body of its response, and returns both.
    ///
    /// - Throws: ``ConversionError`` before anything is sent; `NetworkError`.
    public func response<T: Decodable & Sendable>(
        for request: HTTPRequest, body: Request.Body = .none, as type: T.Type, configure: Request.Change = { _ in }
    ) async throws -> (HTTPResponse, T) {
        let response = try await response(for: self.request(request, body: body, configure: configure), as: type)
        return (try HTTPResponse(response.head), response.value)
    }

    /// Sends a request, and returns its response as a stream of bytes. Starts at once.
    ///
    /// ```swift
    /// let stream = try client.stream(request)
    /// let response = try HTTPResponse(await stream.response)
    /// for try await chunk in stream.chunks { … }
    /// ```
    ///
    /// - Throws: ``ConversionError``; `NetworkError` of kind `.invalidRequest` if the URL cannot be requested. Other
    ///   errors are those of the stream.
    public func stream(
        _ request: HTTPRequest, body: Request.Body = .none, configure: Request.Change = { _ in }
    ) throws -> ResponseStream {
        session.stream(try self.request(request, body: body, configure: configure))
    }

    /// Downloads the response to a file, like `Client.download(_:to:options:)`. The task starts at once, unless
    /// `startsImmediately` is false.
    ///
    /// - Throws: ``ConversionError``; `NetworkError` of kind `.invalidRequest` if the URL cannot be requested. Other
    ///   errors are those of the task.
    public func download(
        _ request: HTTPRequest, to file: URL, options: Download.Options = Download.Options(),
        startsImmediately: Bool = true, configure: Request.Change = { _ in }
    ) throws -> SessionTask<URL> {
        session.download(
            try self.request(request, configure: configure), to: file, options: options,
            startsImmediately: startsImmediately)
    }
}
