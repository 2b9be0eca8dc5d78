import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Tern

/// Forwards requests to an origin over one session.
///
/// No body is held as a whole. The next chunk of a response is read when the client has taken the one before, so a slow
/// client stops the origin; and the body of a request is read only as fast as the origin takes it. When the client
/// leaves, the request to the origin is cancelled.
struct Proxy: HTTPResponder {
    typealias Context = ProxyContext

    private let client: Client
    /// The scheme, the host and the port of the origin.
    private let origin: String

    /// - Parameters:
    ///   - origin: The scheme, the host and the port of the origin, as in `http://127.0.0.1:8000`.
    ///   - idleLimit: The time that the origin can be silent. It does not run while the proxy waits for a slow client.
    init(origin: String, idleLimit: Duration = .seconds(30)) throws {
        var configuration = Session.Configuration()
        // The clients' own cookies pass, bodies stay compressed, and clients follow redirects themselves.
        configuration.cookies = .none
        configuration.decompresses = false
        configuration.redirects = .stop
        configuration.timeouts.idle = idleLimit
        self.origin = origin
        client = try Client(baseURL: origin, session: Session(configuration: configuration))
    }

    func respond(to request: Hummingbird.Request, context: ProxyContext) async throws -> Hummingbird.Response {
        // Together with the origin, any path that begins with a slash is a URL of the origin.
        guard request.uri.string.hasPrefix("/") else { return Hummingbird.Response(status: .badRequest) }
        let presence = try await context.channel.pipeline.handler(type: ClientPresence.self).get()
        let (body, upload) = Self.body(of: request)
        let stream = client.stream(
            origin + request.uri.string, method: Tern.Request.Method(request.method.rawValue),
            headers: ForwardedFields.headers(of: request.headers), body: body
        ) { $0.validation = .any }
        presence.whenGone { stream.task.cancel() }
        do throws(NetworkError) {
            let head = try await stream.response
            return Self.response(head, to: request.method, from: stream, upload: upload)
        } catch {
            // The connection is used again: the rest of the request's body is read first.
            await upload?.value
            return Hummingbird.Response(status: Self.status(for: error))
        }
    }

    /// Returns the body to forward, and the task that reads it from the client.
    private static func body(of request: Hummingbird.Request) -> (body: Tern.Request.Body, upload: Task<Void, Never>?) {
        let length = request.headers[.contentLength].flatMap { Int64($0) }
        guard length != nil || request.headers[.transferEncoding] != nil, length != 0 else { return (.none, nil) }
        let (body, source) = RequestBody.makeStream()
        // The body of the response is written after `respond` has returned, and the client may still send then. That is
        // why no child task can read the request. `response` waits for this task; it ends with the request's body, and
        // with the connection. The server may not read the connection at the same time.
        let upload = Task {
            do {
                // `yield` waits while the origin does not take the body, and drops the bytes once it never will.
                for try await buffer in request.body { await source.yield(buffer) }
                source.finish()
            } catch {
                source.finish(error)
            }
        }
        return (.stream(body.map { Data($0.readableBytesView) }, length: length, contentType: nil), upload)
    }

    /// Returns the response that passes on that of the origin.
    private static func response(
        _ head: ResponseHead, to method: HTTPRequest.Method, from stream: ResponseStream, upload: Task<Void, Never>?
    ) -> Hummingbird.Response {
        let status = HTTPResponse.Status(code: head.status, reasonPhrase: head.reasonPhrase)
        let hasBody = method != .head && status != .noContent && status != .notModified
        let body = ResponseBody { writer in
            // Returns when the client's socket has room again. An error ends the connection, so that the client does
            // not take a part of the body for the whole.
            for try await chunk in stream.chunks { try await writer.write(ByteBuffer(bytes: chunk)) }
            let trailers = try stream.trailers
            try await writer.finish(trailers.isEmpty ? nil : ForwardedFields.fields(of: trailers))
            await upload?.value
        }
        return Hummingbird.Response(
            status: status, headers: ForwardedFields.fields(of: head.headers), body: hasBody ? body : ResponseBody())
    }

    /// Returns the status for a request that has no response.
    private static func status(for error: NetworkError) -> HTTPResponse.Status {
        switch error.kind {
        case .invalidRequest: .badRequest
        case .connectTimedOut, .idleTimedOut, .attemptTimedOut, .totalTimedOut: .gatewayTimeout
        default: .badGateway
        }
    }
}

/// The context of a request, with the client's connection.
struct ProxyContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}
