import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A complete response: its head, its value and its metrics.
public struct Response<Value: Sendable>: Sendable {
    /// The status code.
    public var status: Int { head.status }
    /// The header fields.
    public var headers: Headers { head.headers }
    /// The body, as data or decoded.
    public let value: Value
    /// The status, header fields and URL.
    public let head: ResponseHead
    /// The fields after a chunked body or an HTTP/2 stream (RFC 9110 §6.5), without those that frame or route a
    /// message. Empty without any, for a download, and with URLSession.
    public var trailers: Headers { outcome.trailers }
    /// The times and numbers of bytes. For a stored response, the numbers of sent and received bytes are 0.
    public var metrics: TaskMetrics { outcome.metrics }
    /// The end of the exchange. One reference, because each property of its own would make every copy more expensive.
    let outcome: AttemptOutcome
    /// The record of how the session's cache handled the response; nil for a session without a cache.
    public var cacheTrace: CacheTrace? { head.cacheTrace }
    /// The file of the body, if a policy made a download of the response (`ResponseDisposition.becomeDownload`);
    /// otherwise nil.
    public var file: URL? { head.file }

    /// Creates a response from the end of its exchange, which keeps its body only if the value is that body
    /// (`AttemptOutcome.kept(by:)`).
    package init(value: Value, head: ResponseHead, outcome: AttemptOutcome) {
        self.value = value
        self.head = head
        self.outcome = outcome
    }

    /// Moves the value out, which saves a retain and a release.
    @inline(__always)
    consuming func takeValue() -> Value { value }

    package func map<Other: Sendable>(_ value: Other) -> Response<Other> {
        Response<Other>(value: value, head: head, outcome: outcome.withoutBody)
    }
}

extension Response: CustomStringConvertible, CustomReflectable {
    /// The status and the URL, without query values and without the value, which can be secret.
    public var description: String { head.description }

    /// The head and the metrics without secrets. Without this mirror, `dump` would show the value.
    public var customMirror: Mirror { Mirror(self, children: ["head": head, "metrics": metrics]) }
}
