import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

@testable import TernStreaming

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Event streams", .timeLimit(.minutes(1)))
struct EventStreamTests {
    private struct Prompt: Codable, Sendable {
        var prompt: String
    }

    private struct Delta: Codable, Sendable, Equatable {
        var text: String
    }

    @Test func eventsOfAPostArriveUntilTheServerEnds() async throws {
        try await withEventServer { exchange in
            guard try exchange.readJSON(Prompt.self).prompt == "hi" else { return }
            try exchange.writeEvents([.event("one", type: "a", id: "1"), .comment("ping"), .event("two\nlines")])
            try exchange.endChunks()
        } test: { (server, client) async throws in
            let events = client.events("stream", method: .post, body: .json(Prompt(prompt: "hi")))
            var received: [ServerSentEvent] = []
            for try await event in events { received.append(event) }
            #expect(
                received == [
                    ServerSentEvent(type: "a", data: "one", id: "1"), ServerSentEvent(data: "two\nlines", id: "1"),
                ])
            #expect(events.state.name == "ended" && server.requests.count == 1)
        }
    }

    @Test func requestAsksForEventsAndAcceptsNoStoredOnes() async throws {
        try await withEventServer { exchange in
            let request = exchange.request
            let fields = ["Accept", "Cache-Control", "Last-Event-ID"].map { request[$0] ?? "-" }
            try exchange.writeEvents([.event(fields.joined(separator: "|"))])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            var plain = client.events("a").makeAsyncIterator()
            #expect(try await plain.next()?.data == "text/event-stream|no-cache|-")
            var options = EventStreamOptions()
            options.lastEventID = "7"
            var own = client.events("a", headers: ["Accept": "x/y", "Cache-Control": "max-age=1"], options: options)
                .makeAsyncIterator()
            #expect(try await own.next()?.data == "x/y|max-age=1|7")
        }
    }

    @Test func eventsArriveWhileTheStreamIsOpen() async throws {
        let gate = LoopbackServer.Gate()
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.wait(for: gate)
            try exchange.writeEvents([.event("two")])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            var iterator = client.events("a").makeAsyncIterator()
            #expect(try await iterator.next()?.data == "one")
            gate.open()
            #expect(try await iterator.next()?.data == "two")
        }
    }

    @Test func compressedEventsArriveAtEachFlush() async throws {
        let gate = LoopbackServer.Gate()
        let first = try #require(Data(base64Encoded: "H4sIAAAAAAACA0pJLEm0UsjPS+XKTLFSMOTiAgAAAP//"))
        let second = try #require(Data(base64Encoded: "SwELlJTngwWMuLgAEfVYaiIAAAA="))
        try await withEventServer { exchange in
            try exchange.writeEvents([], headers: [("Content-Encoding", "gzip")])
            try exchange.writeChunk(first)
            try exchange.wait(for: gate)
            try exchange.writeChunk(second)
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            var iterator = client.events("a").makeAsyncIterator()
            #expect(try await iterator.next() == ServerSentEvent(data: "one", id: "1"))
            gate.open()
            #expect(try await iterator.next() == ServerSentEvent(data: "two", id: "2"))
        }
    }

    @Test func compressedStreamHasNoLimitOnItsWholeSize() async throws {
        let first = try #require(Data(base64Encoded: "H4sIAAAAAAACA0pJLEm0UsjPS+XKTLFSMOTiAgAAAP//"))
        try await withEventServer { exchange in
            try exchange.writeEvents([], headers: [("Content-Encoding", "gzip")])
            try exchange.writeChunk(first)
            try exchange.waitForClientToClose()
        } configure: {
            $0.maximumDecompressedSize = 3
        } test: { (_, client) async throws in
            var iterator = client.events("a").makeAsyncIterator()
            #expect(try await iterator.next() == ServerSentEvent(data: "one", id: "1"))
            let error = try await streamFailure { for try await _ in client.stream("a").chunks {} }
            #expect(error.kind == .tooLarge)
        }
    }

    // MARK: Responses that are no event streams

    /// The error has the request, and the request tells the stream about its connection.
    @Test func aStreamThatFailedIsReleased() async throws {
        try await withEventServer { exchange in
            try exchange.respond(status: 429)
        } test: { _, client in
            weak var source: EventSource?
            weak var states: Latest<EventStreamState>?
            do {
                let events = client.events("a")
                (source, states) = (events.source, events.source.states)
                let error = try await streamFailure { try await allData(of: events) }
                #expect(error.status == 429 && events.state.name == "failed")
            }
            while source != nil || states != nil { await Task.yield() }
        }
    }

    @Test func wrongStatusIsAnErrorWithTheBody() async throws {
        try await withEventServer { exchange in
            try exchange.respond(
                status: 429, headers: [("Content-Type", "application/json")], text: #"{"error":"slow down"}"#)
        } configure: {
            $0.interceptors = [RetryInterceptor()]
        } test: { (server, client) async throws in
            let events = client.events("a")
            let error = try await streamFailure { try await allData(of: events) }
            #expect(error.kind == .status && error.status == 429)
            #expect(String(decoding: error.body, as: UTF8.self) == #"{"error":"slow down"}"#)
            #expect(events.state.name == "failed" && server.requests.count == 1, "RetryInterceptor sends it once")
            let again = try await streamFailure { try await allData(of: events) }
            #expect(again.status == 429, "a later reader receives the same error")
        }
    }

    @Test func wrongContentTypeIsAnErrorWithTheBody() async throws {
        try await withEventServer { exchange in
            switch exchange.request.path {
            case "/html": try exchange.respond(headers: [("Content-Type", "text/html")], text: "<p>log in</p>")
            case "/plus": try exchange.respond(headers: [("Content-Type", "text/event-stream+x")], text: "data: a\n\n")
            case "/empty": try exchange.respond(headers: [("Content-Type", "text/html")])
            default:
                try exchange.respond(
                    headers: [("Content-Type", "Text/Event-Stream;charset=utf-8")], text: "data: a\n\n")
            }
        } test: { (server, client) async throws in
            let error = try await streamFailure { try await allData(of: client.events("html")) }
            #expect(error.kind == .contentType && error.body == Data("<p>log in</p>".utf8))
            for path in ["plus", "empty"] {
                let error = try await streamFailure { try await allData(of: client.events(path)) }
                #expect(error.kind == .contentType, "\(path)")
            }
            #expect(server.requests.count == 3)
            var iterator = client.events("parameters").makeAsyncIterator()
            #expect(try await iterator.next()?.data == "a")
        }
    }

    @Test func status204EndsTheStreamForGood() async throws {
        try await withEventServer {
            try $0.respond(status: 204)
        } test: { (server, client) async throws in
            let events = client.events("a")
            #expect(try await allData(of: events) == [])
            #expect(events.state.name == "no content" && server.requests.count == 1)
            let error = try await streamFailure { try await allData(of: client.events("a").until("[DONE]")) }
            #expect(error.kind == .lastEventMissing)
        }
    }

    @Test func invalidRequestFailsWithoutAServer() async throws {
        let client = try Client(baseURL: "https://a.example", session: Session())
        let error = try await streamFailure { try await allData(of: client.events("http://")) }
        #expect(error.kind == .invalidRequest)
        let headers = try await streamFailure { try await allData(of: client.events("a", headers: ["A": "\n"])) }
        #expect(headers.kind == .invalidRequest)
    }

    @Test func redirectIsFollowed() async throws {
        try await withEventServer { exchange in
            if exchange.request.path == "/old" {
                return try exchange.respond(status: 307, headers: [("Location", "/new")])
            }
            try exchange.writeEvents([.event(exchange.request.path)])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            var iterator = client.events("old").makeAsyncIterator()
            #expect(try await iterator.next()?.data == "/new")
        }
    }

    // MARK: The session

    @Test func sessionsCacheNeitherStoresNorServesEvents() async throws {
        try await withEventServer { exchange in
            let id = "\(exchange.request.requestIndex)"
            try exchange.respond(
                headers: [("Content-Type", "text/event-stream"), ("Cache-Control", "max-age=600")],
                text: "data: \(id)\n\n")
        } configure: {
            $0.cache = .memory(HTTPCache.Configuration())
        } test: { (server, client) async throws in
            var options = EventStreamOptions()
            options.reconnection = .never
            for _ in 0..<2 { #expect(try await allData(of: client.events("a", options: options)).count == 1) }
            #expect(server.requests.count == 2)
            // The same response is stored for another request.
            for _ in 0..<2 { _ = try await client.get("b") }
            #expect(server.requests.count == 3)
        }
    }

    @Test func interceptorsSurroundEachConnection() async throws {
        struct Signed: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply {
                var request = request
                request.headers["X-Signature"] = "s"
                return try await next(request)
            }
        }
        try await withEventServer { exchange in
            try exchange.writeEvents([.event(exchange.request["X-Signature"] ?? "")])
            try exchange.waitForClientToClose()
        } configure: {
            $0.interceptors = [Signed()]
        } test: { (_, client) async throws in
            var iterator = client.events("a").makeAsyncIterator()
            #expect(try await iterator.next()?.data == "s")
        }
    }

    @Test func timeLimitsOfOtherResponsesDoNotApply() async throws {
        let gate = LoopbackServer.Gate()
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.wait(for: gate)
            try exchange.writeEvents([.event("two")])
            try exchange.waitForClientToClose()
        } configure: {
            $0.timeouts = Timeouts(idle: .milliseconds(20), total: .milliseconds(40))
        } test: { (server, client) async throws in
            var iterator = client.events("a").makeAsyncIterator()
            #expect(try await iterator.next()?.data == "one")
            // The same limits end another stream, and have passed by then.
            let error = try await streamFailure { for try await _ in client.stream("a").chunks {} }
            #expect([.idleTimedOut, .totalTimedOut].contains(error.kind))
            gate.open()
            #expect(try await iterator.next()?.data == "two")
        }
    }

    // MARK: Readers

    @Test func secondReaderAtATimeIsRefused() async throws {
        let gate = LoopbackServer.Gate()
        try await withEventServer { exchange in
            try exchange.writeEvents([])
            try exchange.wait(for: gate)
            try exchange.writeEvents([.event("one")])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            let events = client.events("a")
            async let first = {
                var iterator = events.makeAsyncIterator()
                return try await iterator.next()?.data
            }()
            await events.wait { $0.name == "open" }
            let error = try await streamFailure { try await allData(of: events) }
            #expect(error.kind == .unsupported)
            gate.open()
            #expect(try await first == "one")
        }
    }

    @Test func laterReaderContinuesWhereTheEarlierStopped() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents((1...4).map { .event("\($0)") })
            try exchange.waitForClientToClose()
        } test: { (server, client) async throws in
            let events = client.events("a")
            for count in 1...2 {
                for try await event in events {
                    #expect(event.data == "\(count)")
                    break
                }
            }
            for try await event in events.through({ $0.data == "4" }) { #expect(["3", "4"].contains(event.data)) }
            #expect(server.requests.count == 1)
        }
    }

    @Test func unreadEventsHoldTheServerBack() async throws {
        let isDone = LoopbackServer.Gate()
        let event = String(repeating: "x", count: 60_000)
        try await withEventServer { exchange in
            for _ in 0..<400 { try exchange.writeEvents([.event(event)]) }
            isDone.open()
            try exchange.endChunks()
        } test: { (_, client) async throws in
            var count = 0
            var options = EventStreamOptions()
            options.reconnection = .never
            for try await _ in client.events("a", options: options) {
                count += 1
                // 21 MB are left: more than the buffers of the system and of the transfer.
                if count == 50 { #expect(!isDone.isOpen) }
            }
            #expect(count == 400 && isDone.isOpen)
        }
    }

    // MARK: The last event

    @Test func untilEndsBeforeTheNamedEvent() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one"), .event("[DONE]"), .event("two")])
            try exchange.waitForClientToClose()
        } test: { (server, client) async throws in
            let events = client.events("a")
            #expect(try await allData(of: events.until("[DONE]")) == ["one"])
            #expect(events.state.name == "last event")
            #expect(try await allData(of: events) == [])
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func throughDeliversTheNamedEvent() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one"), .event("end", type: "stop"), .event("two")])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            #expect(try await allData(of: client.events("a").through { $0.type == "stop" }) == ["one", "end"])
        }
    }

    @Test func endBeforeTheNamedEventIsAnError() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event(#"{"text":"a"}"#)])
            try exchange.endChunks()
        } test: { (_, client) async throws in
            var values: [Delta] = []
            let error = try await streamFailure {
                for try await value in client.events("a", method: .post).decode(Delta.self, until: "[DONE]") {
                    values.append(value)
                }
            }
            #expect(error.kind == .lastEventMissing && values == [Delta(text: "a")])
        }
    }

    // MARK: Values

    @Test func valuesAreDecodedUntilTheNamedEvent() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event(#"{"text":"a"}"#), .event("{\"text\":\n\"b\"}")])
            try exchange.writeEvents([.event(#"{"text":"c"}"#), .event("[DONE]")])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            var texts = ""
            for try await delta in client.events("a").decode(Delta.self, until: "[DONE]") { texts += delta.text }
            #expect(texts == "abc")
        }
    }

    @Test func valueThatCannotBeDecodedIsAnErrorAfterThoseBefore() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event(#"{"text":"a"}"#), .event(#"{"no":"secret"}"#, type: "delta")])
            try exchange.waitForClientToClose()
        } test: { (_, client) async throws in
            var values: [Delta] = []
            let error = try await streamFailure {
                for try await value in client.events("a").decode(Delta.self) { values.append(value) }
            }
            #expect(error.kind == .decoding && values == [Delta(text: "a")])
            #expect("\(error)".contains("GET http://127.0.0.1:"))
            // The bytes that the server sent in place of a value.
            #expect(error.body == Data(#"{"no":"secret"}"#.utf8) && !"\(error)".contains("secret"))
            #expect(
                error.reason
                    == "the event of type delta with 15 bytes of data could not be decoded as Delta: no value for 'text', "
                    + "at offset 0 (line 1, column 1), in ▸{\"no\": string}◂"
            )
        }
    }

    // MARK: Limits

    @Test func eventBeyondItsLimitEndsTheStream() async throws {
        try await withEventServer { exchange in
            try exchange.writeEvents([.event("one"), .event(String(repeating: "x", count: 2_000))])
            try exchange.waitForClientToClose()
        } test: { (server, client) async throws in
            var options = EventStreamOptions()
            options.maximumEventSize = 1_000
            var data: [String] = []
            let error = try await streamFailure {
                for try await event in client.events("a", options: options) { data.append(event.data) }
            }
            #expect(error.kind == .tooLarge && error.reason.contains("1000 bytes") && data == ["one"])
            try await server.wait { $0.openConnections == 0 }
            #expect(server.requests.count == 1)
        }
    }

    @Test func stubsGiveEvents() async throws {
        let stub = StubTransport(["GET /a": .events([.event("one"), .comment(), .event("two", type: "t")])])
        let client = try Client(baseURL: "https://a.example", session: Session(stub: stub))
        var options = EventStreamOptions()
        options.reconnection = .never
        #expect(try await allData(of: client.events("a", options: options)) == ["one", "two"])
    }
}
