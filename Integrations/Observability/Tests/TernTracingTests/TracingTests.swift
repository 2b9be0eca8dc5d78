import InMemoryTracing
import Tern
import TernTesting
import Testing
import Tracing

@testable import TernTracing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Tracing", .timeLimit(.minutes(1)))
struct TracingTests {
    private let tracer = W3CTracer()
    private var observer: TracingObserver { TracingObserver(tracer: tracer) }

    private static func retrying(_ configuration: inout Session.Configuration) {
        var policy = RetryPolicy()
        policy.firstDelay = .zero
        configuration.interceptors = [RetryInterceptor(policy)]
    }

    @Test func aRedirectWithARetryHasASpanForEachRequest() async throws {
        let (received, ends) = (Texts(), Counter())
        let observer = observer
        try await withServer(observer: observer, change: Self.retrying) { exchange in
            received.add(exchange.request["traceparent"] ?? "none")
            if exchange.request.path == "/start" {
                return try exchange.respond(status: 302, headers: [("Location", "/end?token=s3cret")])
            }
            try exchange.respond(status: ends.next() == 1 ? 503 : 200, text: "done")
        } test: { server, client in
            let text: String = try await client.get("start")
            #expect(text == "done")
            await client.session.drained()
            let task = try #require(tracer.taskSpans.first)
            #expect(tracer.taskSpans.count == 1 && task.operationName == "HTTP GET" && task.parentSpanID == nil)
            #expect(task.text("tern.requests") == "4" && task.text("http.response.status_code") == "200")
            #expect(task.status == nil && task.text("error.type") == nil)

            let requests = tracer.requestSpans
            #expect(requests.map { $0.text("http.response.status_code") } == ["302", "503", "302", "200"])
            #expect(requests.map { $0.text("http.request.resend_count") } == [nil, "1", "2", "3"])
            #expect(requests.map { $0.text("error.type") } == [nil, "503", nil, nil])
            #expect(requests.map { $0.status?.code == .error } == [false, true, false, false])
            #expect(requests.allSatisfy { $0.parentSpanID == task.spanID && $0.traceID == task.traceID })
            #expect(requests.allSatisfy { $0.operationName == "GET" && $0.text("http.request.method") == "GET" })
            #expect(requests.allSatisfy { $0.text("server.address") == "127.0.0.1" })
            #expect(requests.allSatisfy { $0.text("server.port") == "\(server.port)" })
            #expect(requests.allSatisfy { $0.text("network.protocol.version") == "1.1" })
            let end = "http://127.0.0.1:\(server.port)/end?token=<redacted>"
            #expect(requests.map { $0.text("url.full") == end } == [false, true, false, true])
            // Each request has the context of its own span, also after a redirect.
            #expect(received.all == requests.map(\.traceparent))
            let ordered = requests.map(\.endInstant.nanosecondsSinceEpoch)
            #expect(ordered == ordered.sorted())
            #expect(
                requests.allSatisfy { $0.startInstant.nanosecondsSinceEpoch <= $0.endInstant.nanosecondsSinceEpoch })
        }
        #expect(observer.count == 0)
    }

    @Test func eachRequestNamesItsPeer() async throws {
        try await withServer(observer: observer, change: Self.retrying) { exchange in
            if exchange.request.path == "/start" {
                return try exchange.respond(status: 302, headers: [("Location", "/end")])
            }
            try exchange.respond(status: exchange.number < 4 ? 503 : 200)
        } test: { server, client in
            try await client.get("start")
            await client.session.drained()
            #expect(tracer.requestSpans.map { $0.text("http.response.status_code") } == ["302", "503", "302", "200"])
            for span in tracer.requestSpans {
                #expect(span.text("network.peer.address") == "127.0.0.1")
                #expect(span.text("network.peer.port") == "\(server.port)")
                // The status code says what a description would.
                #expect(span.status?.message == nil)
            }
        }
    }

    @Test func templatesNameSpansUntilARedirect() async throws {
        try await withServer(observer: observer, change: Self.retrying) { exchange in
            if exchange.request.path == "/users/7" {
                return try exchange.respond(status: 302, headers: [("Location", "/people/7")])
            }
            try exchange.respond(status: exchange.number == 2 ? 503 : 200)
        } test: { _, client in
            try await client.get("users/7") { $0.userInfo[Request.URLTemplate.self] = "/users/{id}" }
            await client.session.drained()
            // The retry begins with the first URL again.
            #expect(
                tracer.requestSpans.map(\.operationName) == ["GET /users/{id}", "GET", "GET /users/{id}", "GET"])
            #expect(
                tracer.requestSpans.map { $0.text("url.template") } == ["/users/{id}", nil, "/users/{id}", nil])
            #expect(tracer.taskSpans.map(\.operationName) == ["HTTP GET /users/{id}"])
        }
    }

    @Test func methodsThatAreNotKnownAreNoNames() async throws {
        try await withServer(observer: observer) {
            try $0.respond()
        } test: { _, client in
            try await client.send(Request.Method("PURGE"), "x")
            await client.session.drained()
            #expect(tracer.memory.finishedSpans.map(\.operationName) == ["HTTP", "HTTP"])
            #expect(tracer.requestSpans.map { $0.text("http.request.method") } == ["_OTHER"])
            #expect(tracer.requestSpans.map { $0.text("http.request.method_original") } == ["PURGE"])
        }
    }

    @Test func furtherAttributesAreAChoice() async throws {
        var options = TracingObserver.Options()
        options.attributes = Set(TracingObserver.Options.Attribute.allCases)
        options.requestHeaders = ["X-Kind", "Authorization", "X-Missing"]
        options.responseHeaders = ["vary", "Set-Cookie"]
        options.userAgent = "test/1"
        let received = Texts()
        try await withServer(observer: TracingObserver(tracer: tracer, options: options)) { exchange in
            _ = try exchange.readBody()
            received.add("\(exchange.request.rawHead.count)")
            try exchange.respond(
                headers: [("Vary", "Accept"), ("Vary", "Origin"), ("Set-Cookie", "id=s3cret")], text: "hello")
        } test: { _, client in
            try await client.post(
                "x", headers: ["X-Kind": "a", "Authorization": "Bearer s3cret"], body: .text("four"))
            await client.session.drained()
            let span = try #require(tracer.requestSpans.first)
            #expect(span.text("url.scheme") == "http" && span.text("network.transport") == "tcp")
            #expect(span.text("user_agent.original") == "test/1")
            #expect(span.text("http.request.body.size") == "4" && span.text("http.response.body.size") == "5")
            let head = try #require(received.all.first.flatMap { Int($0) })
            #expect(span.text("http.request.size") == "\(head + 4)")
            #expect(span.texts("http.request.header.x-kind") == ["a"])
            #expect(span.texts("http.request.header.authorization") == ["<redacted>"])
            #expect(span.texts("http.request.header.x-missing") == nil)
            #expect(span.texts("http.response.header.vary") == ["Accept", "Origin"])
            #expect(span.texts("http.response.header.set-cookie") == ["<redacted>"])
            #expect(!span.everything.contains("s3cret"))
        }
    }

    @Test func aCancelledTaskEndsItsSpans() async throws {
        let gate = LoopbackServer.Gate()
        let observer = observer
        try await withServer(observer: observer) { exchange in
            gate.open()
            try exchange.waitForClientToClose()
        } test: { _, client in
            let task = client.task(.get, "x")
            try await gate.wait()
            #expect(observer.count == 1)
            task.cancel()
            await #expect(throws: NetworkError.self) { try await task.value }
            await client.session.drained()
            for span in tracer.taskSpans + tracer.requestSpans {
                #expect(span.text("error.type") == "cancelled" && span.status?.code == .error)
                #expect(span.text("http.response.status_code") == nil)
            }
            #expect(tracer.memory.finishedSpans.count == 2 && tracer.memory.activeSpans.isEmpty)
        }
        #expect(observer.count == 0)
    }

    @Test func aTaskThatNeverStartsHasNoSpan() async throws {
        let observer = observer
        try await withServer(observer: observer) {
            try $0.respond()
        } test: { _, client in
            let task = client.task(.get, "x", startsImmediately: false)
            task.cancel()
            _ = try? await task.value
            await client.session.drained()
            #expect(tracer.memory.finishedSpans.isEmpty && observer.count == 0)
        }
    }

    @Test func secretsNeverAppear() async throws {
        let texts = Texts()
        try await withServer(observer: observer) { exchange in
            texts.add(exchange.request["Authorization"] ?? "none")
            switch exchange.request.path {
            case "/redirect": try exchange.respond(status: 302, headers: [("Location", "/x?code=s3cret#s3cret")])
            case "/invalid": try exchange.write("s3cret: s3cret\r\n\r\n")
            default: try exchange.respond(status: 403, headers: [("Set-Cookie", "id=s3cret")], text: "s3cret")
            }
        } test: { server, client in
            let base = "http://ada:s3cret@127.0.0.1:\(server.port)"
            for path in ["/redirect?a=s3cret", "/x?a=s3cret&b", "/invalid?s3cret=s3cret"] {
                _ = try? await client.send(
                    .post, base + path, headers: ["Authorization": "Bearer s3cret", "Cookie": "s3cret=s3cret"],
                    body: .text("s3cret"))
            }
            await client.session.drained()
            #expect(texts.all.contains("Bearer s3cret"))
            #expect(tracer.taskSpans.count == 3 && tracer.requestSpans.count == 4)
            for span in tracer.memory.finishedSpans {
                let text = span.everything.replacing("?s3cret=<redacted>", with: "")
                #expect(!text.contains("s3cret"), "\(text)")
            }
        }
    }

    @Test(arguments: [true, false])
    func theSpanOfTheCallerIsTheParent(hasHandle: Bool) async throws {
        try await withServer(observer: observer) {
            try $0.respond(text: "x")
        } test: { _, client in
            try await tracer.withSpan("caller", ofKind: .server) { span in
                if hasHandle {
                    _ = try await client.task(.get, "x").value
                } else {
                    try await client.get("x")
                }
            }
            await client.session.drained()
            let caller = try #require(tracer.memory.finishedSpans.first { $0.operationName == "caller" })
            #expect(tracer.taskSpans.map(\.parentSpanID) == [caller.spanID])
            #expect(tracer.requestSpans.map(\.traceID) == [caller.traceID])
        }
    }

    @Test func theTracerOfTheProcessInjectsItsContext() async throws {
        let (received, memory) = (Texts(), InMemoryTracer())
        try await withServer(observer: TracingObserver()) { exchange in
            received.add(exchange.request[InMemoryTracer.spanIDKey] ?? "none")
            try exchange.respond()
        } test: { _, client in
            try await client.get("without")
            // Stands for a tracer that was bootstrapped, which is possible once in a process.
            try await withTracer(memory) { _ = try await client.get("with") }
            await client.session.drained()
            let spans = memory.finishedSpans.filter { $0.kind == .client }
            #expect(received.all == ["none"] + spans.map(\.spanID))
            #expect(spans.count == 1)
        }
    }

    @Test func aServerCanBeLeftOutOfThePropagation() async throws {
        let received = Texts()
        let observer = TracingObserver(tracer: tracer) { $0.url?.path != "/outside" }
        try await withServer(observer: observer) { exchange in
            received.add(exchange.request["traceparent"] == nil ? "none" : "context")
            try exchange.respond()
        } test: { _, client in
            try await client.get("outside")
            try await client.get("inside")
            #expect(received.all == ["none", "context"])
        }
    }

    @Test func aRefusedConnectionIsAnErrorOfItsRequest() async throws {
        let port = try LoopbackServer.refusingPort()
        try await withServer(observer: observer, change: Self.retrying) {
            try $0.respond()
        } test: { _, client in
            await #expect(throws: NetworkError.self) { try await client.get("http://127.0.0.1:\(port)/") }
            await client.session.drained()
            #expect(tracer.requestSpans.count == 3)
            for span in tracer.requestSpans + tracer.taskSpans {
                #expect(span.text("error.type") == "connection-refused" && span.errors.count == 1)
            }
        }
    }

    @Test func aFailedDecodingIsAnErrorOfTheTaskAlone() async throws {
        try await withServer(observer: observer) {
            try $0.respond(text: "no number")
        } test: { _, client in
            await #expect(throws: NetworkError.self) {
                try await client.get("x", as: Int.self) { $0.validation = .any }
            }
            await client.session.drained()
            #expect(tracer.requestSpans.map { $0.text("error.type") } == [nil])
            #expect(tracer.taskSpans.map { $0.text("error.type") } == ["decoding"])
        }
    }

    @Test func theSpansOfAStreamLastUntilItsEnd() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(observer: observer) { exchange in
            try exchange.writeChunkedHead()
            try exchange.writeChunk(Array("one".utf8))
            try exchange.wait(for: gate)
            try exchange.endChunks()
        } test: { _, client in
            var chunks = client.stream("x").chunks.makeAsyncIterator()
            let first = try await chunks.next()
            #expect(first != nil)
            #expect(tracer.memory.activeSpans.count == 2 && tracer.memory.finishedSpans.isEmpty)
            gate.open()
            let second = try await chunks.next()
            #expect(second == nil)
            await client.session.drained()
            #expect(tracer.memory.activeSpans.isEmpty)
            #expect(tracer.requestSpans.map { $0.text("http.response.status_code") } == ["200"])
        }
    }
}
