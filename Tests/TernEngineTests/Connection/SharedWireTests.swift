#if os(Linux)
import Foundation
import Glibc
import Testing

@testable import TernEngine

/// HTTP/2 connections with the frames of a real server, and the loop while nothing happens.
@Suite(.timeLimit(.minutes(1))) struct SharedWireTests {
    private static let ok = [(":status", "200")]

    private func start(_ scripts: ScriptedServer.Script...) throws -> (ScriptedServer, Endpoint) {
        let identity = try TestIdentity()
        let tls = try TestServer(identity, choosing: "h2")
        let server = try ScriptedServer(
            tls: tls, { try scripts[0]($0) }, { if scripts.count > 1 { try scripts[1]($0) } })
        var endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        endpoint.allowsHTTP2 = true
        return (server, endpoint)
    }

    @Test func aFullResponseBeforeGoAwayIsDelivered() async throws {
        let (server, endpoint) = try start({ connection in
            try connection.beginHTTP2()
            let stream = try connection.readFrame(1).stream
            try connection.write(
                .headers(stream, Self.ok), .data(stream, "whole", end: true), .goAway(stream))
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(to: endpoint)
        #expect(await log.waitForEnd() == ["connecting", "connected http2 new", "head 200", "ended"])
        #expect(log.text == "whole")
        #expect(server.failures == [])
    }

    @Test func aResponseThatIsHeldBackSurvivesItsConnection() async throws {
        let paused = Gate()
        let (server, endpoint) = try start({ connection in
            try connection.beginHTTP2()
            let first = try connection.readFrame(1).stream
            let second = try connection.readFrame(1).stream
            try connection.write(.headers(first, Self.ok), .data(first, "one "))
            try paused.wait()
            try connection.write(.data(first, "two "), .data(first, "three", end: true))
            // The stream of the second exchange ends with the connection.
            _ = second
        })
        defer { server.stop() }
        let harness = try WireHarness()
        var settings = TestExchange.Settings()
        settings.pauses = true
        let log = harness.start(settings, to: endpoint)
        let witness = harness.start(to: endpoint)
        await log.wait(for: "paused")
        paused.open()
        #expect(await witness.waitForEnd().last == "failed connectionLost")
        #expect(log.text == "one ")
        harness.resume(log)
        #expect(await log.waitForEnd().last == "ended")
        #expect(log.text == "one two three")
        #expect(server.failures == [])
    }

    @Test func aSharedConnectionIsCountedOnce() async throws {
        let server = try FrameServer()
        let harness = try WireHarness()
        let logs = (0..<2).map { _ in harness.start(to: Endpoint(server)) }
        let connection = try server.connect()
        let streams = [try connection.next(1).stream, try connection.next(1).stream]
        let counts: @Sendable (PoolClient) -> [ConnectionPool.OpenCount] = { Array($0.pool.openCounts.values) }
        #expect(await harness.value(counts) == [.init(active: 1)])
        try connection.send(.headers(streams[0], Self.ok, end: true))
        _ = await logs[0].waitForEnd()
        #expect(await harness.value(counts) == [.init(active: 1)])
        // It goes on for its last stream, and takes no other.
        harness.perform { $0.pool.drain() }
        #expect(await harness.value(counts) == [.init(active: 1)])
        try connection.send(.headers(streams[1], Self.ok, end: true))
        #expect(await logs[1].waitForEnd().last == "ended")
        #expect(await harness.value(counts) == [])
    }

    @Test func aConnectionThatDoesNotAnswerTakesNoNewRequest() async throws {
        let end = Gate()
        let (server, endpoint) = try start(
            { connection in
                try connection.beginHTTP2()
                _ = try connection.readFrame(1)
                try end.wait()
            },
            { connection in
                try connection.beginHTTP2()
                let stream = try connection.readFrame(1).stream
                try connection.write(.headers(stream, Self.ok, end: true))
                try end.wait()
            })
        defer { server.stop() }
        let harness = try WireHarness()
        let silent = harness.start("/silent", to: endpoint)
        await silent.wait(for: "connected")
        // The steps of a caller whose limit for silence has passed.
        harness.perform { client in
            guard let exchange = client.exchange(of: silent) else { return }
            exchange.avoidConnection()
            client.pool.cancel(exchange)
        }
        let next = harness.start("/next", to: endpoint)
        #expect(await next.waitForEnd() == ["connecting", "connected http2 new", "head 200", "ended"])
        #expect(server.accepted == 2)
        for _ in 0..<2 { end.open() }
    }

    @Test func anIdleLoopMakesNoWakeUps() async throws {
        let (asked, quiet) = (Gate(), ExchangeLog())
        let server = try ScriptedServer({ connection in
            try connection.answer()
            // Other tests can use the loop at the same time, so one quiet interval of several is enough.
            for _ in 0..<60 {
                let before = LoopThread.switches()
                guard try !connection.hasInput(within: 300) else { throw ScriptFailure("the client spoke") }
                if before == LoopThread.switches() {
                    quiet.add("quiet")
                    return try asked.wait()
                }
            }
            throw ScriptFailure("the loop woke up again and again")
        })
        defer { server.stop() }
        let harness = try WireHarness()
        let log = harness.start(to: Endpoint(server))
        #expect(await log.waitForEnd().last == "ended")
        await quiet.wait(for: "quiet")
        asked.open()
        #expect(server.failures == [])
    }

    /// A handler that asks for a call at the end of each turn until one is idle.
    private final class SmallPieces: TurnEndHandler {
        private let log: ExchangeLog
        private var calls = 0

        init(_ log: ExchangeLog) { self.log = log }

        func turnEnds(isIdle: Bool) -> Bool {
            calls += 1
            guard isIdle else { return calls < 1_000 }
            log.add("delivered")
            return false
        }
    }

    @Test func aTurnWithoutEventsDeliversSmallPieces() async throws {
        let harness = try WireHarness()
        let log = ExchangeLog()
        harness.perform { $0.callAtTurnEnd(SmallPieces(log)) }
        await log.wait(for: "delivered")
    }
}

/// The thread of the loop, as the system sees it.
private enum LoopThread {
    /// Returns the number of times that the system has switched to the loop so far; nil if it has no thread.
    static func switches() -> Int? {
        let folder = "/proc/self/task"
        for thread in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            // Threads can end meanwhile.
            guard let name = try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8),
                name == "tern-loop\n",
                let status = try? String(contentsOfFile: "\(folder)/\(thread)/status", encoding: .utf8)
            else { continue }
            return status.split(separator: "\n").filter { $0.contains("ctxt_switches") }
                .compactMap { $0.split(separator: "\t").last.flatMap { Int($0) } }.reduce(0, +)
        }
        return nil
    }
}
#endif
