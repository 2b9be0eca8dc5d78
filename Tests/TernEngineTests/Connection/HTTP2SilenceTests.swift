#if os(Linux)
import Testing
@testable import TernEngine

/// Checks what happens on a connection whose server falls silent.
@Suite(.timeLimit(.minutes(1))) struct HTTP2SilenceTests {
    private static let silence: UInt64 = 50_000_000
    /// Long, because most answers must come in time.
    private static let answer: UInt64 = 2_000_000_000
    private static let limits = HTTP2Liveness.Limits(silences: [silence], answer: answer, unused: .max)
    private static let probing = HTTP2Liveness.Limits(silences: [], answer: answer, unused: 0)

    @Test func aSilentServerIsAskedAndItsConnectionClosed() async throws {
        let server = try FrameServer()
        let harness = try WireHarness(liveness: Self.limits)
        let calls = (0..<2).map { _ in harness.start(to: Endpoint(server)) }
        let connection = try server.connect()
        #expect(try connection.next(1).stream == 1)
        #expect(try connection.next(1).stream == 3)
        #expect(try connection.next(6).flags == 0)
        #expect(try connection.next() == nil)
        for call in calls {
            let outcome = await call.outcome()
            #expect(outcome.error?.kind == .connectionLost && !outcome.isDeadConnection)
            #expect(outcome.error?.reason.contains("PING") == true)
        }
    }

    @Test func aServerThatAnswersKeepsItsStreamsAndAnIdleConnectionIsLeftAlone() async throws {
        let server = try FrameServer()
        let idle = try FrameServer()
        let idleHarness = try WireHarness(
            liveness: HTTP2Liveness.Limits(silences: [Self.silence], answer: .max, unused: .max))
        let harness = try WireHarness(liveness: Self.limits)
        let first = idleHarness.start(to: Endpoint(idle))
        let idleConnection = try idle.connect()
        let idleStream = try idleConnection.next(1).stream
        try idleConnection.readSettingsAnswer()
        try idleConnection.respond(to: idleStream)
        #expect(await first.outcome().status == 200)
        // A slow machine can have been silent before the response.
        try idleConnection.dropInput()
        let call = harness.start(to: Endpoint(server))
        let connection = try server.connect()
        let stream = try connection.next(1).stream
        for _ in 0..<4 { try connection.answerPing() }
        try connection.respond(to: stream)
        #expect(await call.outcome().status == 200)
        // Meanwhile the idle connection was silent four times as long.
        #expect(!idleConnection.hasInput)
    }

    @Test func anUnusedConnectionIsAskedWithItsNextRequest() async throws {
        let server = try FrameServer()
        let harness = try WireHarness(liveness: Self.probing)
        let first = harness.start(to: Endpoint(server))
        let connection = try server.connect()
        // PING goes before HEADERS.
        try connection.answerPing()
        try connection.respond(to: connection.next(1).stream)
        #expect(await first.outcome().status == 200)
        let second = harness.start(to: Endpoint(server))
        _ = try connection.next(6)
        #expect(try connection.next(1).stream == 3)
        #expect(try connection.next() == nil)
        let outcome = await second.outcome()
        #expect(outcome.error?.kind == .connectionLost && outcome.isReused && outcome.isDeadConnection)
    }

    @Test func silenceOnAUsedConnectionIsNoDeadConnection() async throws {
        let server = try FrameServer()
        let harness = try WireHarness(liveness: Self.limits)
        let first = harness.start(to: Endpoint(server))
        let connection = try server.connect()
        try connection.respond(to: connection.next(1).stream)
        #expect(await first.outcome().status == 200)
        let second = harness.start(to: Endpoint(server))
        #expect(try connection.next(1).stream == 3)
        _ = try connection.next(6)
        #expect(try connection.next() == nil)
        let outcome = await second.outcome()
        #expect(outcome.error?.kind == .connectionLost && outcome.isReused && !outcome.isDeadConnection)
    }
}
#endif
