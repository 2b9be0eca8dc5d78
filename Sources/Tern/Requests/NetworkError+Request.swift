#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension NetworkError {
    /// Creates the error of a request.
    @inline(never)
    package init(
        _ failure: FailureCause, request: Request, response: ResponseHead? = nil, body: Data = Data(),
        metrics: TaskMetrics? = nil
    ) {
        var fields = Fields(kind: failure.kind, reason: failure.reason)
        fields.method = request.method
        fields.target = request.target
        let held = request.body.isSequence ? request.withoutSequence : request
        fields.request = held.withoutCallbacks
        fields.response = response
        fields.body = body
        fields.metrics = metrics
        fields.underlying = failure.underlying
        fields.isStatedUnprocessed = failure.wasNotProcessed
        fields.http2Code = failure.http2Code
        fields.label = request.label
        self.init(fields)
    }

    /// The request of the caller; nil if none could be created.
    public var request: Request? { untypedRequest as? Request }

    /// Returns the error for another request that has the same end. The task follows with
    /// `identified(task:session:label:)`.
    @inline(never)
    func shared(with request: Request) -> NetworkError { with { $0.label = request.label } }
}
