/// A whole response: its head, its value, and what was measured.
public struct Response<Value: Sendable>: Sendable {
    /// The status code.
    public var status: Int { head.status }
    /// The header fields.
    public var headers: Headers { head.headers }
    /// The body, as data or decoded.
    public let value: Value
    /// Status, header fields and URL.
    public let head: ResponseHead
    /// The fields after a chunked body or an HTTP/2 stream (RFC 9110 §6.5).
    public let trailers: Headers
    /// Times and bytes.
    public let metrics: TaskMetrics

    package init(value: Value, head: ResponseHead, trailers: Headers, metrics: TaskMetrics) {
        self.value = value
        self.head = head
        self.trailers = trailers
        self.metrics = metrics
    }

    package func map<Other: Sendable>(_ value: Other) -> Response<Other> {
        Response<Other>(value: value, head: head, trailers: trailers, metrics: metrics)
    }
}

extension Response: CustomStringConvertible, CustomReflectable {
    /// Status and URL; the values of the query are hidden, and the value, which may be a secret, is left out.
    public var description: String { head.description }

    /// Head and metrics, without what is secret in them: `dump` would show the value.
    public var customMirror: Mirror { Mirror(self, children: ["head": head, "metrics": metrics]) }
}
