#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request that has been checked and joined with the session's configuration: all that can be refused is refused here,
/// before any task exists.
///
/// A reference: it is handed from stage to stage, and a copy of its many fields at each of them showed in profiles.
final class RequestPlan: Sendable {
    enum Delivery {
        case collected
        case streamed
    }

    let request: Request
    let context: SessionContext
    /// Complete but for the body, which is produced when the task starts.
    let order: TransferOrder

    init(
        _ request: Request, _ context: SessionContext, delivery: Delivery, isPausable: Bool = false
    ) throws(NetworkError) {
        self.request = request
        self.context = context
        let headers =
            request.headers.isEmpty
            ? context.configuration.headers : context.configuration.headers.overriding(with: request.headers)
        if let problem = Self.problem(of: request, headers, isChecked: request.headers.isEmpty && context.hasValidHeaders)
        {
            throw NetworkError(TransferFailure(.invalidRequest, problem), request: request)
        }
        order = Self.order(for: request, headers, context.configuration, delivery, isPausable: isPausable)
    }

    private init(_ plan: RequestPlan, order: TransferOrder) {
        request = plan.request
        context = plan.context
        self.order = order
    }

    /// The same request with another order.
    func with(_ change: (inout TransferOrder) -> Void) -> RequestPlan {
        var changed = order
        change(&changed)
        return RequestPlan(self, order: changed)
    }

    private static func order(
        for request: Request, _ headers: Headers, _ configuration: borrowing Session.Configuration,
        _ delivery: Delivery, isPausable: Bool
    ) -> TransferOrder {
        var order = TransferOrder(
            method: request.method, target: request.target, headers: headers,
            delivery: delivery == .streamed
                ? .streamed : .collected(limit: request.maximumBodySize ?? configuration.maximumBodySize),
            timeouts: request.timeouts ?? configuration.timeouts, headLimit: configuration.maximumHeadSize,
            decompressionLimit: configuration.maximumDecompressedSize, decompresses: configuration.decompresses)
        order.priority = request.priority
        order.unixSocketPath = request.unixSocketPath ?? configuration.unixSocketPath
        order.isPausable = isPausable || delivery == .streamed
        order.announcesHead = isPausable || delivery == .streamed
        return order
    }

    /// `isChecked`: the headers are the session's own, which were looked at once.
    private static func problem(of request: Request, _ headers: Headers, isChecked: Bool) -> String? {
        guard request.method.isValidToken else { return "the method is not a token (RFC 9110 §9.1)" }
        if !isChecked, let problem = Self.problem(of: headers) { return problem }
        if !request.body.isNone, request.method == .get || request.method == .head || request.method == .trace {
            return "a \(request.method) request cannot have a body (RFC 9110 §9.3)"
        }
        if request.method == .connect { return "CONNECT is for proxies, and not sent as a request" }
        return nil
    }

    static func problem(of headers: Headers) -> String? {
        if let problem = headers.firstProblem() { return problem }
        if headers.contains("Transfer-Encoding") {
            return "Transfer-Encoding is the engine's to set: give the body as a stream without a length"
        }
        return nil
    }

    /// The Content-Length among the caller's headers, when the body's own length is not known.
    var statedLength: Int64? { order.headers["Content-Length"].flatMap { Int64($0) } }
}
