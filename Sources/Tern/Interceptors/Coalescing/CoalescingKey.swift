/// What two requests have in common that may share one answer: method, URL and the headers that matter.
///
/// All headers matter but those that name the single request for a log or a trace. Credentials always do: requests with
/// different `Authorization`, `Cookie` or other secret headers, or with different credentials in their URLs, never share
/// an answer (RFC 9111 §3.5 has the same for caches).
package struct CoalescingKey: Sendable, Hashable {
    private let method: Request.Method
    private let target: Target
    private let headers: Headers
    private let maximumBodySize: Int?
    private let unixSocketPath: String?
    /// One session's connections, cookies and credentials are not another's.
    private let session: Session.ID?
    /// A response may be refused for the sake of what its task makes of it.
    private let fitting: AcceptedTypes

    /// Headers that differ from request to request and say nothing about the answer.
    package static let ignoredHeaders = [
        "traceparent", "tracestate", "baggage", "X-Request-ID", "X-Correlation-ID", "X-Amzn-Trace-Id",
        "X-Cloud-Trace-Context", "X-B3-TraceId", "X-B3-SpanId", "X-B3-ParentSpanId", "X-B3-Sampled", "Priority",
    ]

    /// nil for a request that must not share an answer: one whose method is not safe (RFC 9110 §9.2.1) or that has a
    /// body, and one with interceptors, a policy, a validation, credentials, cookies or a trust policy of its own,
    /// which could make another answer of the same one.
    ///
    /// - Parameters:
    ///   - headers: All that is sent, the session's own included.
    ///   - ignoring: Further headers that say nothing about the answer; credentials are not ignored even so.
    init?(
        _ request: Request, headers: Headers, ignoring: [String] = [], fitting: AcceptedTypes = .any,
        session: Session.ID? = nil
    ) {
        guard request.method.isSafe, request.body.isNone, request.isShareable else { return nil }
        self.fitting = fitting
        self.session = session
        method = request.method
        target = request.target
        maximumBodySize = request.maximumBodySize
        unixSocketPath = request.unixSocketPath
        let ignored = Self.ignoredHeaders + ignoring
        self.headers = Headers(
            headers.filter { field in
                !ignored.contains { Headers.namesMatch($0, field.name) } || Headers.isSecret(field.name)
            })
    }
}

extension Request {
    /// Whether nothing but its method, URL, headers and body decides about its answer.
    fileprivate var isShareable: Bool {
        isPlain
            || interceptors.isEmpty && policy == nil && validation == nil && credentials == nil && cookies == nil
                && trust == nil
    }

    /// Whether another request of the same method, URL, headers and body has the same answer.
    package var mayShare: Bool { isShareable && (body.isNone || body.knownBytes != nil) }
}

extension CoalescingKey: CustomStringConvertible {
    /// Method and URL, without secrets.
    package var description: String { "\(method) \(target)" }
}
