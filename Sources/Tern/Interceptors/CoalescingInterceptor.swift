import TernConcurrency

/// Shares one response among identical safe requests: while a request is running, another one with the same method, URL
/// and headers is not sent and receives the same response.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [CoalescingInterceptor(), RetryInterceptor()]
/// ```
///
/// - Only GET, HEAD, OPTIONS and TRACE without a body are shared, and only if the response is collected in memory.
///   Downloads, streams, and requests with interceptors, a policy, a validation, redirects, credentials or cookies of their own
///   are never shared.
/// - Requests never share a response if they differ in `Authorization`, `Cookie` or another header that holds a secret,
///   those included that the session adds, or in the user information of their URLs, in `cache` or in `timeouts`, or if they
///   belong to different sessions. Place an interceptor that adds credentials before this one: fields that are added later
///   do not keep requests apart.
/// - A failure is shared like a response. Cancelling one task ends that task only. If it had sent the request, one of
///   the others sends it again.
/// - The running request takes over the highest priority of those that wait for it. A shared response has no metrics of
///   its own.
public final class CoalescingInterceptor: Interceptor {
    private enum Outcome: Sendable {
        case reply(Reply)
        case failed(any Error)
        /// The request before was cancelled: send the request.
        case send
        case cancelled
    }

    private let ignoredHeaders: [String]
    private let running = Lock(SharedRequests<CoalescingKey, AnySessionTask, Waiter<Outcome>>())

    /// - Parameter ignoredHeaders: The names of headers that differ between requests without changing the response,
    ///   besides those of tracing (`traceparent`, `X-Request-ID` and similar). Credentials cannot be ignored.
    public init(ignoring ignoredHeaders: [String] = []) { self.ignoredHeaders = ignoredHeaders }

    /// Sends the request, or waits for the response to one that is already running.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        guard let key = key(of: request, next.prepared) else { return try await next(request) }
        let waiter = Waiter<Outcome>()
        switch running.withLock({ $0.join(key, as: next.task, waiter) }) {
        case .send:
            return try await send(request, for: key, next: next)
        case .wait(let sender):
            if sender.priority < request.priority { sender.priority = request.priority }
        }
        switch await waiter.wait(cancelled: .cancelled) {
        case .reply(let reply):
            return reply
        case .failed(let error):
            throw error
        case .send:
            running.withLock { $0.setSender(of: key, to: next.task) }
            return try await send(request, for: key, next: next)
        case .cancelled:
            running.withLock { running in running.leave(key) { $0 === waiter } }
            throw NetworkError(.cancelled, request: request)
        }
    }

    private func key(of request: Request, _ prepared: PreparedRequest) -> CoalescingKey? {
        // `try?`: a request that cannot be prepared is not shared, and `next` throws the error.
        guard prepared.delivery == .collected, let own = try? prepared.replacing(request) else { return nil }
        return CoalescingKey(
            request, headers: own.fieldsAsSent(with: own.presentSessionFields), ignoring: ignoredHeaders,
            acceptedTypes: prepared.acceptedTypes, session: prepared.registry.sessionID)
    }

    private func send(_ request: Request, for key: CoalescingKey, next: Next) async throws -> Reply {
        do {
            let reply = try await next(request)
            finish(key, with: .reply(Reply(sharing: reply)))
            return reply
        } catch {
            if error.isCancelled { resend(key) } else { finish(key, with: .failed(error)) }
            throw error
        }
    }

    private func finish(_ key: CoalescingKey, with outcome: Outcome) {
        for waiter in running.withLock({ $0.finish(key) }) { waiter.resume(returning: outcome) }
    }

    /// Asks the first waiter that is not cancelled to send the request.
    private func resend(_ key: CoalescingKey) {
        while let nextSender = running.withLock({ $0.nextSender(key) }) {
            if nextSender.resume(returning: .send) { return }
        }
    }
}

extension CoalescingInterceptor: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the running requests.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The properties that two requests must share to receive one response: method, URL and the relevant headers.
///
/// All headers are relevant except those that identify a single request in a log or a trace. Credentials are always
/// relevant: requests with different `Authorization`, `Cookie` or other secret headers, or with different credentials
/// in their URLs, never share a response (RFC 9111 §3.5 says the same for caches).
package struct CoalescingKey: Sendable, Hashable {
    private let method: Request.Method
    private let target: Target
    private let headers: Headers
    private let cache: Request.CacheChoice
    private let timeouts: Timeouts
    private let maximumBodySize: Int?
    /// The bytes of the path, because file systems compare those.
    private let unixSocketPath: [UInt8]?
    /// The session. Sessions do not share connections, cookies or credentials.
    private let session: Session.ID?
    /// The accepted content types. A response can be refused because of the type that its task decodes.
    private let acceptedTypes: AcceptedTypes

    /// Headers that differ between requests without changing the response.
    package static let ignoredHeaders = [
        "traceparent", "tracestate", "baggage", "X-Request-ID", "X-Correlation-ID", "X-Amzn-Trace-Id",
        "X-Cloud-Trace-Context", "X-B3-TraceId", "X-B3-SpanId", "X-B3-ParentSpanId", "X-B3-Sampled", "Priority",
    ]

    /// Creates a key; nil for a request that must not share a response: one whose method is not safe (RFC 9110 §9.2.1)
    /// or that has a body, and one with interceptors, a policy, a validation, credentials, cookies or a trust policy of
    /// its own.
    ///
    /// - Parameters:
    ///   - headers: All headers of the request, with the cookies and the authorization that the session adds.
    ///   - ignoring: Further headers that do not change the response. Credentials are never ignored.
    init?(
        _ request: Request, headers: Headers, ignoring: [String] = [], acceptedTypes: AcceptedTypes = .any,
        session: Session.ID? = nil
    ) {
        guard request.method.isSafe, request.body.isNone, request.isShareable else { return nil }
        self.acceptedTypes = acceptedTypes
        self.session = session
        method = request.method
        target = request.target
        cache = request.cache
        timeouts = request.timeouts
        maximumBodySize = request.maximumBodySize
        unixSocketPath = request.unixSocketPath.map { Array($0.utf8) }
        let ignored = Self.ignoredHeaders + ignoring
        self.headers = Headers(
            headers.filter { field in
                !ignored.contains { Headers.namesMatch($0, field.name) } || Headers.isSecret(field.name)
            })
    }
}

extension Request {
    /// A Boolean value that indicates whether only method, URL, headers and body determine the response.
    fileprivate var isShareable: Bool {
        hasNoExtras
            || interceptors.isEmpty && policy == nil && validation == nil && credentials == nil && cookies == nil
                && trust == nil && redirects == nil
    }

    /// A Boolean value that indicates whether another request with the same method, URL, headers and body has the same
    /// response.
    package var mayShare: Bool { isShareable && (body.isNone || body.knownBytes != nil) }
}

extension CoalescingKey: CustomStringConvertible {
    /// The method and the URL, without secrets.
    package var description: String { "\(method) \(target)" }
}

/// Records which request is sent for each key, and which requests wait for it. The sender is one of the callers, and a
/// waiter takes its place if it is cancelled; `LoadTable` of TernImages decides for loads that no caller performs.
struct SharedRequests<Key: Hashable, Sender, Waiter> {
    private struct SharedRequest {
        var sender: Sender
        var waiters: [Waiter] = []
    }

    private var running: [Key: SharedRequest] = [:]

    enum JoinDecision {
        /// No request of this key is running: send it.
        case send
        /// A request of this key is running: wait for it.
        case wait(sender: Sender)
    }

    /// A Boolean value that indicates whether no request is running. For tests only.
    var isEmpty: Bool { running.isEmpty }

    mutating func join(_ key: Key, as sender: Sender, _ waiter: Waiter) -> JoinDecision {
        guard let shared = running[key] else {
            running[key] = SharedRequest(sender: sender)
            return .send
        }
        running[key]?.waiters.append(waiter)
        return .wait(sender: shared.sender)
    }

    mutating func leave(_ key: Key, where condition: (Waiter) -> Bool) {
        running[key]?.waiters.removeAll(where: condition)
    }

    /// Removes the key of a request that has a response, and returns the waiters that receive it.
    mutating func finish(_ key: Key) -> [Waiter] { running.removeValue(forKey: key)?.waiters ?? [] }

    /// Returns the waiter that sends the request next, after the running one was cancelled; nil if none waits.
    mutating func nextSender(_ key: Key) -> Waiter? {
        guard var shared = running[key] else { return nil }
        guard !shared.waiters.isEmpty else {
            running[key] = nil
            return nil
        }
        let nextSender = shared.waiters.removeFirst()
        running[key] = shared
        return nextSender
    }

    mutating func setSender(of key: Key, to sender: Sender) { running[key]?.sender = sender }
}
