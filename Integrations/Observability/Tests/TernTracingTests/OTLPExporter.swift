import InMemoryTracing
import Tern
import Tracing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends spans to a collector, by the OpenTelemetry protocol over HTTP with JSON (OTLP/HTTP, `/v1/traces`): an example of
/// an exporter over Tern itself. Its session has no observer, so that it does not trace its own requests.
struct OTLPExporter: Sendable {
    private let client: Client
    private let service: String

    /// - Parameter endpoint: The URL of the collector, such as `http://localhost:4318`.
    init(endpoint: String, service: String) throws(NetworkError) {
        var configuration = Session.Configuration()
        // A collector that is busy answers 429, 502, 503 or 504, and says when to come again. A span can arrive twice
        // without harm.
        var policy = RetryPolicy()
        policy.methods.insert(.post)
        configuration.interceptors = [RetryInterceptor(policy)]
        client = try Client(baseURL: endpoint, session: Session(configuration: configuration))
        self.service = service
    }

    /// Sends spans that have ended.
    ///
    /// - Throws: `NetworkError`; `Rejection` if the collector has taken a part of the spans only.
    func export(_ spans: [FinishedInMemorySpan]) async throws {
        guard !spans.isEmpty else { return }
        let scope = ScopeSpans(scope: Scope(name: "tern"), spans: spans.map { Span($0) })
        let resource = Resource(attributes: [Attribute(key: "service.name", value: .string(service))])
        let body = Export(resourceSpans: [ResourceSpans(resource: resource, scopeSpans: [scope])])
        let answer: Answer = try await client.post("v1/traces", body: .json(body))
        if let partial = answer.partialSuccess, let count = partial.rejectedSpans.flatMap({ Int($0) }), count > 0 {
            throw Rejection(count: count, reason: partial.errorMessage ?? "")
        }
    }

    /// The spans that the collector has refused.
    struct Rejection: Error, Equatable {
        let count: Int
        let reason: String
    }

    // MARK: The messages

    struct Export: Codable { var resourceSpans: [ResourceSpans] }
    struct ResourceSpans: Codable { var resource: Resource, scopeSpans: [ScopeSpans] }
    struct Resource: Codable { var attributes: [Attribute] }
    struct ScopeSpans: Codable { var scope: Scope, spans: [Span] }
    struct Scope: Codable { var name: String }
    struct Status: Codable { var code: Int, message: String? }
    struct Answer: Codable {
        struct Partial: Codable { var rejectedSpans: String?, errorMessage: String? }
        var partialSuccess: Partial?
    }

    /// Numbers of 64 bits are texts in the JSON form of Protocol Buffers, and identifiers are hexadecimal.
    struct Span: Codable {
        var traceId: String, spanId: String, parentSpanId: String?
        var name: String
        var kind: Int
        var startTimeUnixNano: String, endTimeUnixNano: String
        var attributes: [Attribute]
        var status: Status?

        init(_ span: FinishedInMemorySpan) {
            (traceId, spanId, parentSpanId) = (span.traceID, span.spanID, span.parentSpanID)
            name = span.operationName
            kind =
                switch span.kind {
                case .internal: 1
                case .server: 2
                case .client: 3
                case .producer: 4
                case .consumer: 5
                }
            startTimeUnixNano = "\(span.startInstant.nanosecondsSinceEpoch)"
            endTimeUnixNano = "\(span.endInstant.nanosecondsSinceEpoch)"
            var all: [Attribute] = []
            let add: (String, SpanAttribute) -> Void = { key, value in
                if let value = Attribute.Value(value) { all.append(Attribute(key: key, value: value)) }
            }
            span.attributes.forEach(add)
            attributes = all.sorted { $0.key < $1.key }
            status = span.status.map { Status(code: $0.code == .ok ? 1 : 2, message: $0.message) }
        }
    }

    struct Attribute: Codable {
        struct Value: Codable {
            struct List: Codable { var values: [Value] }
            var stringValue: String?, intValue: String?, doubleValue: Double?, boolValue: Bool?, arrayValue: List?

            static func string(_ text: String) -> Value { Value(stringValue: text) }

            init(
                stringValue: String? = nil, intValue: String? = nil, doubleValue: Double? = nil, boolValue: Bool? = nil,
                arrayValue: List? = nil
            ) {
                (self.stringValue, self.intValue) = (stringValue, intValue)
                (self.doubleValue, self.boolValue, self.arrayValue) = (doubleValue, boolValue, arrayValue)
            }

            init?(_ value: SpanAttribute) {
                switch value {
                case .string(let text): self.init(stringValue: text)
                case .int32(let number): self.init(intValue: "\(number)")
                case .int64(let number): self.init(intValue: "\(number)")
                case .double(let number): self.init(doubleValue: number)
                case .bool(let isTrue): self.init(boolValue: isTrue)
                case .stringArray(let texts): self.init(arrayValue: List(values: texts.map { .string($0) }))
                default: return nil
                }
            }
        }

        var key: String
        var value: Value
    }
}
