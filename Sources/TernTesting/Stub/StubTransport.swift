import Synchronization
public import Tern
package import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Answers a session's requests without a server, from a closure or a table, with scripted chunks, delays and failures.
///
/// ```swift
/// let stub = StubTransport([
///     "GET /users/1": .text(#"{"id":1,"name":"Ada"}"#, contentType: "application/json"),
///     "DELETE /users/1": .status(204),
/// ])
/// let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
/// let user: User = try await client.get("users/1")
/// #expect(stub.calls.map(\.path) == ["/users/1"])
/// ```
///
/// Everything above the wire works as in production: validation, decoding, retries, progress, back-pressure, pause and
/// cancellation. A paused task receives nothing more, and a slow reader delays the script. The limits of an attempt
/// belong to the wire and do not apply: fail with `.idleTimedOut` if a test needs one. `Timeouts.total` ends the waits
/// of interceptors, and tasks with a handle. The stub does not follow redirects or decompress bodies; the session
/// receives them as they are. An answer `.webSocket` accepts a WebSocket and plays the server's side
/// (``StubTransport/WebSocket``).
///
/// Delays use the stub's clock; with a `ManualClock` a test controls them. Closures run off every actor, including the
/// session's.
public final class StubTransport: Sendable {
    /// A closure that answers a call. It may wait and throw: a ``Failure`` fails the attempt with its kind, any other
    /// error with `.connectionFailed` and the error as `underlying`.
    public typealias Respond = @concurrent @Sendable (_ call: Call) async throws -> Answer

    private struct State {
        var calls: [Call] = []
        var webSockets: [WebSocket] = []
        var live: [UInt64: StubExchange] = [:]
        var watchers = Waiters<Int>()
    }

    private let clock: any Clock<Duration>
    private let respond: Respond
    private let state = Lock(State())

    /// Creates a stub that calls a closure for each answer; delays use `clock`.
    public init(clock: any Clock<Duration> = ContinuousClock(), respond: @escaping Respond) {
        self.clock = clock
        self.respond = respond
    }

    /// Creates a stub that looks up its answers by method and path. A call without an entry fails with `.unsupported`
    /// and names the call. Delays use `clock`.
    public convenience init(_ answers: [Route: Answer], clock: any Clock<Duration> = ContinuousClock()) {
        self.init(clock: clock) { call in
            for route in Route.candidates(for: call) {
                if let answer = answers[route] { return answer }
            }
            throw Failure(.unsupported, "the stub has no answer for \(call.method) \(call.path)")
        }
    }

    /// The calls so far, in order of arrival. A call is added after its whole body was read.
    public var calls: [Call] { state.withLock { $0.calls } }

    /// The WebSockets that the stub has accepted, in the order of their handshakes.
    public var webSockets: [WebSocket] { state.withLock { $0.webSockets } }

    /// Returns when at least `count` calls have arrived.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func waitForCalls(_ count: Int) async throws(CancellationError) {
        let id = state.withLock { $0.watchers.nextID() }
        try await Waiters<Int>.suspend { continuation in
            let outcome = state.withLock { state -> Bool? in
                if Task.isCancelled { return false }
                if state.calls.count >= count { return true }
                state.watchers.add(id, condition: count, continuation: continuation)
                return nil
            }
            if let outcome { continuation.resume(returning: outcome) }
        } cancel: {
            self.state.withLock { $0.watchers.remove(id) }
        }
    }

    /// Adds a call to `calls` and returns it with its index.
    func log(_ call: Call) -> Call {
        let (logged, watchers) = state.withLock { state in
            var call = call
            call.index = state.calls.count
            state.calls.append(call)
            let count = state.calls.count
            return (call, state.watchers.take { $0 <= count })
        }
        for watcher in watchers { watcher.continuation.resume(returning: true) }
        return logged
    }
}

extension StubTransport: Transport {
    /// The executor of transports without a loop.
    package var executor: any MessageExecutor { QueueExecutor.shared }

    /// Starts an exchange in its own Swift task, which the exchange holds and cancels.
    package func start(_ attempt: Attempt) {
        let exchange = StubExchange(
            attempt, clock: clock, log: { self.log($0) }, respond: respond,
            accepted: { socket in self.state.withLock { $0.webSockets.append(socket) } },
            ended: { self.state.withLock { $0.live[attempt.id] = nil } })
        state.withLock { $0.live[attempt.id] = exchange }
        exchange.begin()
    }

    /// Applies a command to an exchange that has not ended.
    package func control(_ attempt: Attempt, _ command: AttemptCommand) {
        state.withLock { $0.live[attempt.id] }?.control(command)
    }
}

extension Session.Configuration {
    /// The stub that answers the requests of each session with this configuration, without a server or a socket; nil,
    /// the default, for the network.
    ///
    /// Code that makes its own sessions from a configuration needs no other way in:
    ///
    /// ```swift
    /// var configuration = Session.Configuration()
    /// configuration.stub = StubTransport(["GET /users/1": .text(#"{"id":1}"#, contentType: "application/json")])
    /// let model = UserModel(configuration: configuration)
    /// ```
    public var stub: StubTransport? {
        get { untypedTransport as? StubTransport }
        set { untypedTransport = newValue }
    }
}

extension Session {
    /// Creates a session whose requests a stub answers, without a server or a socket.
    public init(configuration: Configuration = Configuration(), stub: StubTransport) {
        var configuration = configuration
        configuration.stub = stub
        self.init(configuration: configuration)
    }
}

extension Client {
    /// Creates a client whose requests a stub answers, with a session of its own.
    ///
    /// ```swift
    /// let model = UserModel(client: Client(stub: StubTransport { _ in .status(503) }))
    /// ```
    ///
    /// - Parameters:
    ///   - baseURL: The base URL. `https://stub.example` by default. With one that is not an http or https URL, every
    ///     call fails with `.invalidRequest`.
    ///   - stub: The stub that answers.
    ///   - configuration: The configuration of the session, with its interceptors, policies and observers.
    ///   - headers: The header fields of each request. None by default.
    public init(
        baseURL: String = "https://stub.example", stub: StubTransport,
        configuration: Session.Configuration = Session.Configuration(), headers: Headers = [:]
    ) {
        self.init(
            baseURL: URL(string: baseURL) ?? URL(filePath: baseURL),
            session: Session(configuration: configuration, stub: stub), headers: headers)
    }
}

extension StubTransport: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the requests that were sent.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension StubTransport {
    /// One attempt of a request, as a server would receive it.
    public struct Call: Sendable {
        /// The method.
        public let method: Request.Method
        /// The absolute URL as sent.
        public let urlString: String
        /// The path as sent, percent-encoded and without the query.
        public let path: String
        /// The query after the question mark, as sent; nil if there is none.
        public let query: String?
        /// The header fields of the session, the client and the call, and Content-Length if the length is known.
        public let headers: Headers
        /// The whole body, for every kind of request body.
        public let body: Data
        /// The index of the call, from 0 for the first call of the stub, for answers that change from call to call.
        public internal(set) var index: Int

        init(_ request: WireRequest, body: Data) {
            method = request.method
            urlString = request.target.string
            path = request.target.path
            query = request.target.query
            var headers = request.headers
            switch request.source {
            case .none: break
            case .bytes(let data): headers["Content-Length"] = String(data.count)
            case .pipe(_, let length): headers["Content-Length"] = length.map { String($0) }
            }
            self.headers = headers
            self.body = body
            index = 0
        }

        /// The absolute URL.
        public var url: URL? { URL(string: urlString) }

        /// The body as UTF-8 text.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// A method and a path with an optional query, such as `"GET /users/1"` or `"GET /users?page=2"`; a key of a stub's
    /// table.
    public struct Route: Sendable, Hashable, ExpressibleByStringLiteral {
        private let text: String

        /// Creates a route from a method and a path that begins with a slash.
        public init(_ method: Request.Method, _ path: String) { text = "\(method.rawValue) \(path)" }

        /// Creates a route from a method, a space, and a path that begins with a slash.
        public init(stringLiteral value: String) { text = value }

        /// Returns the routes that match a call, the exact one first.
        static func candidates(for call: Call) -> [Route] {
            let plain = Route(call.method, call.path)
            guard let query = call.query else { return [plain] }
            return [Route(call.method, "\(call.path)?\(query)"), plain]
        }
    }

    /// A failure, thrown by a stub's closure or used as a step of an answer.
    public struct Failure: Error, Sendable {
        /// The kind of the `NetworkError` that the task fails with.
        public let kind: NetworkError.Kind
        /// The reason of the error.
        public let reason: String
        let isDeadPooledConnection: Bool

        /// Creates a failure of any kind; the reason becomes that of the error.
        public init(_ kind: NetworkError.Kind, _ reason: String = "the stub was configured to fail") {
            self.kind = kind
            self.reason = reason
            isDeadPooledConnection = false
        }

        private init() {
            kind = .connectionLost
            reason = "the pooled connection was closed before a response came; the server may have acted"
            isDeadPooledConnection = true
        }

        /// A pooled connection that the server has closed. It is the only failure after which a session sends a safe
        /// request again, once.
        public static let deadPooledConnection = Failure()
    }
}

extension StubTransport.Call: CustomStringConvertible, CustomReflectable {
    /// The method, and the URL without secrets.
    public var description: String { "\(method) \(Target.redact(urlString))" }

    /// The method, and the URL and headers without secrets. Without this mirror, `dump` would show the secrets and the
    /// body.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "url": Target.redact(urlString), "headers": headers])
    }
}
