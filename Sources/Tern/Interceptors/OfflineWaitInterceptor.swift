import TernConcurrency

/// Waits for the network when there is none, and then sends the request again.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [OfflineWaitInterceptor(upTo: .seconds(30)), RetryInterceptor()]
/// ```
///
/// A request is sent first, so a request to a server on this machine or in the same network never waits. It waits only
/// if no connection could be made (no address for the name, no route, no connection in time), the session's
/// `Reachability` reports no network, and the system has no route to the host, if that is an address. Nothing has
/// reached a server by then, so requests with any method are sent again, unless their body can be read only once. The
/// request is sent again when the network is back, and after 1, 2, 4 and more seconds in any case, up to every 30
/// seconds: a host can be reached without a default route. When the time is over, the task fails with the error of the
/// last attempt. While the status is unknown, nothing waits.
public struct OfflineWaitInterceptor: Interceptor {
    private let limit: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - limit: The maximum time of each wait. 5 seconds by default.
    ///   - clock: The clock of the limit.
    public init(upTo limit: Duration = .seconds(5), clock: any Clock<Duration> = ContinuousClock()) {
        self.limit = limit
        self.clock = clock
    }

    /// The failures before any byte of a request was sent.
    private static let kinds: Set<NetworkError.Kind> = [.dns, .connectionFailed, .connectTimedOut, .proxy]

    /// Returns false.
    public var changesRequests: Bool { false }

    /// Returns true.
    public var waitsOnlyInNext: Bool { true }

    /// Sends the request, and again when the network is back or the time of a trial has come.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        try await send(request, next: next, clock: clock)
    }

    private func send<C: Clock<Duration>>(_ request: Request, next: Next, clock: C) async throws -> Reply {
        guard let registry = next.passage?.task.registry else { return try await next(request) }
        let reachability = registry.configuration.reachability
        reachability.startPermanentWatchIfNeeded()
        var trials = RouteTrials()
        var start: C.Instant?
        while true {
            do {
                return try await next(request)
            } catch {
                guard Self.kinds.contains(error.kind), request.body.isReplayable, request.unixSocketPath == nil,
                    reachability.isOffline(to: request.target)
                else { throw error }
                let begun = start ?? clock.now
                start = begun
                let rest = limit - begun.duration(to: clock.now)
                guard rest > .zero else {
                    throw error.adding(
                        "there was no route to \(request.target.host), and the network did not return within \(limit)")
                }
                let limit = min(rest, trials.next())
                let isBack = try await next.cancellable {
                    let isBack = await reachability.returns(within: limit) { delay in
                        try await clock.sleepWithoutDescriptor(for: delay)
                    }
                    try Task.checkCancellation()
                    return isBack
                }
                // Each wait for the network has the whole time.
                if isBack { (trials, start) = (RouteTrials(), nil) }
            }
        }
    }
}
