public import HTTPTypes
public import OpenAPIRuntime
public import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sends the requests of a client that swift-openapi-generator generated over a session of Tern.
///
/// ```swift
/// let client = Client(serverURL: try Servers.Server1.url(), transport: TernTransport())
/// let response = try await client.listUsers()
/// ```
///
/// Both bodies are streams with back-pressure: the body of a request is read only as fast as the connection accepts it,
/// and the socket of a response waits while about 2 MiB are unread. ``send(_:body:baseURL:operationID:)`` returns when
/// the head of the response has arrived.
///
/// Responses with any status and any content type are returned, because the generated code decides on them. Everything
/// else is as the session and its configuration say: interceptors, time limits, cookies, redirects, trust.
public struct TernTransport: ClientTransport {
    /// The session that sends the requests.
    public let session: Session

    /// Creates a transport over a session.
    public init(session: Session = .shared) {
        self.session = session
    }

    /// Sends a request, and returns the head of its response with the body as a stream.
    ///
    /// The task of the request has the identifier of the operation as its label, so that logs and events name it.
    /// Cancelling the calling Swift task cancels the request until the head has arrived. Later, the transfer ends when
    /// the Swift task that reads the body is cancelled, and when the body is released.
    ///
    /// - Parameters:
    ///   - request: The request. Its path and query follow the path of `baseURL`; its own scheme and authority are not
    ///     used, as with other transports.
    ///   - body: The body of the request; nil for none. A body of a known length of at most 1 MiB that can be iterated
    ///     several times is collected first, so that it can be sent again after a redirect, a challenge, or on a new
    ///     connection. All others are sent once, while they are read.
    ///   - baseURL: The URL of the server.
    ///   - operationID: The identifier of the operation.
    /// - Returns: The response, and its body; nil for a response to HEAD and for the statuses 204 and 304. Its length
    ///   is known if the head states one and the body is not decompressed.
    /// - Throws: `NetworkError`, or the error of a body that is collected. The iterator of the returned body throws
    ///   `NetworkError`, too.
    public func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?) {
        var message = try Request(
            Request.Method(request.method.rawValue), Self.url(of: request, baseURL: baseURL),
            headers: Self.headers(of: request.headerFields, body: body), body: await Self.body(of: body))
        message.label = operationID
        message.validation = .any
        let stream = session.stream(message)
        let head = try await stream.response
        let status = HTTPResponse.Status(code: head.status, reasonPhrase: head.reasonPhrase)
        let response = HTTPResponse(status: status, headerFields: Self.fields(of: head.headers))
        if request.method == .head || status == .noContent || status == .notModified { return (response, nil) }
        let chunks = stream.chunks.map { ArraySlice($0) }
        return (response, HTTPBody(chunks, length: Self.length(of: head), iterationBehavior: .single))
    }

    // MARK: The request

    /// The maximum number of bytes of a body that is collected.
    private static let collectedLimit: Int64 = 1 << 20

    /// Returns the URL of a request: the path and the query of the request follow the path of the server.
    private static func url(of request: HTTPRequest, baseURL: URL) -> String {
        // A fragment and a query of the server's URL have no meaning here.
        let base = baseURL.absoluteString.prefix { $0 != "?" && $0 != "#" }
        let path = request.path ?? ""
        if path.isEmpty || path.hasPrefix("?") { return base + path }
        let (endsWithSlash, beginsWithSlash) = (base.hasSuffix("/"), path.hasPrefix("/"))
        // Exactly one slash between them, so that no path can be read as a part of the host.
        return (endsWithSlash && beginsWithSlash ? base.dropLast() : base)
            + (endsWithSlash || beginsWithSlash ? "" : "/") + path
    }

    private static func headers(of fields: HTTPFields, body: HTTPBody?) -> Headers {
        var headers = Headers()
        // The body alone decides on its length and its framing.
        for field in fields where field.name != .contentLength && field.name != .transferEncoding {
            headers.append(name: field.name.rawName, value: field.value)
        }
        // A body with another number of bytes fails the request.
        if case .known(let length)? = body?.length { headers["Content-Length"] = "\(length)" }
        return headers
    }

    private static func body(of body: HTTPBody?) async throws -> Request.Body {
        guard let body else { return .none }
        guard case .known(let count) = body.length else { return .stream(body.map { Data($0) }, contentType: nil) }
        let length = Int64(count)
        if length <= collectedLimit, body.iterationBehavior == .multiple {
            var data = Data(capacity: Int(length))
            for try await chunk in body { data.append(contentsOf: chunk) }
            return .data(data, contentType: nil)
        }
        return .stream(body.map { Data($0) }, length: length, contentType: nil)
    }

    // MARK: The response

    private static func fields(of headers: Headers) -> HTTPFields {
        var fields = HTTPFields()
        for header in headers {
            // A field whose name is no token has no name in HTTPTypes.
            guard let name = HTTPField.Name(header.name) else { continue }
            fields.append(HTTPField(name: name, value: header.value))
        }
        return fields
    }

    private static func length(of head: ResponseHead) -> HTTPBody.Length {
        // The length counts the bytes before they are decompressed.
        guard let length = head.contentLength, head.headers["Content-Encoding"] == nil else { return .unknown }
        return .known(numericCast(length))
    }
}
