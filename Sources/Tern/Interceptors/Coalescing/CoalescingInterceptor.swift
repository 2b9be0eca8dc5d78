import TernConcurrency

/// Lets identical safe requests share one answer: while a request is under way, another of the same method, URL and
/// headers is not sent, and gets the same response.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [CoalescingInterceptor(), RetryInterceptor()]
/// ```
///
/// - Only GET, HEAD, OPTIONS and TRACE without a body whose response is collected in memory are shared: never downloads
///   and streams, nor requests with interceptors, a policy, a validation, credentials or cookies of their own.
/// - Requests never share a response if they differ in `Authorization`, `Cookie` or another header that holds a secret,
///   or in the user information of their URLs, or if they belong to different sessions.
/// - A failure is everyone's, as the answer would be. Cancelling one task ends that task alone: if it was the one that
///   asked, one of the others asks anew.
/// - The request that is under way takes over the highest priority of those that wait for it. A response that was shared
///   has no metrics of its own.
public final class CoalescingInterceptor: Interceptor {
    private enum Landing: Sendable {
        case reply(Reply)
        case failed(any Error)
        /// The one before has gone: ask yourself.
        case lead
        case cancelled
    }

    private let ignoredHeaders: [String]
    private let flights = Lock(Flights<CoalescingKey, AnySessionTask, Waiter<Landing>>())

    /// - Parameter ignoredHeaders: Names of headers that differ from request to request and say nothing about the answer,
    ///   besides those of tracing (`traceparent`, `X-Request-ID` and their kin). Credentials cannot be ignored.
    public init(ignoring ignoredHeaders: [String] = []) { self.ignoredHeaders = ignoredHeaders }

    /// Sends the request, or waits for the answer to one that is already under way.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        guard let key = key(of: request, next.plan) else { return try await next(request) }
        let waiter = Waiter<Landing>()
        switch flights.withLock({ $0.join(key, as: next.task, waiter) }) {
        case .lead:
            return try await lead(key, request, next)
        case .wait(let leader):
            if leader.priority < request.priority { leader.priority = request.priority }
        }
        switch await waiter.wait(cancelled: .cancelled) {
        case .reply(let reply):
            return reply
        case .failed(let error):
            throw error
        case .lead:
            flights.withLock { $0.lead(key, by: next.task) }
            return try await lead(key, request, next)
        case .cancelled:
            flights.withLock { flights in flights.leave(key) { $0 === waiter } }
            throw NetworkError(.cancelled, request: request)
        }
    }

    private func key(of request: Request, _ plan: RequestPlan) -> CoalescingKey? {
        guard plan.delivery == .collected else { return nil }
        return CoalescingKey(
            request, headers: plan.context.headers.fields(for: request.target).overriding(with: request.headers),
            ignoring: ignoredHeaders, fitting: plan.fitting, session: plan.context.id)
    }

    private func lead(_ key: CoalescingKey, _ request: Request, _ next: Next) async throws -> Reply {
        do {
            let reply = try await next(request)
            land(key, .reply(Reply(sharing: reply)))
            return reply
        } catch {
            if error.isCancelled { handOver(key) } else { land(key, .failed(error)) }
            throw error
        }
    }

    private func land(_ key: CoalescingKey, _ landing: Landing) {
        for waiter in flights.withLock({ $0.land(key) }) { waiter.resume(returning: landing) }
    }

    /// To the first who is still there: one that is cancelled at this moment has its own answer already.
    private func handOver(_ key: CoalescingKey) {
        while let successor = flights.withLock({ $0.successor(key) }) {
            if successor.resume(returning: .lead) { return }
        }
    }
}

extension CoalescingInterceptor: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the requests under way.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
