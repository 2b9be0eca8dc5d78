import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a request has brought so far: the whole of a collected response, or the head of one whose body is to be read.
struct Arrival: Sendable {
    /// What was answered: after a redirect, or a change by an interceptor, not what the task began with.
    let plan: RequestPlan
    var head: ResponseHead
    /// The whole of a collected response; nil while a body is on its way.
    var outcome: TransferOutcome?
    /// The response is taken whatever its status: a redirect that a policy has stopped.
    var isWanted = false
    /// The length of the whole file, if the body is the rest of a continued download; otherwise nil.
    var continuedTotal: Int64?
    private let body: Body

    private enum Body: Sendable {
        /// From the wire.
        case exchange(Exchange)
        /// From an interceptor, which answered in place of a server; taken once.
        case given(GivenBody)
    }

    init(_ exchange: Exchange, _ plan: RequestPlan, head: ResponseHead, outcome: TransferOutcome? = nil) {
        self.plan = plan
        self.head = head
        self.outcome = outcome
        body = .exchange(exchange)
    }

    init(given data: Data, _ plan: RequestPlan, head: ResponseHead, metrics: TaskMetrics) {
        self.plan = plan
        self.head = head
        outcome = TransferOutcome(head: head, body: data, metrics: metrics)
        body = .given(GivenBody(data))
    }

    /// The next pieces of the body; nil at its end, whose reason `ended` tells.
    func chunks() async -> [Data]? {
        switch body {
        case .exchange(let exchange): await exchange.chunks()
        case .given(let body): body.take().map { [$0] }
        }
    }

    /// How the response ended.
    func ended() async -> TransferOutcome {
        if let outcome { return outcome }
        guard case .exchange(let exchange) = body else { return TransferOutcome(head: head) }
        return await exchange.outcome()
    }

    /// Collects at most `limit` bytes of the body in memory and returns the end of the response.
    func collected(upTo limit: Int) async -> TransferOutcome {
        if let outcome { return outcome }
        guard case .exchange(let exchange) = body else { return TransferOutcome(head: head) }
        return await exchange.collected(upTo: limit, expected: exchange.decoder == nil ? head.contentLength : nil)
    }

    /// The error of a response that is refused, with the start of its body; the rest is not awaited.
    func error(_ refusal: TransferFailure, readsBody: Bool = true) async -> NetworkError {
        let limit = readsBody ? max(0, plan.context.configuration.errorBodyLimit) : 0
        var start = outcome?.body.prefix(limit) ?? Data()
        while outcome == nil, start.count < limit, let chunks = await chunks() {
            for chunk in chunks { start.append(chunk.prefix(limit - start.count)) }
        }
        var metrics = outcome?.metrics
        if outcome == nil { metrics = await discard()?.metrics }
        return NetworkError(refusal, request: plan.request, response: head, body: Data(start), metrics: metrics)
    }

    /// Nobody wants the rest: the transfer is given up, and no reader waits for its end.
    @discardableResult
    func discard() async -> TransferOutcome? {
        guard outcome == nil, case .exchange(let exchange) = body else { return nil }
        exchange.record.context.transport.control(exchange.transfer, .cancel)
        return await exchange.outcome()
    }
}

/// A body that did not come from the wire, for one reader.
private final class GivenBody: Sendable {
    private let data: Lock<Data?>

    init(_ data: Data) { self.data = Lock(data.isEmpty ? nil : data) }

    func take() -> Data? { data.withLock { $0.take() } }
}
