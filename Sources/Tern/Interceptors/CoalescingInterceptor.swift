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
///   Downloads, streams, and requests with interceptors, a policy, a validation, redirects, credentials or cookies of
///   their own are never shared.
/// - Requests never share a response if they differ in `Authorization`, `Cookie` or another header that holds a secret,
///   those included that the session adds, or in the user information of their URLs, in `cache` or in `timeouts`, or if
///   they belong to different sessions. Place an interceptor that adds credentials before this one: fields that are
///   added later do not keep requests apart.
/// - Each task keeps its own cancellation, time limits, label and pause. Cancelling one task ends that task only, and
///   the request goes on as long as another waits for it, also if the task that sent it is cancelled or paused. The
///   time limits of a waiting task count from its own beginning. If the request fails because of a limit of the
///   task that sent it, one of the others sends it again, with the time that it has left.
/// - Any other failure is shared like a response.
/// - The running request has the highest priority of those that wait for it. Each waiting task sees its progress. A
///   shared response has no metrics of its own.
public final class CoalescingInterceptor: Interceptor {
    private enum Outcome: Sendable {
        case reply(Reply)
        case failed(NetworkError)
        /// The request before was cancelled, or its own time has passed: send the request.
        case send(number: UInt64)
        case timedOut(Timeouts.Phase)
        case cancelled
    }

    private struct Waiting: Sendable {
        let waiter: Waiter<Outcome>
        let task: TaskRecord
    }

    private typealias Requests = SharedRequests<CoalescingKey, TaskRecord, Waiting>

    private let ignoredHeaders: [String]
    private let running = Lock(Requests())

    /// - Parameter ignoredHeaders: The names of headers that differ between requests without changing the response,
    ///   besides those of tracing (`traceparent`, `X-Request-ID` and similar). Credentials cannot be ignored.
    public init(ignoring ignoredHeaders: [String] = []) { self.ignoredHeaders = ignoredHeaders }

    /// Returns false.
    public var changesRequests: Bool { false }

    /// Sends the request, or waits for the response to one that is already running.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        guard let passage = next.passage, let key = key(of: request, passage.prepared) else {
            return try await next(request)
        }
        let record = passage.task
        let waiting = Waiting(waiter: Waiter(), task: record)
        let began = MonotonicClock.nanoseconds()
        let sender: TaskRecord
        switch running.withLock({ $0.join(key, as: record, waiting, priority: request.priority) }) {
        case .send(let number): return try await send(request, as: number, for: key, of: record, next: next)
        case .wait(let other): sender = other
        }
        if sender.priority < request.priority { sender.priority = request.priority }
        // The task that sent the request can be paused.
        sender.continueForOthers()
        sender.meter.addFollower(record.meter)
        defer { sender.meter.removeFollower(record.meter) }
        switch await wait(waiting, for: key, of: request) {
        case .reply(let reply):
            return reply
        case .failed(let error):
            throw error.shared(with: request)
        case .send(let number):
            let others = running.withLock {
                $0.setSender(of: key, number, to: record, priority: request.priority)
            }
            // They follow this task from now on.
            sender.meter.dropFollower(record.meter)
            for other in others {
                sender.meter.dropFollower(other.task.meter)
                record.meter.addFollower(other.task.meter)
            }
            var request = request
            request.timeouts.spent += .nanoseconds(Int64(clamping: MonotonicClock.nanoseconds() &- began))
            return try await send(request, as: number, for: key, of: record, next: next)
        case .timedOut(let limit):
            throw NetworkError(.waitingTimedOut(limit), request: request)
        case .cancelled:
            throw NetworkError(.cancelled, request: request)
        }
    }

    /// Waits for the running request, within the time limits of the waiting one.
    private func wait(_ waiting: Waiting, for key: CoalescingKey, of request: Request) async -> Outcome {
        let registry = waiting.task.registry
        var timeouts = request.timeouts(in: registry.configuration.timeouts)
        timeouts.left = waiting.task.timeLeft
        let timer = timeouts.end.map { end in
            // Owned and cancelled here.
            Task { [self] in
                // An error means that the wait ended in time.
                guard (try? await registry.clock.sleepWithoutDescriptor(for: end.after)) != nil else { return }
                leave(waiting, of: key, .timedOut(end.limit))
            }
        }
        defer { timer?.cancel() }
        return await waiting.waiter.wait(onCancel: { leave(waiting, of: key, .cancelled) })
    }

    /// Ends the wait of a task by itself. The request goes on for the others, and ends with the last of them.
    private func leave(_ waiting: Waiting, of key: CoalescingKey, _ outcome: Outcome) {
        guard waiting.waiter.resume(returning: outcome) else { return }
        perform(running.withLock { $0.leave(key) { $0.waiter === waiting.waiter } })
    }

    private func perform(_ action: Requests.LeaveAction) {
        switch action {
        case .none: break
        // Another priority is that of a change by the caller.
        case .lower(let sender, let old, let new): if sender.priority == old { sender.priority = new }
        case .alone(let sender, let old, let new):
            if old != new, sender.priority == old { sender.priority = new }
            sender.pauseAgain()
        case .cancel(let sender): sender.cancelWork()
        }
    }

    private func key(of request: Request, _ prepared: PreparedRequest) -> CoalescingKey? {
        // `try?`: a request that cannot be prepared is not shared, and `next` throws the error.
        guard prepared.delivery == .collected, let own = try? prepared.replacing(request) else { return nil }
        return CoalescingKey(
            request, headers: own.fieldsAsSent(with: own.presentSessionFields), ignoring: ignoredHeaders,
            acceptedTypes: prepared.acceptedTypes, session: prepared.registry.sessionID)
    }

    private func send(
        _ request: Request, as number: UInt64, for key: CoalescingKey, of record: TaskRecord, next: Next
    ) async throws -> Reply {
        record.setSharing(
            TaskSharing {
                self.running.withLock { $0.hasWaiters(key, number) }
            } leave: {
                guard let action = self.running.withLock({ $0.leaveAsSender(key, number) }) else { return false }
                self.perform(action)
                return true
            })
        defer { record.setSharing(nil) }
        do {
            let reply = try await next(request)
            finish(key, number, with: .reply(Reply(sharing: reply)))
            return reply
        } catch {
            // Its cancellation and its time limits are those of this task alone.
            if error.isCancelled || error.isOutOfTime {
                resend(key, number)
            } else {
                finish(key, number, with: .failed(error))
            }
            throw error
        }
    }

    private func finish(_ key: CoalescingKey, _ number: UInt64, with outcome: Outcome) {
        for waiting in running.withLock({ $0.finish(key, number) }) { waiting.waiter.resume(returning: outcome) }
    }

    /// Asks the first task that still waits to send the request.
    private func resend(_ key: CoalescingKey, _ number: UInt64) {
        while let next = running.withLock({ $0.nextSender(key, number) }) {
            if next.waiter.resume(returning: .send(number: number)) { return }
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
        let ignored = Headers.tracingNames + ignoring
        self.headers = Headers(
            headers.filter { field in
                !ignored.contains { Headers.namesMatch($0, field.name) } || Headers.isSecret(field.name)
            })
    }
}

extension Request {
    /// Whether only method, URL, headers and body determine the response.
    fileprivate var isShareable: Bool {
        interceptors.isEmpty && policy == nil && validation == nil && credentials == nil && cookies == nil
            && trust == nil && redirects == nil
    }

    /// Whether another request with the same method, URL, headers and body has the same response.
    package var mayShare: Bool { isShareable && (body.isNone || body.knownBytes != nil) }
}

extension CoalescingKey: CustomStringConvertible {
    /// The method and the URL, without secrets.
    package var description: String { "\(method) \(target)" }
}
