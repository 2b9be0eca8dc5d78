public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends requests to real servers and keeps what came of them: see ``Recording``.
///
/// What a session does above the wire (redirects, cookies, authentication, retries, validation) goes on above the
/// recorder. Each response is collected before it is passed on, so a stream comes in one piece, and time limits are those
/// of the recorder's configuration.
public final class Recorder: Sendable {
    private let session: Session
    private let redaction: Recording.Redaction
    private let kept = Lock(Recording())

    /// - Parameters:
    ///   - configuration: How the real servers are reached: proxies, authorities, time limits. Its headers, cookies,
    ///     credentials, policy and interceptors are left out: those are the recorded session's.
    ///   - redaction: What is taken out before an exchange is kept; the secrets by default.
    public init(
        _ configuration: Session.Configuration = Session.Configuration(), redaction: Recording.Redaction = .secrets
    ) {
        var wire = configuration
        wire.headers = [:]
        wire.cookies = .none
        wire.credentials = nil
        wire.interceptors = []
        wire.policy = Unfollowed()
        wire.validation = ResponseValidation(contentTypes: .any, statuses: { _ in true })
        session = Session(configuration: wire)
        self.redaction = redaction
    }

    /// What was recorded so far.
    public var recording: Recording { kept.withLock { $0 } }

    /// The transport that sends and records.
    var stub: StubTransport { StubTransport { call in try await self.send(call) } }

    private func send(_ call: StubTransport.Call) async throws -> StubTransport.Answer {
        var exchange = Recording.Exchange(call)
        do {
            let response = try await session.response(for: call.request)
            let answer = StubTransport.Answer(received: response)
            exchange.response = Recording.Received(
                status: answer.status, headers: answer.headers.recorded, body: Recording.Content(response.value))
            keep(exchange)
            return answer
        } catch let error as NetworkError {
            exchange.failure = Recording.Failed(kind: error.kind.rawValue, reason: error.reason)
            if !error.isCancelled { keep(exchange) }
            throw StubTransport.Failure(error.kind, error.reason)
        }
    }

    private func keep(_ exchange: Recording.Exchange) {
        var exchange = exchange
        redaction.change(&exchange)
        kept.withLock { $0.exchanges.append(exchange) }
    }

    /// A redirect is an answer like any other here: the session above decides on it.
    private struct Unfollowed: SessionPolicy {
        func redirect(
            to request: Request, after response: ResponseHead, of task: AnySessionTask
        ) async throws -> RedirectDecision? { .stop }
    }
}

extension Session {
    /// A session whose requests go to real servers, and are recorded.
    public init(configuration: Configuration = Configuration(), recorder: Recorder) {
        self.init(configuration: configuration, stub: recorder.stub)
    }
}

extension StubTransport.Call {
    /// The call as a request of its own.
    fileprivate var request: Request {
        get throws {
            var headers = headers
            headers.remove("Content-Length")
            let hasBody = !body.isEmpty || self.headers.contains("Content-Length")
            return try Request(
                method, urlString, headers: headers, body: hasBody ? .data(body, contentType: nil) : .none)
        }
    }
}

extension StubTransport.Answer {
    /// A response as a session above takes it: decompressed.
    fileprivate init(received response: Response<Data>) {
        var headers = response.head.headers
        headers.remove("Content-Encoding")
        headers.remove("Transfer-Encoding")
        if headers.contains("Content-Length"), !response.value.isEmpty {
            headers["Content-Length"] = String(response.value.count)
        }
        self.init(
            status: response.head.status, headers: headers,
            steps: response.value.isEmpty ? [] : [.chunk(response.value)], trailers: response.trailers)
    }
}

extension Recording.Exchange {
    /// The request of a call, with nothing that came of it.
    init(_ call: StubTransport.Call) {
        self.init(
            request: Recording.Sent(
                method: call.method.rawValue, url: call.urlString, headers: call.headers.recorded,
                body: Recording.Content(call.body)))
    }
}

extension Recorder: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show how the servers are reached, including the credentials of a
    /// proxy.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
