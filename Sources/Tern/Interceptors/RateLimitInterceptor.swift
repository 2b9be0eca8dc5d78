import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Limits the rate of requests to each host, and waits when a server says that none is left.
///
/// ```swift
/// let client = try Client(baseURL: "https://api.example.com", interceptors: [RateLimitInterceptor(requestsPerSecond:
/// 10)])
/// ```
///
/// Requests to one scheme, host and port are sent in the order in which they come, with the same time between them.
/// After a pause, up to `burst` of them are sent at once. A response whose field `RateLimit`
/// (draft-ietf-httpapi-ratelimit-headers-10) or `RateLimit-Remaining` (its version 3) says that no request is left
/// stops further requests until the time that it states, at most for `maximumWait`.
///
/// A wait does not count for the time limits of a request, and cancelling the task ends it; its turn is then lost.
/// Redirects and the answers to challenges are not limited. Before `RetryInterceptor` in the list, it limits requests;
/// after it, each attempt.
public final class RateLimitInterceptor: Interceptor {
    private let maximumWait: Duration
    private let limiter: Lock<RateLimiter>
    private let elapsed: @Sendable () -> Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - requestsPerSecond: The number of requests to one host in a second. Values below 0.001 count as 0.001.
    ///   - burst: The number of requests that are sent at once after a pause. 1 by default, from 1 to 1,000,000.
    ///   - maximumWait: The longest time for which a server's fields stop requests. 60 seconds by default.
    ///   - clock: The clock of the waits.
    public init(
        requestsPerSecond: Double, burst: Int = 1, maximumWait: Duration = .seconds(60),
        clock: some Clock<Duration> = ContinuousClock()
    ) {
        self.maximumWait = maximumWait
        // Not a number counts as 0.001, too.
        let rate = requestsPerSecond > 0.001 ? requestsPerSecond : 0.001
        limiter = Lock(RateLimiter(interval: .seconds(1 / rate), burst: min(max(burst, 1), 1_000_000)))
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        self.clock = clock
    }

    /// Returns false.
    public var changesRequests: Bool { false }

    /// Returns true.
    public var waitsOnlyInNext: Bool { true }

    /// Waits for the request's turn, and sends it.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        let host = request.target.origin
        let now = elapsed()
        var wait = limiter.withLock { $0.reserve(host, at: now) }
        while wait > .zero {
            try await next.sleep(for: wait, on: clock)
            let now = elapsed()
            wait = limiter.withLock { $0.stop(of: host, at: now) }
        }
        do {
            let reply = try await next(request)
            note(reply.headers, from: host)
            return reply
        } catch {
            if let headers = error.response?.headers { note(headers, from: host) }
            throw error
        }
    }

    private func note(_ headers: Headers, from host: String) {
        guard let wait = RateLimiter.wait(stated: headers) else { return }
        let now = elapsed()
        limiter.withLock { $0.stop(host, until: now + min(wait, maximumWait), at: now) }
    }
}

extension RateLimitInterceptor: CustomReflectable {
    /// An empty mirror. Without it, `dump` would show the hosts of earlier requests.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The turns of the requests to each host. Pure: times are durations from one zero.
struct RateLimiter: Sendable {
    private struct Host: Sendable {
        /// The time of the next turn if no burst is left.
        var next: Duration
        /// The time before which the server wants no request.
        var stop: Duration
    }

    private static let hostLimit = 1_024

    let interval: Duration
    let burst: Int
    private var hosts: [String: Host] = [:]

    init(interval: Duration, burst: Int) {
        self.interval = interval
        self.burst = burst
    }

    /// Takes the next turn of a host, and returns the time until it.
    mutating func reserve(_ name: String, at now: Duration) -> Duration {
        var host = host(name, at: now)
        // The turns of a burst are those that have passed unused.
        let turn = max(host.next, now - interval * (burst - 1))
        host.next = turn + interval
        hosts[name] = host
        return max(turn, host.stop, now) - now
    }

    /// Returns the time until a host accepts requests again.
    func stop(of name: String, at now: Duration) -> Duration { max((hosts[name]?.stop ?? now) - now, .zero) }

    /// Stops the requests to a host until a time.
    mutating func stop(_ name: String, until time: Duration, at now: Duration) {
        var host = host(name, at: now)
        host.stop = max(host.stop, time)
        hosts[name] = host
    }

    private mutating func host(_ name: String, at now: Duration) -> Host {
        if let host = hosts[name] { return host }
        if hosts.count >= Self.hostLimit {
            // A host without a turn or stop ahead is as good as a new one.
            let lastTurn = now - interval * burst
            hosts = hosts.filter { $0.value.next > lastTurn || $0.value.stop > now }
        }
        return Host(next: now - interval * (burst - 1), stop: now)
    }

    /// Returns the time for which the fields of a response ask for no request; nil if they do not.
    static func wait(stated headers: Headers) -> Duration? {
        var waits: [Int] = []
        for value in headers.values(for: "RateLimit") {
            for member in value.split(separator: ",") {
                let parameters = parameters(of: member)
                if parameters["r"] == 0, let time = parameters["t"] { waits.append(time) }
            }
        }
        if let remaining = headers["RateLimit-Remaining"].flatMap(number), remaining == 0,
            let time = headers["RateLimit-Reset"].flatMap(number)
        {
            waits.append(time)
        }
        return waits.max().map { .seconds($0) }
    }

    private static func parameters(of member: Substring) -> [String: Int] {
        var result: [String: Int] = [:]
        for part in member.split(separator: ";").dropFirst() {
            let halves = part.split(separator: "=", maxSplits: 1)
            guard halves.count == 2, let value = number(String(halves[1])) else { continue }
            result[halves[0].filter { $0 != " " && $0 != "\t" }] = value
        }
        return result
    }

    /// Returns a number of at most nine digits.
    private static func number(_ text: String) -> Int? {
        let digits = text.utf8.drop { $0.isHTTPWhitespace }.prefix { !$0.isHTTPWhitespace }
        guard !digits.isEmpty, digits.count <= 9, digits.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
