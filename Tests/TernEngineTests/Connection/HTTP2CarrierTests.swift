#if os(Linux)
import Testing
@testable import TernEngine

/// Checks exchanges over HTTP/2 with a server that the test answers for.
@Suite(.timeLimit(.minutes(1))) struct HTTP2CarrierTests {
    private static let ok = [(":status", "200")]

    @Test func trailersGoBothWays() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(
            .init(method: "POST", body: .stream, bytes: 4, trailers: "X-Sum: 7\r\n"), to: Endpoint(server))
        let connection = try server.connect()
        let head = try connection.next(1)
        #expect(head.flags == 4)
        _ = connection.fields(head)
        #expect(try connection.next(0) == .data(head.stream, "xxxx"))
        var last = try connection.next()
        // The end of the body can be an empty frame of its own.
        if last?.type == 0 { last = try connection.next() }
        let trailers = try #require(last)
        #expect(trailers.type == 1 && trailers.flags == 5)
        #expect(connection.fields(trailers) == ["x-sum: 7"])
        try connection.send(
            .headers(head.stream, Self.ok), .data(head.stream, "ok"), .headers(head.stream, [("x-end", "y")], end: true)
        )
        let outcome = await call.outcome()
        #expect(outcome.error == nil && outcome.body == Array("ok".utf8))
        #expect(outcome.trailers == Array("x-end: y\r\n".utf8))
    }

    @Test func invalidTrailersFailTheRequest() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(
            .init(method: "POST", body: .stream, bytes: 4, trailers: ":path: /\r\n"), to: Endpoint(server))
        let connection = try server.connect()
        #expect(await call.outcome().error?.kind == .invalidRequest)
        let head = try connection.next(1)
        var last = try connection.next()
        while let frame = last, frame.type == 0 {
            #expect(frame.flags == 0)
            last = try connection.next()
        }
        #expect(last == .reset(head.stream, 8))
    }

    // MARK: Resets

    /// INTERNAL_ERROR, CANCEL and ENHANCE_YOUR_CALM (RFC 9113 §7), and the end of the connection, before a second
    /// response.
    @Test(arguments: [2, 8, 11, nil] as [UInt32?])
    func onlyTheEndOfAConnectionIsADeadConnection(code: UInt32?) async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let endpoint = Endpoint(server)
        let first = harness.start(to: endpoint)
        var connection: FrameConnection? = try server.connect()
        try connection?.send(.headers(try connection?.next(1).stream ?? 0, Self.ok, end: true))
        #expect(await first.outcome().error == nil)
        let second = harness.start(to: endpoint)
        let stream = try connection?.next(1).stream ?? 0
        if let code { try connection?.send(.reset(stream, code)) } else { connection = nil }
        let outcome = await second.outcome()
        #expect(outcome.error?.kind == .connectionLost && outcome.isReused)
        #expect(outcome.isDeadConnection == (code == nil))
        withExtendedLifetime(connection) {}
    }

    // MARK: Windows

    @Test func aReaderThatGoesOnReturnsItsBytesToTheWindow() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        var settings = TestExchange.Settings()
        settings.pauses = true
        let endpoint = Endpoint(server)
        let log = harness.start(settings, to: endpoint)
        let connection = try server.connect()
        let stream = try connection.next(1).stream
        try connection.send(.headers(stream, Self.ok), .data(stream, "x"))
        await log.wait(for: "paused")
        // The rest of the window, which waits for the reader.
        let window = 1 << 20
        var left = window - 1
        while left > 0 {
            let size = min(left, 16_384)
            try connection.send(.data(stream, [UInt8](repeating: 0x78, count: size)))
            try connection.waitUntilRead()
            left -= size
        }
        #expect(connection.updates[stream] == nil && log.body.count == 1)
        harness.resume(log)
        #expect(try connection.waitForUpdate(of: stream) == window)
        try connection.send(.data(stream, "y", end: true))
        #expect(await log.waitForEnd().last == "ended")
        #expect(log.body.count == window + 1 && log.body.last == 0x79)
    }

    /// Whichever of the two readers gets its held bytes first withdraws the other.
    @Test func aReaderThatIsWithdrawnByAnotherReceivesNoHeldBytes() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let endpoint = Endpoint(server)
        let logs = [ExchangeLog(), ExchangeLog()]
        for (index, log) in logs.enumerated() {
            harness.perform { client in
                var settings = TestExchange.Settings()
                settings.pauses = true
                settings.atBody = { client in
                    guard log.body.count > 1 else { return }
                    client.exchange(of: logs[1 - index]).map { client.pool.cancel($0) }
                }
                client.submit(settings, to: endpoint, log: log)
            }
        }
        let connection = try server.connect()
        let streams = [try connection.next(1).stream, try connection.next(1).stream]
        for stream in streams { try connection.send(.headers(stream, Self.ok), .data(stream, "x")) }
        for log in logs { await log.wait(for: "paused") }
        for stream in streams { try connection.send(.data(stream, "y", end: true)) }
        try connection.waitUntilRead()
        await harness.value { client in
            for log in logs { client.exchange(of: log)?.set(isReading: true, isSending: true) }
        }
        #expect(await harness.value { _ in logs.map(\.text).sorted() } == ["x", "xy"])
        #expect(logs.map { $0.entries.contains("ended") } == logs.map { $0.text == "xy" })
    }

    @Test func aCancelledReaderReturnsItsBytesToTheConnection() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        var settings = TestExchange.Settings()
        settings.pauses = true
        let endpoint = Endpoint(server)
        let witness = harness.start(to: endpoint)
        let connection = try server.connect()
        let other = try connection.next(1).stream
        let window = 1 << 20
        var sent = 0
        // The window of the connection has 16 MiB, and half of it is returned at a time. The first update enlarges it.
        for _ in 0..<8 {
            let log = harness.start(settings, to: endpoint)
            let stream = try connection.next(1).stream
            try connection.send(.headers(stream, Self.ok), .data(stream, "x"))
            await log.wait(for: "paused")
            let part = [UInt8](repeating: 0x78, count: 16_384)
            for index in 1..<(window / part.count) {
                // Half of the bytes come after the end of the reader.
                if index == window / part.count / 2 {
                    harness.cancel(log)
                    #expect(try connection.next(3) == .reset(stream, 8))
                }
                try connection.send(.data(stream, part))
                try connection.waitUntilRead()
            }
            sent += 1 + (window / part.count - 1) * part.count
        }
        let first = (16 << 20) - 65_535
        #expect(connection.updates[0] == first)
        // The last bytes of the half.
        try connection.send(.headers(other, Self.ok))
        var left = (8 << 20) - sent
        while left > 1 {
            let size = min(left - 1, 16_384)
            try connection.send(.data(other, [UInt8](repeating: 0x78, count: size)))
            try connection.waitUntilRead()
            left -= size
        }
        #expect(connection.updates[0] == first)
        try connection.send(.data(other, "y", end: true))
        #expect(await witness.waitForEnd().last == "ended")
        try connection.waitUntilRead()
        try connection.waitUntilRead()
        #expect(connection.updates[0] == first + (8 << 20))
    }

    @Test func aFullEchoBeforeTheEndOfTheUploadIsWhole() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        // The window of the server holds the end of the upload back.
        let text = String(repeating: "x", count: 80_000)
        let call = harness.start(
            .init(method: "POST", body: .length(Int64(text.utf8.count)), bytes: text.utf8.count), to: Endpoint(server))
        let connection = try server.connect()
        let stream = try connection.next(1).stream
        var echoed = 0
        try connection.send(.headers(stream, Self.ok + [("content-length", "\(text.utf8.count)")]))
        while echoed < 65_535 {
            let part = try connection.next(0).payload
            try connection.send(.data(stream, part))
            echoed += part.count
        }
        try connection.send(.data(stream, String(text.dropFirst(echoed)), end: true))
        let outcome = await call.outcome()
        #expect(outcome.error == nil && outcome.body == Array(text.utf8))
        // The upload stops, which is no failure (RFC 9113 §8.1).
        #expect(try connection.next() == .reset(stream, 0))
    }

    static let contradictions: [(name: String, value: String, body: RequestBody)] = [
        ("Content-Length", "5", .none), ("Content-Length", "5", .length(4)), ("Content-Length", "4", .stream),
        ("Transfer-Encoding", "chunked", .length(4)), ("Transfer-Encoding", "chunked", .none),
    ]

    @Test(arguments: contradictions.indices)
    func fieldsThatContradictTheBodyAreRefused(_ index: Int) async throws {
        let (name, value, body) = Self.contradictions[index]
        let server = try FrameServer()
        let harness = try WireHarness()
        let first = harness.start(
            .init(method: "POST", fields: [(name, value)], body: body, bytes: 4), to: Endpoint(server))
        let connection = try server.connect()
        #expect(await first.outcome().error?.kind == .invalidRequest)
        // Nothing of the request was sent, and the connection is of use.
        let second = harness.start(
            .init(method: "POST", fields: [("Content-Length", "4")], body: .length(4), bytes: 4), to: Endpoint(server))
        let head = try connection.next(1)
        #expect(head.stream == 1 && connection.fields(head).filter { $0.hasPrefix("content-length") }.count == 1)
        try connection.respond(to: head.stream)
        #expect(await second.outcome().status == 200)
    }

    @Test func fieldsOfTheConnectionStayBehind() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let fields = [
            ("Host", "other.example"), ("Connection", "close"), ("Keep-Alive", "5"), ("Upgrade", "x"),
            ("Transfer-Encoding", "chunked"), ("TE", "trailers"), ("Proxy-Authorization", "Basic x"), ("A", "b"),
        ].map { (name: $0.0, value: $0.1) }
        harness.start(.init(method: "POST", fields: fields, body: .stream, bytes: 4), to: Endpoint(server))
        let connection = try server.connect()
        #expect(
            connection.fields(try connection.next(1)) == [
                ":method: POST", ":scheme: http", ":authority: other.example", ":path: /", "te: trailers", "a: b",
            ])
    }

    @Test func aMisdirectedRequestEndsTheUseOfItsConnection() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let first = harness.start(to: Endpoint(server))
        let connection = try server.connect()
        try connection.respond("421", to: connection.next(1).stream)
        #expect(await first.outcome().status == 421)
        let second = harness.start(to: Endpoint(server))
        let other = try server.connect()
        try other.respond(to: other.next(1).stream)
        let outcome = await second.outcome()
        #expect(outcome.status == 200 && !outcome.isReused)
        #expect(try connection.next() == nil)
    }

    // MARK: Priorities

    @Test func anUrgencyIsSentAndUpdated() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(.init(urgency: 1), to: Endpoint(server))
        let connection = try server.connect([(9, 1)])
        let head = try connection.next(1)
        #expect(connection.fields(head).last == "priority: u=1")
        // The answer to SETTINGS says that the client knows about the server's support of RFC 9218.
        try connection.readSettingsAnswer()
        harness.prioritize(call, urgency: 7)
        let update = try connection.next(16)
        #expect(update.payload == TestFrame.number(UInt32(head.stream)) + Array("u=7".utf8))
        try connection.respond(to: head.stream)
        #expect(await call.outcome().status == 200)
    }

    @Test func theCallersPriorityWins() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(.init(fields: [("Priority", "u=5, i")], urgency: 1), to: Endpoint(server))
        let connection = try server.connect([(9, 1)])
        let head = try connection.next(1)
        #expect(connection.fields(head).filter { $0.hasPrefix("priority") } == ["priority: u=5, i"])
        try connection.readSettingsAnswer()
        harness.prioritize(call, urgency: 7)
        let next = harness.start(to: Endpoint(server))
        // No PRIORITY_UPDATE precedes the next request, which has no field.
        let other = try connection.next(1)
        #expect(connection.fields(other).count == 4)
        for stream in [head.stream, other.stream] { try connection.respond(to: stream) }
        #expect(await next.outcome().status == 200)
    }

    // MARK: Prior knowledge

    @Test(arguments: [1, 3, 5, 100])
    func aServerOfHTTP1IsNamed(_ split: Int) async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(to: Endpoint(server))
        let connection = try server.accept()
        let answer = Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8)
        try connection.send(Array(answer.prefix(split)))
        if split < answer.count { try connection.send(Array(answer.dropFirst(split))) }
        let outcome = await call.outcome()
        #expect(outcome.error?.kind == .malformedResponse && !outcome.isDeadConnection)
        #expect(outcome.error?.reason.contains("HTTP/1") == true)
    }

    @Test func aServerThatClosesAtOnceIsNamed() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(to: Endpoint(server))
        do { _ = try server.accept() }
        let outcome = await call.outcome()
        #expect(outcome.error?.kind == .connectionLost && !outcome.isDeadConnection)
        #expect(outcome.error?.reason.contains("HTTP/2") == true)
    }

    // MARK: Limits and ends

    @Test func aLowerMaximumLetsRequestsWait() async throws {
        let server = try FrameServer()
        let harness = try WireHarness(connectionsPerOrigin: 1)
        let calls = (0..<2).map { _ in harness.start(to: Endpoint(server)) }
        let connection = try server.connect()
        for stream: Int32 in [1, 3] { #expect(try connection.next(1).stream == stream) }
        try connection.readSettingsAnswer()
        try connection.send(.settings([(3, 1)]))
        try connection.readSettingsAnswer()
        let third = harness.start(to: Endpoint(server))
        try connection.respond(to: 1)
        #expect(await calls[0].outcome().status == 200)
        // One stream is in flight, as many as the server allows.
        try connection.respond(to: 3)
        #expect(await calls[1].outcome().status == 200)
        try connection.respond(to: connection.next(1).stream)
        #expect(await third.outcome().status == 200)
        #expect(!server.hasConnection)
    }

    @Test func aGracefulEndFinishesItsStreamsAndMovesOthers() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let calls = (0..<2).map { _ in harness.start(to: Endpoint(server)) }
        let connection = try server.connect()
        for stream: Int32 in [1, 3] { #expect(try connection.next(1).stream == stream) }
        try connection.send(.goAway(1))
        let above = await calls[1].outcome()
        #expect(above.error?.kind == .notProcessed && !above.isDeadConnection)
        let next = harness.start(to: Endpoint(server))
        let other = try server.connect()
        try other.respond(to: other.next(1).stream)
        #expect(await next.outcome().status == 200)
        try connection.send(.headers(1, Self.ok), .data(1, "rest", end: true))
        let finished = await calls[0].outcome()
        #expect(finished.error == nil && finished.body == Array("rest".utf8))
        #expect(try connection.next() == nil)
    }

    /// The next request finds the reset, while the answer to the first one has not been read.
    @Test func aResponseBeforeAResetIsRead() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let first = harness.start(to: Endpoint(server))
        let connection = try server.connect()
        let stream = try connection.next(1).stream
        try connection.readSettingsAnswer()
        let (busy, goOn) = (ExchangeLog(), Gate())
        let second = ExchangeLog()
        let endpoint = Endpoint(server)
        harness.perform { client in
            busy.add("busy")
            try? goOn.wait()
            client.submit(.init(), to: endpoint, log: second)
        }
        await busy.wait(for: "busy")
        try connection.send(.headers(stream, [(":status", "413")], end: true))
        connection.reset()
        goOn.open()
        #expect(await first.outcome().status == 413)
        #expect(await second.outcome().error?.kind == .connectionLost)
    }

    @Test func aRefusedStreamWasNotProcessed() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let call = harness.start(.init(method: "POST", body: .length(4), bytes: 4), to: Endpoint(server))
        let connection = try server.connect()
        try connection.send(.reset(connection.next(1).stream, 7))
        let outcome = await call.outcome()
        #expect(outcome.error?.kind == .notProcessed && !outcome.isDeadConnection)
    }
}
#endif
