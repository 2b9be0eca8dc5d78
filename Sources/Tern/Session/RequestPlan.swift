#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A request that has been checked and joined with the session's configuration: all that can be refused is refused here,
/// before any task exists.
struct RequestPlan: Sendable {
    enum Delivery {
        case collected
        case streamed
    }

    let request: Request
    let configuration: Session.Configuration
    /// Complete but for the body, which is produced when the task starts.
    var order: TransferOrder

    init(
        _ request: Request, _ configuration: Session.Configuration, delivery: Delivery, isPausable: Bool = false
    ) throws(NetworkError) {
        self.request = request
        self.configuration = configuration
        let headers =
            request.headers.isEmpty ? configuration.headers : configuration.headers.overriding(with: request.headers)
        if let problem = Self.problem(of: request, headers) {
            throw NetworkError(TransferFailure(.invalidRequest, problem), request: request)
        }
        order = TransferOrder(
            method: request.method, target: request.target, headers: headers,
            delivery: delivery == .streamed
                ? .streamed : .collected(limit: request.maximumBodySize ?? configuration.maximumBodySize),
            timeouts: request.timeouts ?? configuration.timeouts, headLimit: configuration.maximumHeadSize,
            decompressionLimit: configuration.maximumDecompressedSize, decompresses: configuration.decompresses)
        order.priority = request.priority
        order.unixSocketPath = request.unixSocketPath ?? configuration.unixSocketPath
        order.isPausable = isPausable || delivery == .streamed
        order.announcesHead = isPausable || delivery == .streamed
    }

    private static func problem(of request: Request, _ headers: Headers) -> String? {
        guard request.method.isValidToken else { return "the method is not a token (RFC 9110 §9.1)" }
        if let problem = headers.firstProblem() { return problem }
        if !request.body.isNone, request.method == .get || request.method == .head || request.method == .trace {
            return "a \(request.method) request cannot have a body (RFC 9110 §9.3)"
        }
        if request.method == .connect { return "CONNECT is for proxies, and not sent as a request" }
        if headers.contains("Transfer-Encoding") {
            return "Transfer-Encoding is the engine's to set: give the body as a stream without a length"
        }
        return nil
    }

    /// The Content-Length among the caller's headers, when the body's own length is not known.
    var statedLength: Int64? { order.headers["Content-Length"].flatMap { Int64($0) } }
}
