#if os(Linux)
import Testing

@testable import TernEngine

/// Checks heads over HTTP/2 against the limit of the pool's connections.
@Suite(.timeLimit(.minutes(1))) struct HTTP2HeadLimitTests {
    private static func script(_ values: Int, _ limit: UInt32) -> ScriptedServer.Script {
        return { connection in
            try connection.beginHTTP2()
            let settings = try connection.readFrame(4).payload
            let entry = TestFrame.settings([(6, limit)]).payload
            guard settings.firstRange(of: entry) != nil else { throw ScriptFailure("another limit: \(settings)") }
            let stream = try connection.readFrame(1).stream
            let value = String(repeating: "v", count: 50_000)
            let block = TestFrame.block([(":status", "200")] + (0..<values).map { ("x-\($0)", value) })
            try connection.write(TestFrame.headers(stream, block: block, end: true).flatMap(\.bytes))
            try connection.waitForEndOfFrames()
        }
    }

    private func start(
        values: Int, headLimit: Int
    ) async throws -> (entries: [String], error: EngineError?, server: ScriptedServer) {
        let server = try ScriptedServer(Self.script(values, UInt32(headLimit)))
        var place = Place(server)
        place.assumesHTTP2 = true
        let log: ExchangeLog
        do {
            let harness = try WireHarness(headLimit: headLimit)
            var settings = TestExchange.Settings()
            settings.headLimit = headLimit
            log = harness.start(settings, to: place)
            await log.waitForEnd()
        }
        return (await log.waitForEnd(), log.error, server)
    }

    @Test func aHeadWithinALargeLimitArrives() async throws {
        // 1.5 MB in 92 frames.
        let (entries, _, server) = try await start(values: 30, headLimit: 2 << 20)
        defer { server.stop() }
        #expect(entries == ["connecting", "connected http2 new", "head 200", "ended"])
        #expect(server.failures == [])
    }

    @Test func aHeadBeyondASmallLimitFailsItsStreamAlone() async throws {
        // Beyond the block of a connection with this limit, and within that of the default.
        let (_, error, server) = try await start(values: 5, headLimit: 1_000)
        defer { server.stop() }
        #expect(error?.kind == .tooLarge)
        #expect(error?.reason == "the head of the response exceeds 1000 bytes")
        #expect(server.failures == [])
    }
}
#endif
