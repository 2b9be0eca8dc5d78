#if os(Linux)
import Testing

@testable import TernEngine

/// Another protocol on a stream of an HTTP/2 connection (RFC 8441), with the frames of a server.
@Suite(.timeLimit(.minutes(1))) struct ExtendedConnectTests {
    private static let ok = [(":status", "200")]
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 §3).
    private static let allowed: [(UInt16, UInt32)] = [(8, 1)]

    private func settings(bytes: Int = 4) -> TestExchange.Settings {
        var settings = TestExchange.Settings()
        settings.upgrade = "websocket"
        settings.sharesStream = true
        settings.bytes = bytes
        settings.path = "/live?room=1"
        settings.fields = [
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13"), ("Cookie", "a=1"),
        ]
        return settings
    }

    /// Returns a connection that has carried an ordinary exchange.
    private func connect(
        _ server: FrameServer, _ harness: WireHarness, _ settings: [(UInt16, UInt32)]
    ) async throws -> FrameConnection {
        let first = harness.start(to: Endpoint(server))
        let connection = try server.connect(settings)
        let head = try connection.next(1)
        _ = connection.fields(head)
        try connection.respond(to: head.stream)
        #expect(await first.outcome().error == nil)
        return connection
    }

    @Test func theStreamCarriesBothDirections() async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, Self.allowed)
        let log = harness.start(settings(), to: Endpoint(server))
        let head = try connection.next(1)
        // No END_STREAM.
        #expect(head.flags == 4)
        let port = server.address.port
        #expect(
            connection.fields(head) == [
                ":method: CONNECT", ":protocol: websocket", ":scheme: http", ":authority: localhost:\(port)",
                ":path: /live?room=1", "sec-websocket-version: 13", "!cookie: a=1",
            ])
        // A length means nothing for CONNECT (RFC 9110 §9.3.6).
        try connection.send(
            .headers(head.stream, Self.ok + [("content-length", "1")]), .data(head.stream, "bytes of the server"))
        #expect(try connection.next(0) == .data(head.stream, "xxxx"))
        try connection.send(.data(head.stream, " and the end", end: true))
        let outcome = await log.outcome()
        #expect(outcome.error == nil && outcome.head?.status == 200)
        #expect(String(decoding: outcome.body, as: UTF8.self) == "bytes of the server and the end")
        #expect(!server.hasConnection)
    }

    @Test func aResetIsAFailure() async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, Self.allowed)
        let log = harness.start(settings(), to: Endpoint(server))
        let stream = try connection.next(1).stream
        try connection.send(.headers(stream, Self.ok), .reset(stream, 8))
        #expect(await log.outcome().error?.kind == .connectionLost)
    }

    @Test func cancellingResetsTheStreamAlone() async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, Self.allowed)
        let log = harness.start(settings(bytes: 0), to: Endpoint(server))
        let head = try connection.next(1)
        _ = connection.fields(head)
        try connection.send(.headers(head.stream, Self.ok), .data(head.stream, "x"))
        await log.wait(for: "body")
        harness.cancel(log)
        var frame = try connection.next()
        // The empty body of the test can end before.
        if frame?.type == 0 { frame = try connection.next() }
        #expect(frame == .reset(head.stream, 8))
        let next = harness.start(to: Endpoint(server))
        let request = try connection.next(1)
        try connection.respond(to: request.stream)
        #expect(await next.outcome().error == nil)
    }

    @Test(arguments: [[], [(8, 0)]] as [[(UInt16, UInt32)]])
    func withoutTheServersSettingNoStreamIsUsed(values: [(UInt16, UInt32)]) async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, values)
        let log = harness.start(settings(), to: Endpoint(server))
        // The test's destination has no connection over HTTP/1.
        #expect(await log.outcome().error?.kind == .invalidRequest)
        let next = harness.start(to: Endpoint(server))
        let head = try connection.next(1)
        #expect(connection.fields(head).first == ":method: GET")
        try connection.respond(to: head.stream)
        #expect(await next.outcome().error == nil)
    }

    /// Streams of sockets last long: a socket takes a connection of its own in place of a turn.
    @Test func aFullConnectionTakesNoSocket() async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, Self.allowed + [(3, 1)])
        let open = harness.start(to: Endpoint(server))
        let head = try connection.next(1)
        let log = harness.start(settings(), to: Endpoint(server))
        // The test's destination has no connection over HTTP/1, and none over HTTP/2 is opened for the socket and
        // others.
        _ = try server.accept()
        #expect(await log.outcome().error?.kind == .invalidRequest)
        try connection.respond(to: head.stream)
        #expect(await open.outcome().error == nil)
    }

    @Test func aRefusedSocketWasNotProcessed() async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, Self.allowed)
        let log = harness.start(settings(bytes: 0), to: Endpoint(server))
        try connection.send(.reset(connection.next(1).stream, 7))
        #expect(await log.outcome().error?.kind == .notProcessed)
    }

    @Test func aDrainingConnectionTakesNoSocket() async throws {
        let (server, harness) = (try FrameServer(), try WireHarness())
        let connection = try await connect(server, harness, Self.allowed)
        let open = harness.start(to: Endpoint(server))
        let head = try connection.next(1)
        try connection.send(.goAway(head.stream))
        try connection.waitUntilRead()
        let log = harness.start(settings(), to: Endpoint(server))
        // A new connection, whose SETTINGS have not come.
        _ = try server.connect(Self.allowed)
        #expect(await log.outcome().error?.kind == .invalidRequest)
        try connection.respond(to: head.stream)
        #expect(await open.outcome().error == nil)
    }
}
#endif
