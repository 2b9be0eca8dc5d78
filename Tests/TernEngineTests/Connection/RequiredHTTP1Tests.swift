#if os(Linux)
import Testing

@testable import TernEngine

/// Checks requests to servers over HTTP/2 that require HTTP/1.1 (RFC 9113 §7).
@Suite(.timeLimit(.minutes(1))) struct RequiredHTTP1Tests {
    private static let ok = [(":status", "200")]
    /// The error code HTTP_1_1_REQUIRED.
    private static let required: UInt32 = 13
    private static let overHTTP1 = ["connecting", "connected http11 new", "head 200", "ended"]

    /// Returns the endpoint of a server that chooses HTTP/2 whenever it is offered, or is known to speak it.
    private func start(isSecure: Bool, _ scripts: [ScriptedServer.Script]) throws -> (ScriptedServer, Endpoint) {
        let identity = try TestIdentity()
        let tls = isSecure ? try TestServer(identity, choosing: "h2") : nil
        let server = try ScriptedServer(
            tls: tls, { try scripts[0]($0) }, { try scripts[1]($0) }, { if scripts.count > 2 { try scripts[2]($0) } })
        var endpoint = Endpoint(server, policy: isSecure ? TLSPolicy(.only(identity)) : nil)
        endpoint.allowsHTTP2 = true
        endpoint.assumesHTTP2 = !isSecure
        return (server, endpoint)
    }

    /// Starts an exchange, and a second one to the same endpoint in the call that ends the first.
    private func startTwice(_ harness: WireHarness, to endpoint: Endpoint) -> (first: ExchangeLog, second: ExchangeLog)
    {
        let second = ExchangeLog()
        var settings = TestExchange.Settings(method: "POST", path: "/first", body: .length(4), bytes: 4)
        settings.atEnd = { $0.submit(.init(path: "/second"), to: endpoint, log: second) }
        return (harness.start(settings, to: endpoint), second)
    }

    @Test(arguments: [true, false], [false, true])
    func theNextRequestGoesOverHTTP1(isSecure: Bool, endsConnection: Bool) async throws {
        let (server, endpoint) = try start(
            isSecure: isSecure,
            [
                { connection in
                    try connection.beginHTTP2()
                    let stream = try connection.readFrame(1).stream
                    try connection.write(endsConnection ? .goAway(0, Self.required) : .reset(stream, Self.required))
                    try connection.waitForEndOfFrames()
                },
                { try $0.answerAll() },
            ])
        defer { server.stop() }
        let harness = try WireHarness()
        let (first, second) = startTwice(harness, to: endpoint)
        #expect(await first.waitForEnd() == ["connecting", "connected http2 new", "failed notProcessed"])
        #expect(first.error == .requiresHTTP11)
        #expect(await second.waitForEnd() == Self.overHTTP1)
        let third = harness.start("/third", to: endpoint)
        #expect(await third.waitForEnd() == ["connected http11 reused", "head 200", "ended"])
        #expect(server.requests.map(\.count) == [0, 2])
        #expect(server.failures == [])
    }

    @Test func streamsInFlightEndOverHTTP2() async throws {
        let (server, endpoint) = try start(
            isSecure: true,
            [
                { connection in
                    try connection.beginHTTP2()
                    let refused = try connection.readFrame(1).stream
                    let other = try connection.readFrame(1).stream
                    try connection.write(.reset(refused, Self.required), .headers(other, Self.ok, end: true))
                    try connection.waitForEndOfFrames()
                },
                { try $0.answerAll() },
            ])
        defer { server.stop() }
        let harness = try WireHarness()
        let (first, second) = startTwice(harness, to: endpoint)
        let other = harness.start("/other", to: endpoint)
        #expect(await first.waitForEnd().last == "failed notProcessed")
        #expect(await other.waitForEnd().suffix(3) == ["connected http2 reused", "head 200", "ended"])
        #expect(await second.waitForEnd() == Self.overHTTP1)
        #expect(server.failures == [])
    }

    @Test func aConnectionThatHasOfferedHTTP2IsClosed() async throws {
        let offered = Gate()
        let (server, endpoint) = try start(
            isSecure: true,
            [
                { connection in
                    // One stream at a time, so that the second request needs a connection of its own.
                    try connection.beginHTTP2([(3, 1)])
                    let stream = try connection.readFrame(1).stream
                    try connection.write(.headers(stream, [(":status", "103")]))
                    try offered.wait()
                    try connection.write(.reset(stream, Self.required))
                    try connection.waitForEndOfFrames()
                },
                { connection in
                    guard try connection.hasInput(within: 20_000) else { throw ScriptFailure("no handshake") }
                    offered.open()
                    try connection.waitForEndOfBytes()
                },
                { try $0.answerAll() },
            ])
        defer { server.stop() }
        let harness = try WireHarness()
        let first = harness.start("/first", to: endpoint)
        await first.wait(for: "interim")
        let second = harness.start("/second", to: endpoint)
        #expect(await first.waitForEnd().last == "failed notProcessed")
        #expect(await second.waitForEnd().suffix(3) == Self.overHTTP1.suffix(3))
        #expect(server.accepted == 3)
        #expect(server.failures == [])
    }
}
#endif
