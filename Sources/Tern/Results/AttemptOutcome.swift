#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The end of an attempt. A class, because it passes through many stages from the loop to the caller, and copies of its
/// many fields showed in profiles.
package final class AttemptOutcome: Sendable {
    package let head: ResponseHead?
    /// The body of a collected response that did not arrive in chunks, or its start when the attempt failed.
    package let body: Data
    package let failure: FailureCause?
    /// Whether there is a failure. Known without a copy of it.
    package let hasFailed: Bool
    package let metrics: TaskMetrics
    package let trailers: Headers

    package init(
        head: consuming ResponseHead? = nil, body: consuming Data = Data(), failure: FailureCause? = nil,
        metrics: consuming TaskMetrics = TaskMetrics(), trailers: Headers = [:]
    ) {
        self.head = head
        self.body = body
        hasFailed = failure != nil
        self.failure = failure
        self.metrics = metrics
        self.trailers = trailers
    }

    /// The outcome without its body, so that the body is released.
    var withoutBody: AttemptOutcome {
        body.isEmpty ? self : AttemptOutcome(head: head, failure: failure, metrics: metrics, trailers: trailers)
    }

    /// Returns the same outcome with a body that was collected from its chunks, and the reason if the body is
    /// incomplete.
    func collected(_ body: Data, refusal: FailureCause?) -> AttemptOutcome {
        AttemptOutcome(head: head, body: body, failure: refusal ?? failure, metrics: metrics, trailers: trailers)
    }

    /// Returns the outcome of an attempt that was not the first.
    func counted(_ transactions: Int) -> AttemptOutcome {
        var metrics = metrics
        metrics.transactions = transactions
        return AttemptOutcome(head: head, body: body, failure: failure, metrics: metrics, trailers: trailers)
    }
}
