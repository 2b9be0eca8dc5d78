extension Request.Body {
    /// How fast a body may be sent at most: a piece, a wait, the next piece.
    ///
    /// Slow links lose what is pushed into them faster than they drain; a paced upload gets through where a full-speed one
    /// times out.
    public struct Throttle: Sendable {
        enum Wait: Sendable {
            case rate(bytesPerSecond: Int)
            case fixed(Duration)
        }

        /// Bytes handed over at a time, at least 1.
        let pieceSize: Int
        let wait: Wait
        let clock: any Clock<Duration>

        /// At most so many bytes a second, in pieces of a tenth of that. A request whose body may have none or fewer fails
        /// with `.invalidRequest`: it would never end.
        public static func bytesPerSecond(_ rate: Int, clock: any Clock<Duration> = ContinuousClock()) -> Self {
            Self(
                pieceSize: min(max(rate / 10, 1), 256 << 10), wait: .rate(bytesPerSecond: rate), clock: clock)
        }

        /// Packets of at most `size` bytes with a wait after each. The defaults are AFNetworking's suggestion for 3G:
        /// 16,384 bytes and 0.2 seconds. A size below 1 counts as 1, a delay below zero as none.
        public static func packets(
            of size: Int = 16_384, delay: Duration = .milliseconds(200),
            clock: any Clock<Duration> = ContinuousClock()
        ) -> Self {
            Self(pieceSize: max(size, 1), wait: .fixed(max(delay, .zero)), clock: clock)
        }

        /// Why nothing can be sent at this pace; nil when something can.
        var problem: String? {
            guard case .rate(let bytesPerSecond) = wait, bytesPerSecond < 1 else { return nil }
            return "the body is throttled to \(bytesPerSecond) bytes a second, and would never be sent"
        }

        /// How long to wait after a piece.
        func delay(after count: Int) -> Duration {
            switch wait {
            case .rate(let bytesPerSecond): .seconds(Double(count) / Double(bytesPerSecond))
            case .fixed(let delay): delay
            }
        }
    }
}
