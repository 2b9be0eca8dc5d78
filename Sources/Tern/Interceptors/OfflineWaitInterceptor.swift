import TernConcurrency

/// Waits for the network when there is none, and then sends the request again.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [OfflineWaitInterceptor(upTo: .seconds(30)), RetryInterceptor()]
/// ```
///
/// A request is sent first, so a request to a server on this machine or in the same network never waits. It waits only
/// if no connection could be made (no address for the name, no route, no connection in time) and the session's
/// `Reachability` reports no network. Nothing has reached a server by then, so requests with any method are sent again,
/// unless their body can be read only once. When the time is over, the task fails with the error of the first attempt.
/// While the status is unknown, nothing waits.
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

    /// Sends the request, and again when the network is back.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        let reachability = next.prepared.registry.configuration.reachability
        reachability.startPermanentWatchIfNeeded()
        while true {
            do {
                return try await next(request)
            } catch {
                guard Self.kinds.contains(error.kind), request.body.isReplayable, reachability.status == .unreachable
                else { throw error }
                if await isBack(reachability) { continue }
                if Task.isCancelled { throw NetworkError(.cancelled, request: request) }
                throw error.adding("the network was unreachable and did not return within \(limit)")
            }
        }
    }

    /// Returns whether the network was reachable, or its status unknown, before the time was over or the task was
    /// cancelled.
    private func isBack(_ reachability: Reachability) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await status in reachability.statuses where status != .unreachable { return true }
                return false
            }
            group.addTask { [limit, clock] in
                // Cancelled: the status changed first, or the task was cancelled.
                _ = try? await clock.sleepWithoutDescriptor(for: limit)
                return false
            }
            let isBack = await group.next() ?? false
            group.cancelAll()
            return isBack
        }
    }
}
