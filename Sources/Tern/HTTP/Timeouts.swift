/// The time limits of a request. Each limit names itself in the error that it causes. The time during which a task is
/// paused does not count.
///
/// A request with a negative limit fails with an error of kind `.invalidRequest` before anything is sent.
///
/// A request has the limits of its session, and can replace all of them or single ones:
///
/// ```swift
/// request.timeouts.total = .seconds(5)               // the others stay those of the session
/// request.timeouts = Timeouts(total: .seconds(5))    // the others are the defaults of this type
/// ```
public struct Timeouts: Sendable, Hashable {
    /// The time for name look-up, connecting and the TLS handshake together. 15 seconds by default; nil for no limit.
    public var connect: Duration? { didSet { stated.insert(.connect) } }
    /// The time without any byte sent or received on a connection. It does not include the time during which the
    /// transfer waits for the *reader* of a streamed response or for the producer of a streamed body. 60 seconds by
    /// default; nil for no limit.
    public var idle: Duration? { didSet { stated.insert(.idle) } }
    /// The time of one attempt: from the request that an interceptor such as `RetryInterceptor` sends to the last byte
    /// of the body and the decoded value, including the wait for a connection, redirects and challenges. A retry starts
    /// with the whole limit again, or with what is left of `total`. nil by default: no limit.
    public var attempt: Duration? { didSet { stated.insert(.attempt) } }
    /// The time of the whole task: from the call, or the first `resume()` of a handle, to the last byte of the body,
    /// and to the decoded value if the call returns one. It includes all attempts and the waits between them,
    /// interceptors, policies and credential providers, the wait for a connection, redirects and challenges. For a
    /// stream and a WebSocket handshake, it also covers all that precedes their beginning.
    ///
    /// Waits end then, the code of interceptors, policies and providers is cancelled, and the task fails with an error
    /// of kind `.totalTimedOut`. Decoding of JSON ends, too; another decoder is not interrupted, and a value that comes
    /// too late is not returned. A durable transfer (TernTransfers) has this limit for each of its requests.
    ///
    /// nil, the default, means no limit: the time that a response takes depends on its size, and one limit for all
    /// responses would end downloads that make progress. Set a limit when the size is known. 60 seconds are enough for
    /// most API calls. Without a limit, a server that sends one byte every 59 seconds can keep a task alive
    /// indefinitely. The reader of a streamed body receives the error at its next read, and what it has not read is
    /// dropped.
    ///
    /// The limit is that of the request with which the task is created. An interceptor can shorten it: a limit in the
    /// request that it sends counts from there.
    public var total: Duration? { didSet { stated.insert(.total) } }
    /// The time for which the body of a request with ``Request/expectsContinue`` waits for the server's agreement, from
    /// the moment at which a connection carries the request. `.zero` sends the body at once. A pause does not stop this
    /// time. Then the body is sent, because a server need not answer (RFC 9110 §10.1.1). 1 second by default. This time
    /// counts for the other limits, and reaching the limit is no error. URLSession has a limit of its own.
    public var expectContinue: Duration { didSet { stated.insert(.expectContinue) } }
    /// The time for which a request waits for a connection, because those to its host are in use and
    /// `maximumConnectionsPerHost` or `maximumConnections` allows no more. It ends before anything is sent, with an
    /// error of kind `.queueTimedOut`. nil by default: the request waits until one is free, at most for `attempt` and
    /// `total`; it ends after 30 seconds while streams that last long, such as event streams, hold all connections that
    /// it could get. Applies to Linux only.
    public var queue: Duration? { didSet { stated.insert(.queue) } }
    /// The part of `attempt`, and of `total`, that redirects and challenges before this request have used.
    package var spent = Duration.zero
    /// The rest of the limit of the task when the request is sent; nil for a task without a limit.
    package var left: Duration?
    /// The limits that this value states. The others are those of the session.
    private var stated: Limits

    private struct Limits: OptionSet, Sendable, Hashable {
        let rawValue: UInt8
        static let connect = Limits(rawValue: 1)
        static let idle = Limits(rawValue: 2)
        static let total = Limits(rawValue: 4)
        static let expectContinue = Limits(rawValue: 8)
        static let queue = Limits(rawValue: 16)
        static let attempt = Limits(rawValue: 32)
        static let all: Limits = [.connect, .idle, .attempt, .total, .expectContinue, .queue]
    }

    /// The limits of the session. A limit that is set replaces that of the session; one that is read before is the
    /// default of this type.
    public static var inherited: Timeouts {
        var timeouts = Timeouts()
        timeouts.stated = []
        return timeouts
    }

    /// Creates limits. The defaults are 15 seconds, 60 seconds, no limit, no limit, 1 second and no limit.
    public init(
        connect: Duration? = .seconds(15), idle: Duration? = .seconds(60), attempt: Duration? = nil,
        total: Duration? = nil, expectContinue: Duration = .seconds(1), queue: Duration? = nil
    ) {
        self.connect = connect
        self.idle = idle
        self.attempt = attempt
        self.total = total
        self.expectContinue = expectContinue
        self.queue = queue
        stated = .all
    }

    /// Returns these limits, with those of the session in place of the limits that this value does not state.
    package func completed(by session: Timeouts) -> Timeouts {
        if stated == .all { return self }
        var result = session
        result.spent = spent
        if stated.contains(.connect) { result.connect = connect }
        if stated.contains(.idle) { result.idle = idle }
        if stated.contains(.attempt) { result.attempt = attempt }
        if stated.contains(.total) { result.total = total }
        if stated.contains(.expectContinue) { result.expectContinue = expectContinue }
        if stated.contains(.queue) { result.queue = queue }
        return result
    }

    /// The time after which the request ends, with the limit that is the reason; nil without such a limit.
    package var end: (after: Duration, limit: Phase)? {
        let limits = [
            (attempt.map { $0 - spent }, Phase.attempt), (total.map { $0 - spent }, .total), (left, .total),
        ]
        var end: (after: Duration, limit: Phase)?
        for case (let time?, let limit) in limits {
            let after = max(.zero, time)
            if after < end?.after ?? .nanoseconds(Int64.max) { end = (after, limit) }
        }
        return end
    }

    /// The reason why no request can meet the limits; nil when the limits are valid.
    var problem: String? {
        let limits = [
            ("connect", connect), ("idle", idle), ("attempt", attempt), ("total", total),
            ("expectContinue", expectContinue), ("queue", queue),
        ]
        guard let wrong = limits.first(where: { $0.1.map { $0 < .zero } ?? false }) else { return nil }
        return "the time limit \(wrong.0) is negative"
    }

    /// A time limit.
    public enum Phase: String, Sendable, Hashable {
        /// No connection was free for `queue`.
        case queue
        /// Name look-up, connecting or the TLS handshake took longer than `connect`.
        case connect
        /// No byte was sent or received for `idle`.
        case idle
        /// One attempt took longer than `attempt`.
        case attempt
        /// The whole task took longer than `total`.
        case total
    }
}

extension Timeouts: CustomStringConvertible, CustomReflectable {
    /// The limits with their units, such as `connect 15.0 seconds, idle 60.0 seconds, no total limit`. Those of the
    /// session are left out.
    public var description: String {
        let limits = [
            (Limits.connect, "connect", connect), (.idle, "idle", idle), (.total, "total", total),
            (.expectContinue, "expectContinue", expectContinue),
        ]
        var texts = limits.filter { stated.contains($0.0) }.map { limit in
            limit.2.map { "\(limit.1) \($0)" } ?? "no \(limit.1) limit"
        }
        // Few requests have one.
        if let attempt { texts.append("attempt \(attempt)") }
        if let queue { texts.append("queue \(queue)") }
        return texts.isEmpty ? "those of the session" : texts.joined(separator: ", ")
    }

    /// The limits.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "connect": connect as Any, "idle": idle as Any, "attempt": attempt as Any, "total": total as Any,
                "expectContinue": expectContinue, "queue": queue as Any,
            ])
    }
}
