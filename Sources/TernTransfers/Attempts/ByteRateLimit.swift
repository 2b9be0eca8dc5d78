import TernConcurrency

/// Limits a flow of bytes with a token bucket: each byte takes a token, and tokens come at the rate. Pure; the time is
/// given.
///
/// The bucket holds a quarter of a second's tokens, so that a download that was held up does not catch up in one burst.
/// Bytes that have arrived cannot be refused, so the number of tokens can be negative: the delay is then the time until
/// it is zero.
struct ByteRateLimit: Sendable, Equatable {
    /// The rate in bytes per second, at least 1; nil for no limit.
    private(set) var rate: Int?
    private var tokens = 0.0
    private var last: Duration

    private static let depth = 0.25

    init(rate: Int?, now: Duration) {
        self.rate = rate.map { max(1, $0) }
        last = now
    }

    /// Changes the rate. Tokens so far came at the old one; a debt is paid at the new one.
    mutating func setRate(_ rate: Int?, now: Duration) {
        refill(now)
        self.rate = rate.map { max(1, $0) }
        if rate == nil { tokens = 0 }
    }

    /// Takes the tokens of bytes that have arrived.
    mutating func take(_ count: Int, now: Duration) {
        refill(now)
        if rate != nil { tokens -= Double(count) }
    }

    /// Returns the time until more bytes may be read; zero if they may be now.
    mutating func delay(now: Duration) -> Duration {
        refill(now)
        guard let rate, tokens < 0 else { return .zero }
        return .seconds(-tokens / Double(rate))
    }

    private mutating func refill(_ now: Duration) {
        defer { last = max(last, now) }
        guard let rate, now > last else { return }
        let elapsed = now - last
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        tokens = min(tokens + seconds * Double(rate), Double(rate) * Self.depth)
    }
}

/// The limit on the rate of one download, which its handle can change at any time.
final class DownloadThrottle: Sendable {
    private let limit: Lock<ByteRateLimit>
    private let time: TransferTime
    /// The limits that the download shares with others.
    private let shared: [DownloadThrottle]

    /// The longest sleep, after which a change of the rate acts at the latest.
    private static let longestSleep = Duration.milliseconds(100)

    init(rate: Int?, time: TransferTime, shared: [DownloadThrottle] = []) {
        self.time = time
        self.shared = shared
        limit = Lock(ByteRateLimit(rate: rate, now: time.elapsed()))
    }

    var rate: Int? {
        get { limit.withLock { $0.rate } }
        set { limit.withLock { $0.setRate(newValue, now: time.elapsed()) } }
    }

    /// Whether there is a limit now.
    var isLimited: Bool { rate != nil || shared.contains { $0.isLimited } }

    /// The reason why a wait ended early.
    enum WaitEnd: Error {
        case cancelled
        case deadline
    }

    /// Counts bytes that have arrived, and waits until more may be read.
    ///
    /// - Parameter transfer: The time of the transfer; nil for one whose requests end in time by themselves.
    /// - Throws: `.cancelled` if the task is cancelled, `.deadline` at the end of the time of the transfer.
    func wait(after count: Int, within transfer: TransferTime? = nil) async throws(WaitEnd) {
        limit.withLock { $0.take(count, now: time.elapsed()) }
        while true {
            let delay = limit.withLock { $0.delay(now: time.elapsed()) }
            if delay <= .zero { break }
            let remaining = transfer?.remaining ?? delay
            if remaining <= .zero { throw .deadline }
            do {
                try await time.sleep(min(delay, remaining, Self.longestSleep))
            } catch {
                throw .cancelled
            }
        }
        for throttle in shared { try await throttle.wait(after: count, within: transfer) }
    }
}

/// The time since the start of a transfer, by its clock and without its pauses.
struct TransferTime: Sendable {
    let sleep: @Sendable (Duration) async throws -> Void
    /// The time that the transfer has; nil for any.
    private let maximum: Duration?
    private let sinceStart: @Sendable () -> Duration
    private let pauses = Pauses()

    private final class Pauses: Sendable {
        let time = Lock(ActiveTime())
    }

    init(_ clock: some Clock<Duration>, maximum: Duration? = nil) {
        let start = clock.now
        sinceStart = { start.duration(to: clock.now) }
        sleep = { try await clock.sleepWithoutDescriptor(for: $0) }
        self.maximum = maximum
    }

    func elapsed() -> Duration { pauses.time.withLock { $0.elapsed(at: sinceStart()) } }

    /// Stops the time until `resume()`.
    func pause() { pauses.time.withLock { $0.pause(at: sinceStart()) } }

    func resume() { pauses.time.withLock { $0.resume(at: sinceStart()) } }

    /// The time that is left; nil for any.
    var remaining: Duration? { maximum.map { $0 - elapsed() } }
}
