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
