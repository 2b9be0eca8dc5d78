import TernConcurrency

/// Waits for the network when there is none, and then sends again.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [OfflineWaitInterceptor(upTo: .seconds(30)), RetryInterceptor()]
/// ```
///
/// A request is sent first: what needs no way out, such as a server on this machine or in the same network, never waits.
/// Only when no connection could be made (no address for the name, no route, no connection in time), and the session's
/// `Reachability` says that there is no way out, does it wait for one, and send again. Nothing has reached a server by
/// then, so every method is sent again, unless its body can be read only once. When the time is over the task fails with
/// the error that it had, which says so. Where the status is unknown nothing waits.
public struct OfflineWaitInterceptor: Interceptor {
    private let limit: Duration
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - limit: How long it waits at most, each time. 5 seconds by default.
    ///   - clock: The clock of that limit.
    public init(upTo limit: Duration = .seconds(5), clock: any Clock<Duration> = ContinuousClock()) {
        self.limit = limit
        self.clock = clock
    }

    /// Failures before any byte of a request was sent.
    private static let kinds: Set<NetworkError.Kind> = [.dns, .connectionFailed, .connectTimedOut, .proxy]

    /// Sends the request, and again when the network is back.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        let reachability = next.plan.context.configuration.reachability
        reachability.prepare()
        while true {
            do {
                return try await next(request)
            } catch {
                guard Self.kinds.contains(error.kind), request.body.isReplayable, reachability.status == .unreachable
                else { throw error }
                if await isBack(reachability) { continue }
                if Task.isCancelled { throw NetworkError(.cancelled, request: request) }
                throw error.adding("there was no network, and none came within \(limit)")
            }
        }
    }

    /// Whether there was a way out, or nothing known of it, before the time was over or the task was cancelled.
    private func isBack(_ reachability: Reachability) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await status in reachability.statuses where status != .unreachable { return true }
                return false
            }
            group.addTask { [limit, clock] in
                // Cancelled: the other has ended first, or nobody waits any more.
                _ = try? await clock.sleepWithoutDescriptor(for: limit)
                return false
            }
            let isBack = await group.next() ?? false
            group.cancelAll()
            return isBack
        }
    }
}
