import InMemoryTracing
import Synchronization
import Tern
import TernTesting
import Tracing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An in-memory tracer that propagates its context as W3C Trace Context.
struct W3CTracer: Tracer {
    let memory: InMemoryTracer

    init() {
        let last = Counter()
        memory = InMemoryTracer(
            idGenerator: .init(
                nextTraceID: { Self.hexadecimal(last.next(), digits: 32) },
                nextSpanID: { Self.hexadecimal(last.next(), digits: 16) }))
    }

    private static func hexadecimal(_ number: Int, digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: digits - text.count) + text
    }

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> InMemorySpan {
        memory.startSpan(
            operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID, line: line
        )
    }

    func forceFlush() { memory.forceFlush() }

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let span = context.inMemorySpanContext else { return }
        injector.inject("00-\(span.traceID)-\(span.spanID)-01", forKey: "traceparent", into: &carrier)
        // No instrument can fail a request.
        injector.inject("x", forKey: "bad name", into: &carrier)
        injector.inject("a\r\nX-Injected: b", forKey: "tracestate", into: &carrier)
    }

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {}

    /// The finished spans of tasks and of requests.
    var taskSpans: [FinishedInMemorySpan] { memory.finishedSpans.filter { $0.kind == .internal } }
    var requestSpans: [FinishedInMemorySpan] { memory.finishedSpans.filter { $0.kind == .client } }
}

extension FinishedInMemorySpan {
    /// The field that propagates the span.
    var traceparent: String { "00-\(traceID)-\(spanID)-01" }

    /// The attribute as a text; nil without one.
    func text(_ name: String) -> String? {
        switch attributes.get(name) {
        case .string(let text): text
        case .int64(let number): "\(number)"
        case .int32(let number): "\(number)"
        default: nil
        }
    }

    /// The attribute as several texts; nil without one.
    func texts(_ name: String) -> [String]? {
        if case .stringArray(let texts) = attributes.get(name) { texts } else { nil }
    }

    /// The parts of the span that an exporter sees, as one text.
    var everything: String {
        var parts = [operationName, "\(status?.message ?? "")"]
        let add: (String, SpanAttribute) -> Void = { name, value in parts.append("\(name)=\(value)") }
        attributes.forEach(add)
        for error in errors { parts.append("\(error.error) \(String(reflecting: error.error))") }
        for event in events { parts.append("\(event)") }
        return parts.joined(separator: "\n")
    }
}

final class Counter: Sendable {
    private let value = Mutex(0)

    func next() -> Int {
        value.withLock {
            $0 += 1
            return $0
        }
    }
}

final class Texts: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }
    func add(_ text: String) { texts.withLock { $0.append(text) } }
}

/// Runs a server, and a client whose session has this observer.
func withServer(
    observer: any SessionObserver, change: (inout Session.Configuration) -> Void = { _ in },
    _ handler: @escaping LoopbackServer.Handler, test: (LoopbackServer, Client) async throws -> Void
) async throws {
    let server = try LoopbackServer(handler: handler)
    defer { server.stop() }
    var configuration = Session.Configuration()
    configuration.proxies = .none
    configuration.observers = [observer]
    change(&configuration)
    try await test(server, Client(baseURL: server.url, session: Session(configuration: configuration)))
}
