import InMemoryTracing
import Tern
import TernTesting
import TernTracing
import Testing
import Tracing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends the spans of a session to a small receiver, as to a collector of OpenTelemetry.
@Suite("OTLP", .timeLimit(.minutes(1)))
struct OTLPExporterTests {
    /// Returns the spans of a request, and of one that is refused.
    private func tracer() async throws -> W3CTracer {
        let tracer = W3CTracer()
        var options = TracingObserver.Options()
        options.responseHeaders = ["Vary"]
        try await withServer(observer: TracingObserver(tracer: tracer, options: options)) { exchange in
            let status = exchange.request.path == "/refused" ? 404 : 200
            try exchange.respond(status: status, headers: [("Vary", "Accept")], text: "x")
        } test: { _, client in
            try await client.get("users/7") { $0.userInfo[Request.URLTemplate.self] = "/users/{id}" }
            _ = try? await client.get("refused")
            await client.session.drained()
        }
        return tracer
    }

    @Test func aReceiverGetsTheSpansWithTheirAttributes() async throws {
        let tracer = try await tracer()
        let bodies = Texts()
        let receiver = try LoopbackServer { exchange in
            #expect(exchange.request.path == "/v1/traces" && exchange.request.method == "POST")
            #expect(exchange.request["Content-Type"] == "application/json")
            let body = try exchange.readBody()
            // A busy collector.
            if exchange.number == 1 { return try exchange.respond(status: 503, headers: [("Retry-After", "0")]) }
            bodies.add(String(decoding: body, as: UTF8.self))
            try exchange.respond(json: [String: String]())
        }
        defer { receiver.stop() }
        let exporter = try OTLPExporter(endpoint: receiver.url.absoluteString, service: "shop")
        try await exporter.export(tracer.memory.finishedSpans)

        let text = try #require(bodies.all.first)
        let export = try TernJSONDecoder().decode(OTLPExporter.Export.self, from: Data(text.utf8))
        let resource = try #require(export.resourceSpans.first)
        #expect(resource.resource.attributes.map(\.value.stringValue) == ["shop"])
        let spans = try #require(resource.scopeSpans.first).spans
        #expect(spans.count == 4)
        let request = try #require(spans.first { $0.name == "GET /users/{id}" })
        let task = try #require(spans.first { $0.name == "HTTP GET /users/{id}" })
        #expect(request.kind == 3 && task.kind == 1 && request.parentSpanId == task.spanId)
        #expect(request.traceId.count == 32 && request.spanId.count == 16 && request.status == nil)
        let start = try #require(UInt64(request.startTimeUnixNano))
        let end = try #require(UInt64(request.endTimeUnixNano))
        #expect(start > 1_700_000_000_000_000_000 && end >= start)
        let values = Dictionary(request.attributes.map { ($0.key, $0.value) }) { first, _ in first }
        #expect(values["http.request.method"]?.stringValue == "GET")
        #expect(values["http.response.status_code"]?.intValue == "200")
        #expect(values["url.template"]?.stringValue == "/users/{id}")
        #expect(values["http.response.header.vary"]?.arrayValue?.values.map(\.stringValue) == ["Accept"])
        let refused = try #require(spans.first { $0.name == "GET" })
        #expect(refused.status?.code == 2)
        #expect(refused.attributes.first { $0.key == "error.type" }?.value.stringValue == "404")
    }

    @Test func aPartThatIsRejectedIsAnError() async throws {
        let tracer = try await tracer()
        let receiver = try LoopbackServer { exchange in
            _ = try exchange.readBody()
            try exchange.respond(json: ["partialSuccess": ["rejectedSpans": "2", "errorMessage": "too old"]])
        }
        defer { receiver.stop() }
        let exporter = try OTLPExporter(endpoint: receiver.url.absoluteString, service: "shop")
        await #expect(throws: OTLPExporter.Rejection(count: 2, reason: "too old")) {
            try await exporter.export(tracer.memory.finishedSpans)
        }
        // Nothing is sent without spans.
        try await exporter.export([])
        #expect(receiver.counts.requestsReceived == 1)
    }
}
