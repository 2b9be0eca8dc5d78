import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernStreaming

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Event streams: connections", .timeLimit(.minutes(1)))
struct EventReconnectionTests {
    /// Answers each request with the events of its turn, and ends. The last turn stays open.
    private static func serve(_ turns: [[ScriptedEvent]], _ count: Counter) -> LoopbackServer.Handler {
        { exchange in
            let turn = count.next()
            try exchange.writeEvents(turns[min(turn, turns.count - 1)])
            if turn < turns.count - 1 { exchange.reset() } else { try exchange.waitForClientToClose() }
        }
    }

    private final class Counter: Sendable {
        private let value = Lock(0)
        func next() -> Int {
            value.withLock { value in
                value += 1
                return value - 1
            }
        }
    }

    @Test func lostConnectionContinuesAfterTheLastEvent() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            let first = Int(exchange.request["Last-Event-ID"] ?? "0") ?? 0
            try exchange.writeEvents([.event("\(first + 1)", id: "\(first + 1)")])
            // The second event is not complete.
            try exchange.writeChunk(Array("id: \(first + 2)\ndata: lost".utf8))
            try exchange.waitUntilReceived()
            if count.next() % 2 == 0 { exchange.reset() } else { exchange.close() }
        }
        try await withEventServer(handler) { (server, client) async throws in
            let events = client.events("a", options: .test(clock))
            var iterator = events.makeAsyncIterator()
            for expected in 1...5 {
                async let advance: Void = Self.advance(clock, isNeeded: expected > 1)
                #expect(try await iterator.next() == ServerSentEvent(data: "\(expected)", id: "\(expected)"))
                try await advance
            }
            #expect(server.requests.count == 5)
            await events.close()
        }
    }

    /// A way in which a transfer is damaged, before or after its first event.
    enum Damage: CaseIterable {
        case chunkSize, chunkEnd, gzip, deflate, gzipTail, statusLine, field, length

        func write(to exchange: LoopbackServer.Exchange) throws {
            let type = "Content-Type: text/event-stream\r\n"
            let first = "id: 1\ndata: one\n\n"
            switch self {
            case .chunkSize:
                try exchange.writeEvents([.event("one", id: "1")])
                try exchange.write("zz\r\n")
            case .chunkEnd:
                try exchange.writeEvents([.event("one", id: "1")])
                try exchange.write("5\r\n: abcXY")
            case .gzip, .deflate:
                let coding = self == .gzip ? "gzip" : "deflate"
                try exchange.write(
                    "HTTP/1.1 200 OK\r\n\(type)Content-Encoding: \(coding)\r\nConnection: close\r\n\r\nnot compressed at all"
                )
            case .gzipTail:
                try exchange.write(
                    "HTTP/1.1 200 OK\r\n\(type)Content-Encoding: gzip\r\nConnection: close\r\n\r\n")
                // One stored block, and a checksum that is wrong.
                let bytes = Array(first.utf8)
                let count = UInt8(bytes.count)
                let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, count, 0, ~count, 0xFF]
                try exchange.write(head + bytes + [0, 0, 0, 0, count, 0, 0, 0])
            case .statusLine: try exchange.write("HTTP/1.1 2x0 OK\r\n\(type)\r\n")
            case .field: try exchange.write("HTTP/1.1 200 OK\r\n\(type)no colon\r\n\r\n")
            case .length:
                try exchange.write("HTTP/1.1 200 OK\r\n\(type)Content-Length: 5\r\nContent-Length: 6\r\n\r\n")
            }
            exchange.close()
        }
    }

    @Test(arguments: Damage.allCases) func damagedTransferIsMadeAgain(damage: Damage) async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            exchange.closeAfterResponse()
            if count.next() == 0 { return try damage.write(to: exchange) }
            try exchange.writeEvents([.event("two", id: "2")])
            try exchange.waitForClientToClose()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let events = client.events("a", options: .test(clock))
            async let data = allData(of: events.through { $0.data == "two" })
            try await clock.waitForSleepers(1)
            guard case .waiting(_, let failure?) = events.state else {
                Issue.record("\(damage): \(events.state)")
                return
            }
            #expect(failure.kind == .malformedResponse, "\(damage)")
            clock.advance(by: .seconds(60))
            #expect(try await data.last == "two")
            #expect(server.requests.count == 2)
        }
    }

    @Test func damagedTransfersAreLimited() async throws {
        let clock = ManualClock()
        let handler: LoopbackServer.Handler = { exchange in
            exchange.closeAfterResponse()
            try Damage.statusLine.write(to: exchange)
        }
        try await withEventServer(handler) { (server, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.reconnection.limit = 2 }
            async let error = streamFailure { try await allData(of: client.events("a", options: options)) }
            for _ in 0..<2 { try await Self.advance(clock) }
            #expect(try await error.kind == .malformedResponse)
            #expect(server.requests.count == 3)
        }
    }

    @Test func pollingServerWithoutNewsIsAskedOnAndOn() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            let turn = count.next()
            try exchange.writeChunkedHead(headers: [("Content-Type", "text/event-stream")])
            try exchange.writeChunk(Array("id: \(turn / 2)\n\n".utf8))
            if turn == 6 { try exchange.writeChunk(Array("data: news\n\n".utf8)) }
            try exchange.endChunks()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.reconnection.limit = 1 }
            var iterator = client.events("a", options: options).makeAsyncIterator()
            async let advances: Void = Self.advance(clock, times: 6)
            #expect(try await iterator.next() == ServerSentEvent(data: "news", id: "3"))
            try await advances
            #expect(server.requests.count == 7)
        }
    }

    private static func advance(_ clock: ManualClock, times: Int) async throws {
        for _ in 0..<times { try await advance(clock) }
    }

    /// Ends the wait for the next attempt.
    private static func advance(_ clock: ManualClock, isNeeded: Bool = true) async throws {
        guard isNeeded else { return }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(60))
    }

    @Test func serversDelayIsTheMinimum() async throws {
        let clock = ManualClock()
        let handler = Self.serve([[.retry(milliseconds: 20_000), .event("one")], [.event("two")]], Counter())
        try await withEventServer(handler) { (_, client) async throws in
            let events = client.events("a", options: .test(clock))
            async let data = allData(of: events.through { $0.data == "two" })
            try await clock.waitForSleepers(1)
            let delay = try #require(clock.nextDeadline).offset
            #expect(delay >= .seconds(20) && delay <= .seconds(40))
            guard case .waiting(let date?, let failure?) = events.state else {
                Issue.record("\(events.state)")
                return
            }
            #expect([.connectionLost, .truncatedBody].contains(failure.kind))
            #expect((10...50).contains(date.timeIntervalSinceNow))
            clock.advance(by: delay)
            #expect(try await data == ["one", "two"])
        }
    }

    @Test func endedResponseIsRequestedAgain() async throws {
        let clock = ManualClock()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.writeEvents([.event(exchange.request["Last-Event-ID"] ?? "none", id: "é 1")])
            try exchange.endChunks()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let events = client.events("a", options: .test(clock))
            async let data = allData(of: events.through { $0.data == "é 1" })
            try await clock.waitForSleepers(1)
            guard case .waiting(_?, nil) = events.state else {
                Issue.record("\(events.state)")
                return
            }
            clock.advance(by: .seconds(6))
            #expect(try await data == ["none", "é 1"])
            #expect(server.requests.count == 2)
        }
    }

    @Test func reconnectionGoesToTheFirstURL() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.request.path == "/a" {
                return try exchange.respond(status: 302, headers: [("Location", "/b\(count.next())")])
            }
            try exchange.writeEvents([.event(exchange.request.path)])
            try exchange.endChunks()
        }
        try await withEventServer(handler) { (server, client) async throws in
            async let data = allData(of: client.events("a", options: .test(clock)).through { $0.data == "/b1" })
            try await Self.advance(clock)
            #expect(try await data == ["/b0", "/b1"])
            #expect(server.requests.map(\.target) == ["/a", "/b0", "/a", "/b1"])
        }
    }

    @Test func laterStatus204EndsTheStream() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            if count.next() > 0 { return try exchange.respond(status: 204) }
            try exchange.writeEvents([.event("one")])
            try exchange.endChunks()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let events = client.events("a", options: .test(clock))
            async let data = allData(of: events)
            try await Self.advance(clock)
            #expect(try await data == ["one"])
            #expect(events.state.name == "no content" && server.requests.count == 2)
        }
    }

    @Test func attemptsEndAtTheLimit() async throws {
        let clock = ManualClock()
        let port = try LoopbackServer.refusingPort()
        let client = try Client(baseURL: "http://127.0.0.1:\(port)", session: Session(configuration: .direct))
        let events = client.events("a", options: .test(clock) { $0.reconnection.limit = 3 })
        async let error = streamFailure { try await allData(of: events) }
        for _ in 0..<3 { try await Self.advance(clock) }
        #expect(try await error.kind == .connectionRefused)
        #expect(try await error.reason.hasSuffix("4 connections in a row brought no event"))
    }

    @Test func chosenStatusIsTriedAgainAfterItsDelay() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            if count.next() == 0 { return try exchange.respond(status: 503, headers: [("Retry-After", "100")]) }
            try exchange.writeEvents([.event("one")])
            try exchange.waitForClientToClose()
        }
        try await withEventServer(handler) { (_, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.reconnection.statuses = [503] }
            async let data = allData(of: client.events("a", options: options).through { _ in true })
            try await clock.waitForSleepers(1)
            #expect(try #require(clock.nextDeadline).offset >= .seconds(100))
            clock.advance(by: .seconds(200))
            #expect(try await data == ["one"])
        }
    }

    @Test func postIsSentAgainOnRequest() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            let body = String(decoding: try exchange.readBody(), as: UTF8.self)
            try exchange.writeEvents([.event("\(body)\(count.next())")])
            try exchange.endChunks()
        }
        try await withEventServer(handler) { (_, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.reconnection.methods.insert(.post) }
            let events = client.events("a", method: .post, body: .text("q"), options: options)
            async let data = allData(of: events.through { $0.data == "q1" })
            try await Self.advance(clock)
            #expect(try await data == ["q0", "q1"])
        }
    }

    @Test func requestThatMayWaitIsNeverAnsweredTwice() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            if count.next() == 0 { return try exchange.respond(status: 503) }
            try exchange.writeEvents([.event(exchange.request["X-Key"] ?? "none")])
            try exchange.waitUntilReceived()
            exchange.reset()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let options = EventStreamOptions.test(clock) {
                $0.reconnection.methodsBeforeFirstEvent = [.post]
                $0.reconnection.statuses = [503]
            }
            let events = client.events("a", method: .post, body: .text("q"), options: options) {
                $0.headers["X-Key"] = "seven"
            }
            async let advance: Void = Self.advance(clock)
            var iterator = events.makeAsyncIterator()
            #expect(try await iterator.next()?.data == "seven")
            try await advance
            await #expect(throws: NetworkError.self) { _ = try await iterator.next() }
            #expect(server.requests.count == 2)
        }
    }

    @Test func idThatAFieldCannotHaveIsNotSent() async throws {
        let clock = ManualClock()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.writeEvents([.event(exchange.request["Last-Event-ID"] ?? "none", id: "\u{1}")])
            try exchange.endChunks()
        }
        try await withEventServer(handler) { (_, client) async throws in
            let events = client.events("a", options: .test(clock))
            async let advance: Void = Self.advance(clock)
            var iterator = events.makeAsyncIterator()
            for _ in 0..<2 { #expect(try await iterator.next() == ServerSentEvent(data: "none", id: "\u{1}")) }
            try await advance
        }
    }

    // MARK: No network

    @Test func waitWithoutANetworkCostsNoAttempt() async throws {
        let clock = ManualClock()
        let network = ScriptedNetwork(.unreachable)
        let gates = (0..<4).map { _ in LoopbackServer.Gate() }
        let stub = StubTransport { call in
            defer { gates[call.index].open() }
            if call.index == 3 { return .events([.event("one")]) }
            network.set(.unreachable)
            throw StubTransport.Failure(.dns)
        }
        var configuration = Session.Configuration()
        configuration.reachability = Reachability(network)
        let session = Session(configuration: configuration, stub: stub)
        let client = try Client(baseURL: "https://a.example", session: session)
        let events = client.events("a", options: .test(clock) { $0.reconnection.limit = 0 })
        async let data = allData(of: events.through { _ in true })
        for gate in gates.dropLast() {
            // The stream connects while the gate opens, so that it is offline after this attempt.
            try await gate.wait()
            await events.wait { $0.name == "offline" }
            network.set(.reachable(.wifi))
        }
        #expect(try await data == ["one"])
        #expect(clock.sleeperCount == 0 && stub.calls.count == 4)
    }

    // MARK: Time limits

    @Test func silenceEndsTheConnectionAndACommentIsNoSilence() async throws {
        let clock = ManualClock()
        let ping = LoopbackServer.Gate()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.wait(for: ping)
            try exchange.writeEvents([.comment()])
            try exchange.waitForClientToClose()
        }
        try await withEventServer(handler) { (_, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.silenceTimeout = .seconds(30) }
            let events = client.events("a", method: .post, options: options)
            let delivered = LoopbackServer.Gate()
            async let error = streamFailure {
                for try await _ in events { delivered.open() }
            }
            try await delivered.wait()
            // The reader waits for the next bytes.
            while await events.source.watch?.start != .zero { await Task.yield() }
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(29))
            ping.open()
            while await events.source.watch?.start != .seconds(29) { await Task.yield() }
            clock.advance(by: .seconds(1))
            try await clock.waitForSleepers(1)
            #expect(clock.nextDeadline?.offset == .seconds(59) && events.state.name == "open")
            clock.advance(by: .seconds(29))
            let failure = try await error
            #expect(failure.kind == .silenceTimedOut && failure.reason == "no byte arrived within 30.0 seconds")
        }
    }

    @Test func silenceOfAGetConnectsAgain() async throws {
        let clock = ManualClock()
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.writeEvents([.event("\(count.next())")])
            try exchange.waitForClientToClose()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.silenceTimeout = .seconds(30) }
            let events = client.events("a", options: options)
            let gates = (0..<3).map { _ in LoopbackServer.Gate() }
            let reader = Task {
                for try await event in events {
                    gates[Int(event.data) ?? 0].open()
                    if event.data == "2" { break }
                }
            }
            for number in 0..<2 {
                try await gates[number].wait()
                // Two steps: to the end of the silence, and of the wait for the next attempt.
                while server.requests.count < number + 2 {
                    try await clock.waitForSleepers(1)
                    if server.requests.count < number + 2 { clock.advance(by: .seconds(30)) }
                }
            }
            try await reader.value
        }
    }

    @Test func responseWithoutAHeadEndsAtItsLimit() async throws {
        let clock = ManualClock()
        try await withEventServer {
            try $0.waitForClientToClose()
        } test: { (_, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.firstByteTimeout = .seconds(5) }
            let events = client.events("a", method: .post, options: options)
            async let error = streamFailure { try await allData(of: events) }
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(5))
            #expect(try await error.kind == .firstByteTimedOut)
        }
    }

    @Test func silenceDoesNotCountWhileNobodyReads() async throws {
        let clock = ManualClock()
        let gate = LoopbackServer.Gate()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.writeEvents([.event("one")])
            try exchange.wait(for: gate)
            try exchange.writeEvents([.event("two")])
            try exchange.waitForClientToClose()
        }
        try await withEventServer(handler) { (server, client) async throws in
            let options = EventStreamOptions.test(clock) { $0.silenceTimeout = .seconds(30) }
            var iterator = client.events("a", options: options).makeAsyncIterator()
            #expect(try await iterator.next()?.data == "one")
            for _ in 0..<5 {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(30))
            }
            gate.open()
            #expect(try await iterator.next()?.data == "two")
            #expect(server.requests.count == 1)
        }
    }
}

extension Session.Configuration {
    /// A configuration without proxies of the environment.
    static var direct: Self {
        var configuration = Self()
        configuration.proxies = .none
        return configuration
    }
}
