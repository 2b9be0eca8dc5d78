/// The time limits of a request. Each limit names itself in the error that it causes. The time during which a task is
/// paused does not count.
///
/// A request with a negative limit fails with an error of kind `.invalidRequest` before anything is sent.
public struct Timeouts: Sendable, Hashable {
    /// The time for name look-up, connecting and the TLS handshake together. 15 seconds by default; nil for no limit.
    public var connect: Duration?
    /// The time without any byte sent or received on a connection. It does not include the time during which the
    /// transfer waits for the *reader* of a streamed response or for the producer of a streamed body. 60 seconds by
    /// default; nil for no limit.
    public var idle: Duration?
    /// The time from the task's start to the last byte of the body, including the wait for a connection, redirects and
    /// challenges. A retry starts with the whole limit again. nil, the default, means no limit: the time that a
    /// response takes depends on its size, and one limit for all responses would end downloads that make progress.
    ///
    /// Set a limit when the size is known. 60 seconds are enough for most API calls. Without a limit, a server that
    /// sends one byte every 59 seconds can keep a task alive indefinitely.
    public var total: Duration?
    /// The time for which the body of a request with ``Request/expectsContinue`` waits for the server's agreement, from the
    /// moment at which a connection carries the request. `.zero` sends the body at once. A pause does not stop this time. Then
    /// the body is sent, because a server need not answer (RFC 9110 §10.1.1). 1 second by default. This time counts for `idle`
    /// and `total`, and reaching the limit is no error. URLSession has a limit of its own.
    public var expectContinue: Duration
    /// The part of `total` that redirects and challenges before this attempt have used.
    package var spent = Duration.zero

    /// Creates limits. The defaults are 15 seconds, 60 seconds, no limit and 1 second.
    public init(
        connect: Duration? = .seconds(15), idle: Duration? = .seconds(60), total: Duration? = nil,
        expectContinue: Duration = .seconds(1)
    ) {
        self.connect = connect
        self.idle = idle
        self.total = total
        self.expectContinue = expectContinue
    }

    /// The reason why no request can meet the limits; nil when the limits are valid.
    var problem: String? {
        let limits = [("connect", connect), ("idle", idle), ("total", total), ("expectContinue", expectContinue)]
        guard let wrong = limits.first(where: { $0.1.map { $0 < .zero } ?? false }) else { return nil }
        return "the time limit \(wrong.0) is negative"
    }

    /// A time limit.
    public enum Phase: String, Sendable, Hashable {
        /// Name look-up, connecting or the TLS handshake took longer than `connect`.
        case connect
        /// No byte was sent or received for `idle`.
        case idle
        /// The whole task took longer than `total`.
        case total
    }
}

extension Request.Body {
    /// Limits the rate at which a body is sent: a piece, a delay, the next piece.
    ///
    /// Slow networks lose data that arrives faster than they can forward it. A limited upload succeeds where one at
    /// full speed times out.
    public struct Throttle: Sendable {
        enum Wait: Sendable {
            case rate(bytesPerSecond: Int)
            case fixed(Duration)
        }

        /// The number of bytes sent at a time, at least 1.
        let pieceSize: Int
        let wait: Wait
        let clock: any Clock<Duration>

        /// Returns a throttle of this many bytes a second, in pieces of a tenth of that. With a rate of 0 or less, a
        /// request with a body fails with `.invalidRequest`, because it would never end.
        public static func bytesPerSecond(_ rate: Int, clock: any Clock<Duration> = ContinuousClock()) -> Self {
            Self(
                pieceSize: min(max(rate / 10, 1), 256 << 10), wait: .rate(bytesPerSecond: rate), clock: clock)
        }

        /// Returns a throttle of pieces of at most `size` bytes with a delay after each. The defaults are
        /// AFNetworking's values for 3G: 16,384 bytes and 0.2 seconds. A size below 1 counts as 1, and a negative delay
        /// as none.
        public static func packets(
            of size: Int = 16_384, delay: Duration = .milliseconds(200),
            clock: any Clock<Duration> = ContinuousClock()
        ) -> Self {
            Self(pieceSize: max(size, 1), wait: .fixed(max(delay, .zero)), clock: clock)
        }

        /// The reason why nothing can be sent at this rate; nil if the rate is valid.
        var problem: String? {
            guard case .rate(let bytesPerSecond) = wait, bytesPerSecond < 1 else { return nil }
            return "the body is throttled to \(bytesPerSecond) bytes a second, and would never be sent"
        }

        /// Returns the delay after a piece of this many bytes.
        func delay(after count: Int) -> Duration {
            switch wait {
            case .rate(let bytesPerSecond): .seconds(Double(count) / Double(bytesPerSecond))
            case .fixed(let delay): delay
            }
        }
    }
}
