import TernConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Sends a request again after a temporary failure.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [RetryInterceptor()]
/// ```
///
/// The last failure is the task's error. Its `attempts`, its `attemptsDuration` and its text cover all attempts; its
/// `metrics` cover the last one. `Timeouts.total` limits all attempts together: a delay that would pass it is not waited
/// for. Cancelling the task ends a wait at once. For downloads and streams, retries cover everything up to the
/// response's head; use `resumeData` for data that is lost later. The interceptor leaves event streams and durable
/// transfers alone: they retry by their own rules.
public struct RetryInterceptor: Interceptor {
    private let policy: RetryPolicy
    private let budget: RetryBudget
    private let retriesBeginWithin: Duration?
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - policy: The failures to retry, and the delays.
    ///   - budget: The limit on the share of retries among all requests of this interceptor, or of all interceptors
    ///     that share the budget.
    ///   - retriesBeginWithin: The time from the start of the first attempt after which no retry begins; a delay that
    ///     would pass it is not waited for. An attempt that has begun goes on: `Timeouts.total` limits all of them
    ///     together, and `Timeouts.attempt` each one. nil, the default, for no limit.
    ///   - clock: The clock of the delays.
    public init(
        _ policy: RetryPolicy = RetryPolicy(), budget: RetryBudget = RetryBudget(), retriesBeginWithin: Duration? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.policy = policy
        self.budget = budget
        self.retriesBeginWithin = retriesBeginWithin
        self.clock = clock
    }

    /// Returns false.
    public var changesRequests: Bool { false }

    /// Returns true.
    public var waitsOnlyInNext: Bool { true }

    /// Sends the request until it succeeds, or the policy or the budget ends the attempts.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        if request.isRetriedByCaller { return try await next(request) }
        budget.deposit()
        return try await send(request, next: next, clock: clock)
    }

    private func send<C: Clock<Duration>>(_ request: Request, next: Next, clock: C) async throws -> Reply {
        let start = clock.now
        var failures = 0
        while true {
            do {
                return try await next(request)
            } catch {
                failures += 1
                let decision = policy.decision(
                    after: error, of: request, failures: failures, now: Date(), random: Double.random(in: 0...1))
                let elapsed = start.duration(to: clock.now)
                func last() -> NetworkError {
                    failures == 1 || error.isCancelled ? error : error.ending(attempts: failures, in: elapsed)
                }
                guard case .retry(let delay) = decision else { throw last() }
                if let obstacle = obstacle(to: delay, after: elapsed, timeLeft: next.timeLeft) {
                    throw last().adding("not tried again: \(obstacle)")
                }
                guard budget.withdraw() else { throw last().adding("not tried again: the retry budget is spent") }
                try await next.sleep(for: delay, on: clock)
            }
        }
    }

    /// Returns the limit of time against an attempt that the policy would make; nil if none forbids it.
    private func obstacle(to delay: Duration, after elapsed: Duration, timeLeft: Duration?) -> String? {
        let attempt = "an attempt after \(delay.inSeconds) would begin"
        if let retriesBeginWithin, elapsed + delay > retriesBeginWithin {
            return "\(attempt) later than the limit retriesBeginWithin, \(retriesBeginWithin), permits"
        }
        if let timeLeft, delay >= timeLeft {
            return "\(attempt) after the end of Timeouts.total, \(timeLeft.inSeconds) from now"
        }
        return nil
    }
}

/// Decides which failures are retried, and after which delay.
///
/// The delay is drawn evenly between zero and a bound that doubles with each attempt (full jitter), so that clients
/// that failed together do not return together. A `Retry-After` field (RFC 9110 §10.2.3), in seconds or as a date, is
/// the minimum delay; one that is neither is ignored.
public struct RetryPolicy: Sendable {
    /// The number of retries after the first attempt. 2 by default.
    public var limit = 2
    /// The bound of the first delay. 0.5 seconds by default.
    public var firstDelay: Duration = .milliseconds(500)
    /// The factor from one bound to the next. 2 by default.
    public var multiplier = 2.0
    /// The highest bound. 30 seconds by default.
    public var maximumDelay: Duration = .seconds(30)
    /// The longest `Retry-After` that is waited for. If a server asks for more, the request is not retried and its
    /// response becomes the error. 60 seconds by default.
    public var maximumRetryAfter: Duration = .seconds(60)
    /// The statuses to retry: 408, 429, 500, 502, 503 and 504 by default.
    public var statuses: Set<Int> = [408, 429, 500, 502, 503, 504]
    /// The transport failures to retry.
    public var kinds: Set<NetworkError.Kind> = [
        .dns, .connectionRefused, .connectionFailed, .queueTimedOut, .connectTimedOut, .idleTimedOut,
        .attemptTimedOut, .connectionLost, .truncatedBody,
    ]
    /// The methods that can be repeated without harm: by default the idempotent ones of RFC 9110 §9.2.2. Requests with
    /// other methods are never retried, because the server may have acted on them.
    public var methods: Set<Request.Method> = [.get, .head, .options, .trace, .put, .delete]

    /// Creates a policy with the defaults of its properties.
    public init() {}

    /// The decision after an attempt.
    public enum Decision: Sendable, Hashable {
        /// Wait, then try again.
        case retry(after: Duration)
        /// Return the result.
        case giveUp
    }

    /// Decides on the result of an attempt.
    ///
    /// - Parameters:
    ///   - failures: The number of failed attempts so far, including this one.
    ///   - now: The time to compare a date in `Retry-After` with.
    ///   - random: A number between 0 and 1 from which the delay is computed.
    public func decision(
        after error: NetworkError, of request: Request, failures: Int, now: Date, random: Double
    ) -> Decision {
        guard admits(error, of: request, failures: failures) else { return .giveUp }
        let jittered = bound(failures) * min(max(random, 0), 1)
        guard let asked = error.response.flatMap({ RetryAfter.delay(in: $0.headers, now: now) }) else {
            return .retry(after: jittered)
        }
        return asked > maximumRetryAfter ? .giveUp : .retry(after: asked + min(jittered, firstDelay))
    }

    /// Returns whether the policy retries such a failure, whatever wait the server asks for.
    package func admits(_ error: NetworkError, of request: Request, failures: Int) -> Bool {
        guard failures <= limit, methods.contains(request.method), request.body.isReplayable,
            !(error.underlying is OutOfDescriptors)
        else { return false }
        return error.kind == .status ? error.status.map(statuses.contains) ?? false : kinds.contains(error.kind)
    }

    private func bound(_ failures: Int) -> Duration {
        var bound = firstDelay
        for _ in 1..<max(failures, 1) where bound < maximumDelay { bound = bound * multiplier }
        return min(bound, maximumDelay)
    }
}

extension NetworkError {
    /// A Boolean value that indicates whether another attempt can succeed and does no harm: a `RetryPolicy` with its
    /// defaults retries such a failure. False for a request that is not idempotent or whose body can be sent only once.
    public var isRetryable: Bool {
        guard let request else { return false }
        return RetryPolicy().admits(self, of: request, failures: 1)
    }
}

/// Limits retries across all requests, so that they cannot overload a failing server. Each request adds `ratio` tokens
/// and each retry takes one; without a token, a failed request is not retried.
///
/// Share one budget among the interceptors of all sessions that use the same service.
public final class RetryBudget: Sendable {
    private let tokens: Lock<Double>
    private let ratio: Double
    private let capacity: Double

    /// Creates a full budget.
    ///
    /// - Parameters:
    ///   - ratio: The retries for each request in the long run. 0.2 by default: one for five requests.
    ///   - reserve: The number of retries that are possible before the ratio applies. 10 by default.
    public init(ratio: Double = 0.2, reserve: Int = 10) {
        self.ratio = max(0, ratio)
        capacity = Double(max(0, reserve))
        tokens = Lock(Double(max(0, reserve)))
    }

    /// Adds the tokens of one request.
    func deposit() {
        tokens.withLock { $0 = min(capacity, $0 + ratio) }
    }

    /// Takes the token of one retry. Returns false if there is none.
    func withdraw() -> Bool {
        tokens.withLock { tokens in
            // The tolerance covers rounding: five deposits of 0.2 add up to slightly less than one.
            guard tokens > 0.999_999 else { return false }
            tokens -= 1
            return true
        }
    }
}
