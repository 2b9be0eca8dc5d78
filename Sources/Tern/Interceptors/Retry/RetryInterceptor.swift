import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends a request again after a failure that may pass by itself.
///
/// ```swift
/// var configuration = Session.Configuration()
/// configuration.interceptors = [RetryInterceptor()]
/// ```
///
/// The last failure is the task's error. Its `attempts`, its `attemptsDuration` and its text cover all attempts; its
/// `metrics` cover the last one. Cancelling the task ends a wait at once. For downloads and streams, retries cover
/// everything up to the response's head; use `resumeData` for what is lost later.
public struct RetryInterceptor: Interceptor {
    private let policy: RetryPolicy
    private let budget: RetryBudget
    private let clock: any Clock<Duration>

    /// - Parameters:
    ///   - policy: What is worth another try, and when.
    ///   - budget: Limits the share of retries among all requests of this interceptor, or of all that share it.
    ///   - clock: The clock that waits.
    public init(
        _ policy: RetryPolicy = RetryPolicy(), budget: RetryBudget = RetryBudget(),
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.policy = policy
        self.budget = budget
        self.clock = clock
    }

    /// Sends the request until it succeeds, or the policy or the budget ends it.
    public func intercept(_ request: Request, next: Next) async throws -> Reply {
        budget.deposit()
        return try await retrying(request, next, clock)
    }

    private func retrying<C: Clock<Duration>>(_ request: Request, _ next: Next, _ clock: C) async throws -> Reply {
        let start = clock.now
        var failures = 0
        while true {
            do {
                return try await next(request)
            } catch {
                failures += 1
                let decision = policy.decision(
                    after: error, of: request, failures: failures, now: Date(), random: Double.random(in: 0...1))
                guard case .retry(let delay) = decision, budget.withdraw() else {
                    if failures == 1 || error.isCancelled { throw error }
                    throw error.ending(attempts: failures, in: start.duration(to: clock.now))
                }
                try await clock.sleepWithoutDescriptor(for: delay)
            }
        }
    }
}
