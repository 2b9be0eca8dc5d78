#if os(Linux)
import Testing

@testable import TernEngine

/// Checks heads over HTTP/2 against the limit of the pool's connections.
@Suite(.timeLimit(.minutes(1))) struct HTTP2HeadLimitTests {
    /// Starts two exchanges on one connection. The head of the first response has so many fields of 50,000 bytes.
    private func start(fields: Int, headLimit: Int) async throws -> (first: ExchangeLog, second: ExchangeLog) {
        let server = try ScriptedServer({ connection in
            try connection.beginHTTP2()
            let settings = try connection.readFrame(4).payload
            let entry = TestFrame.settings([(6, UInt32(headLimit))]).payload
            guard settings.firstRange(of: entry) != nil else { throw ScriptFailure("another limit: \(settings)") }
            let streams = [try connection.readFrame(1).stream, try connection.readFrame(1).stream]
            let value = String(repeating: "v", count: 50_000)
            let block = TestFrame.block([(":status", "200")] + (0..<fields).map { ("x-\($0)", value) })
            try connection.write(TestFrame.headers(streams[0], block: block, end: true).flatMap(\.bytes))
            try connection.write(.headers(streams[1], [(":status", "204")], end: true))
            try connection.waitForEndOfFrames()
        })
        defer { server.stop() }
        var endpoint = Endpoint(server)
        endpoint.assumesHTTP2 = true
        let harness = try WireHarness(headLimit: headLimit)
        var settings = TestExchange.Settings()
        settings.headLimit = headLimit
        let logs = (first: harness.start(settings, to: endpoint), second: harness.start(settings, to: endpoint))
        await logs.first.waitForEnd()
        await logs.second.waitForEnd()
        #expect(server.failures == [])
        return logs
    }

    @Test func aHeadWithinALargeLimitArrives() async throws {
        // 1.5 MB in 92 frames.
        let logs = try await start(fields: 30, headLimit: 2 << 20)
        #expect(await logs.first.waitForEnd().suffix(2) == ["head 200", "ended"])
        #expect(await logs.second.waitForEnd().suffix(2) == ["head 204", "ended"])
    }

    @Test func aHeadBeyondASmallLimitFailsItsStreamAlone() async throws {
        // Four times the block that this limit alone would allow.
        let logs = try await start(fields: 5, headLimit: 1_000)
        #expect(logs.first.error?.reason == "the head of the response exceeds 1000 bytes")
        #expect(await logs.second.waitForEnd().suffix(2) == ["head 204", "ended"])
    }
}
#endif
