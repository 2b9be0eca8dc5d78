#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Which failures are worth another try, and how long to wait before it. Pure: it decides, `RetryInterceptor` acts.
///
/// The wait is drawn evenly between nothing and a bound that doubles with each try (full jitter): clients that failed
/// together do not come back together. A `Retry-After` of the server (RFC 9110 §10.2.3), a number of seconds or a date,
/// is the least that is waited.
public struct RetryPolicy: Sendable {
    /// Tries after the first one. 2 by default.
    public var limit = 2
    /// The bound of the first wait. 0.5 seconds by default.
    public var firstDelay: Duration = .milliseconds(500)
    /// What each bound is multiplied by to give the next. 2 by default.
    public var multiplier = 2.0
    /// The highest bound. 30 seconds by default.
    public var maximumDelay: Duration = .seconds(30)
    /// The longest `Retry-After` that is waited for; a server that asks for more gets no further try, and its answer is
    /// the error. 60 seconds by default.
    public var maximumRetryAfter: Duration = .seconds(60)
    /// Statuses that may pass by themselves: 408, 429, 500, 502, 503 and 504 by default.
    public var statuses: Set<Int> = [408, 429, 500, 502, 503, 504]
    /// Failures of the transport that may pass by themselves.
    public var kinds: Set<NetworkError.Kind> = [
        .dns, .connectionRefused, .connectionFailed, .connectTimedOut, .idleTimedOut, .connectionLost, .truncatedBody,
    ]
    /// Methods that can be repeated without harm: the idempotent ones of RFC 9110 §9.2.2 by default. Another one is sent
    /// again only if it stands here: the server may have acted on it.
    public var methods: Set<Request.Method> = [.get, .head, .options, .trace, .put, .delete]

    /// The defaults, as stated at each property.
    public init() {}

    /// What to do after an attempt.
    public enum Decision: Sendable, Hashable {
        /// Wait, and try again.
        case retry(after: Duration)
        /// What came is the result.
        case giveUp
    }

    /// Decides on the outcome of an attempt.
    ///
    /// - Parameters:
    ///   - failures: How many attempts have failed so far, this one included.
    ///   - now: The time that a date in `Retry-After` is compared with.
    ///   - random: A number between 0 and 1, of which the wait is made.
    public func decision(
        after error: NetworkError, of request: Request, failures: Int, now: Date, random: Double
    ) -> Decision {
        guard failures <= limit, methods.contains(request.method), request.body.isReplayable else { return .giveUp }
        if error.underlying is OutOfDescriptors { return .giveUp }
        if error.kind == .status {
            guard let status = error.status, statuses.contains(status) else { return .giveUp }
        } else {
            guard kinds.contains(error.kind) else { return .giveUp }
        }
        let jittered = bound(failures) * min(max(random, 0), 1)
        guard let asked = error.response.flatMap({ Self.retryAfter($0.headers, now: now) }) else {
            return .retry(after: jittered)
        }
        return asked > maximumRetryAfter ? .giveUp : .retry(after: asked + min(jittered, firstDelay))
    }

    private func bound(_ failures: Int) -> Duration {
        var bound = firstDelay
        for _ in 1..<max(failures, 1) where bound < maximumDelay { bound = bound * multiplier }
        return min(bound, maximumDelay)
    }

    /// How long a server asks to wait; nil when it does not, or says something that is neither a number nor a date.
    static func retryAfter(_ headers: Headers, now: Date) -> Duration? {
        guard let value = headers["Retry-After"] else { return nil }
        if let seconds = Int64(value), seconds >= 0 { return .seconds(min(seconds, 1 << 32)) }
        guard let date = HTTPDate.date(from: value) else { return nil }
        return .seconds(max(0, date.timeIntervalSince(now)))
    }
}
