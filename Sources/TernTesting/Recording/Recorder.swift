public import Tern
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends requests to real servers and records the exchanges in a ``Recording``.
///
/// The session's work above the wire (redirects, cookies, authentication, retries, validation) happens above the
/// recorder. The recorder collects each response before it passes it on, so a stream arrives in one piece, and the time
/// limits are those of the recorder's configuration.
public final class Recorder: Sendable {
    private let session: Session
    private let redaction: Recording.Redaction
    private let recorded = Lock(Recording())

    /// Creates a recorder.
    ///
    /// - Parameters:
    ///   - configuration: The way to reach the real servers: proxies, authorities, time limits. Its headers, cookies,
    ///     credentials, cache, policy, observers and interceptors are ignored, because those of the recorded session
    ///     apply.
    ///   - redaction: The redaction to apply before an exchange is recorded; by default it hides secrets.
    public init(
        _ configuration: Session.Configuration = Session.Configuration(), redaction: Recording.Redaction = .secrets
    ) {
        var wire = configuration
        wire.headers = [:]
        wire.cookies = .none
        wire.credentials = nil
        wire.interceptors = []
        wire.observers = []
        wire.exchangeCache = nil
        wire.policy = NoRedirects()
        wire.validation = ResponseValidation(contentTypes: .any, statuses: { _ in true })
        session = Session(configuration: wire)
        self.redaction = redaction
    }

    /// The recording so far.
    public var recording: Recording { recorded.withLock { $0 } }

    /// The transport that sends and records.
    var stub: StubTransport { StubTransport { call in try await self.send(call) } }

    private func send(_ call: StubTransport.Call) async throws -> StubTransport.Answer {
        var exchange = Recording.Exchange(call)
        var details = Recording.Details()
        details.started = Date()
        do {
            let response = try await session.response(for: call.request)
            let answer = StubTransport.Answer(received: response)
            details.take(response)
            exchange.details = details
            exchange.response = Recording.Received(
                status: answer.status, headers: answer.headers.recorded, body: Recording.Content(response.value))
            record(exchange)
            return answer
        } catch let error as NetworkError {
            if let metrics = error.metrics { details.take(metrics) }
            exchange.details = details
            exchange.failure = Recording.Failed(kind: error.kind.rawValue, reason: error.reason)
            if !error.isCancelled { record(exchange) }
            throw StubTransport.Failure(error.kind, error.reason)
        }
    }

    private func record(_ exchange: Recording.Exchange) {
        var exchange = exchange
        redaction.change(&exchange)
        recorded.withLock { $0.exchanges.append(exchange) }
    }

    /// Returns redirects as responses, because the session above decides about them.
    private struct NoRedirects: SessionPolicy {
        func redirect(
            to request: Request, after response: ResponseHead, of task: AnySessionTask
        ) async throws -> RedirectDecision? { .stop }
    }
}

extension Session {
    /// Creates a session whose requests go to real servers and are recorded.
    public init(configuration: Configuration = Configuration(), recorder: Recorder) {
        self.init(configuration: configuration, stub: recorder.stub)
    }
}

extension StubTransport.Call {
    /// The call as a request.
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
    /// Creates an answer from a received response, decompressed.
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
        version = response.head.version
        reasonPhrase = response.head.reasonPhrase
        metrics = response.metrics
    }

    /// Creates an answer from an exchange that has a response.
    fileprivate init(
        replaying response: Recording.Received, _ details: Recording.Details?, to call: StubTransport.Call
    ) throws {
        guard response.status >= 200 else {
            throw StubTransport.Failure(.unsupported, "the recording has the handshake of \(call.path) alone")
        }
        let headers = Headers(recorded: response.headers)
        self.init(status: response.status, headers: headers, steps: response.body.map { [.chunk($0.data)] } ?? [])
        version = details?.httpVersion ?? .http11
        reasonPhrase = details?.reasonPhrase ?? ""
        let isConditional = call.headers.contains("If-None-Match") || call.headers.contains("If-Modified-Since")
        if status == 304, response.body != nil, !isConditional {
            // Browsers keep the body from their cache beside a 304, with which only a conditional request is answered.
            (status, reasonPhrase) = (200, "")
        }
        if let cut = response.cut, call.method != .head {
            let size = response.body?.data.count ?? 0
            let whole = cut.wholeSize.map { " of \($0)" } ?? ""
            steps.append(
                .fail(StubTransport.Failure(.truncatedBody, "the recording has \(size)\(whole) bytes of the body")))
        }
    }
}

extension Recording.Exchange {
    /// Creates an exchange with the request of a call and no response.
    init(_ call: StubTransport.Call) {
        self.init(
            request: Recording.Sent(
                method: call.method.rawValue, url: call.urlString, headers: call.headers.recorded,
                body: Recording.Content(call.body)))
    }
}

extension Recorder: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the recorder's configuration, including the credentials of a
    /// proxy.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension StubTransport {
    /// Creates a stub that answers from a recording.
    ///
    /// The first unused exchange with the same method, URL and body answers a call. Headers, and the boundaries of
    /// multipart forms, are not compared, and the ways to write a space in a form are equal. An exchange of whose
    /// request body a part is missing (``Recording/Sent/cut``) is used last, for any body. A call without such an
    /// exchange fails with `.unsupported` and names the call.
    ///
    /// - Parameters:
    ///   - recording: The recording to replay.
    ///   - repeatsLast: A Boolean value that indicates whether the last exchange with the same method, URL and body
    ///     answers all further calls.
    ///   - redaction: The redaction that was used for the recording.
    ///   - clock: The clock for delays.
    public convenience init(
        replaying recording: Recording, repeatsLast: Bool = false, redaction: Recording.Redaction = .secrets,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        let replay = Lock(Replay(recording, repeatsLast: repeatsLast))
        self.init(clock: clock) { call in
            var asked = Recording.Exchange(call)
            redaction.change(&asked)
            let request = asked.request
            guard let exchange = replay.withLock({ $0.next(for: request) }) else {
                throw Failure(.unsupported, "the recording has no further answer for \(call.method) \(call.path)")
            }
            if let failure = exchange.failure {
                throw Failure(NetworkError.Kind(rawValue: failure.kind), failure.reason)
            }
            guard let response = exchange.response else {
                throw Failure(.unsupported, "the recording has neither response nor failure for \(call.path)")
            }
            return try Answer(replaying: response, exchange.details, to: call)
        }
    }
}

/// Selects the next exchange of a recording. Pure.
struct Replay {
    private struct Key: Hashable {
        let method: String
        let url: String
        let body: Recording.Content?
        var hasAnyBody = false
    }

    private var remaining: [Key: ArraySlice<Recording.Exchange>]
    private let repeatsLast: Bool

    init(_ recording: Recording, repeatsLast: Bool) {
        remaining = Dictionary(grouping: recording.exchanges) { Self.key($0.request) }.mapValues { $0[...] }
        self.repeatsLast = repeatsLast
    }

    mutating func next(for request: Recording.Sent) -> Recording.Exchange? {
        let key = Self.key(request)
        return next(key) ?? next(Key(method: key.method, url: key.url, body: nil, hasAnyBody: true))
    }

    private mutating func next(_ key: Key) -> Recording.Exchange? {
        guard let exchanges = remaining[key], let next = exchanges.first else { return nil }
        if exchanges.count > 1 || !repeatsLast { remaining[key] = exchanges.dropFirst() }
        return next
    }

    private static func key(_ request: Recording.Sent) -> Key {
        // Other programs write URLs in other forms; what is no URL of HTTP stays as it is.
        let url = (try? Target(absolute: request.url))?.string ?? request.url
        if request.cut != nil { return Key(method: request.method, url: url, body: nil, hasAnyBody: true) }
        return Key(method: request.method, url: url, body: comparable(request))
    }

    /// Returns the body in a form that is the same for equal forms: with one way to write a space, and without the
    /// boundary between parts, which differs each time.
    private static func comparable(_ request: Recording.Sent) -> Recording.Content? {
        guard let body = request.body else { return nil }
        let bytes = Array(body.data)
        let type = Headers(recorded: request.headers)["Content-Type"]?.lowercased() ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") {
            return .data(Data(bytes.flatMap { $0 == UInt8(ascii: "+") ? Array("%20".utf8) : [$0] }))
        }
        guard type.hasPrefix("multipart/") else { return body }
        // The first line is the delimiter, of at most 72 bytes (RFC 2046 §5.1.1).
        guard bytes.starts(with: "--".utf8), let end = bytes.prefix(74).firstRange(of: [0x0D, 0x0A])?.lowerBound else {
            return body
        }
        let parts = bytes.split(separator: Array(bytes[..<end]), omittingEmptySubsequences: false)
        return .data(Data(parts.joined(separator: "--".utf8)))
    }
}
