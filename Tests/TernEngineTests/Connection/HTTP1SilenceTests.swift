#if os(Linux)
import Testing

@testable import TernEngine

/// Checks what happens on a connection over HTTP/1 whose server is silent although a response is due.
@Suite(.timeLimit(.minutes(1))) struct HTTP1SilenceTests {
    private static let limits = HTTP1Liveness.Limits(
        unprobed: 20_000_000, dead: 50_000_000, interval: 20_000_000)

    /// Without the looks, the system sends the request again for a quarter of an hour.
    @Test func aServerThatHasVanishedIsFoundBeforeAnyTimeLimit() async throws {
        let (vanished, mayEnd) = (Gate(), Gate())
        let server = try ScriptedServer({ connection in
            try connection.answer()
            try connection.vanish()
            vanished.open()
            try mayEnd.wait()
        })
        defer { server.stop() }
        let harness = try WireHarness(path: Self.limits)
        #expect(await harness.start("/first", to: Endpoint(server)).outcome().status == 200)
        try vanished.wait()
        let outcome = await harness.start("/second", to: Endpoint(server)).outcome()
        mayEnd.open()
        #expect(outcome.error?.kind == .connectionLost && outcome.isReused)
        #expect(outcome.error?.reason.contains("no longer answers") == true)
    }

    @Test func aServerThatWorksOnItsAnswerKeepsItsConnection() async throws {
        let mayAnswer = Gate()
        let server = try ScriptedServer({ connection in
            let path = try connection.readHead().split(separator: " ")[1]
            try mayAnswer.wait()
            try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(path.utf8.count)\r\n\r\n\(path)")
            try connection.answer()
        })
        defer { server.stop() }
        let harness = try WireHarness(path: HTTP1Liveness.Limits(unprobed: 1, dead: 1, interval: 1_000_000))
        let first = harness.start("/first", to: Endpoint(server))
        // Many looks happen meanwhile.
        for _ in 0..<200 { _ = await harness.value { _ in 0 } }
        mayAnswer.open()
        #expect(await first.outcome().status == 200)
        #expect(await harness.start("/second", to: Endpoint(server)).outcome().status == 200)
        #expect(server.accepted == 1 && server.failures == [])
    }
}
#endif
