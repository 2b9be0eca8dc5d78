#if os(Linux)
import Testing

@testable import TernEngine

/// The use of several loops by one pool.
@Suite(.timeLimit(.minutes(1))) struct LoopSpreadTests {
    /// Returns a pool whose other loops record their orders, and a listener whose connections stay without an answer.
    private func start(
        loops: Int, connections: Int = 64, beforeSpread: Int? = nil
    ) throws -> (harness: WireHarness, endpoint: Endpoint, server: FrameServer) {
        let server = try FrameServer()
        let harness = try WireHarness(
            connectionsPerOrigin: 32, connections: connections, connectionsBeforeSpread: beforeSpread,
            others: { _, _ in (0..<loops).map { _ in RecordingLoop() } })
        return (harness, Endpoint(server.address), server)
    }

    private func opened(_ harness: WireHarness) async -> [[UInt64]] {
        await harness.value { client in client.others.map { ($0 as? RecordingLoop)?.opened ?? [] } }
    }

    // MARK: The choice of a loop

    /// The connections of a pool, and the work of all pools on its loops.
    private struct Spread {
        var loads: LoopLoads
        var work: [Int]

        init(loops: Int, beforeSpread: Int, work: [Int]? = nil) {
            loads = LoopLoads(loops: loops, connectionsBeforeSpread: beforeSpread)
            self.work = work ?? Array(repeating: 0, count: loops)
        }

        /// Adds connections. Returns their loops.
        mutating func add(_ count: Int, isAvailable: (Int) -> Bool = { _ in true }) -> [Int] {
            (0..<count).map { _ in
                let loop = loads.add(work: { [work] in work[$0] }, isAvailable: isAvailable)
                work[loop] += LoopLoads.work(on: loop)
                return loop
            }
        }

        mutating func remove(from loop: Int) {
            loads.remove(from: loop)
            work[loop] -= LoopLoads.work(on: loop)
        }
    }

    @Test func theHomeLoopIsFilledFirst() {
        var spread = Spread(loops: 3, beforeSpread: 2)
        // A connection on the home loop is as much work as two elsewhere.
        #expect(spread.add(11) == [0, 0, 1, 2, 1, 2, 1, 2, 1, 2, 0])
        spread.remove(from: 2)
        spread.remove(from: 2)
        #expect(spread.add(2) == [2, 2])
        // Its own number decides, not that of all connections.
        for _ in 0..<2 { spread.remove(from: 0) }
        #expect(spread.loads.counts == [1, 4, 4])
        #expect(spread.add(1) == [0])
    }

    @Test func aLoopThatIsNotAvailableIsPassedOver() {
        var spread = Spread(loops: 3, beforeSpread: 1)
        #expect(spread.add(5) { $0 != 1 } == [0, 2, 2, 0, 2])
        var alone = Spread(loops: 2, beforeSpread: 1)
        #expect(alone.add(3) { _ in false } == [0, 0, 0])
        var one = Spread(loops: 1, beforeSpread: 0)
        #expect(one.add(3) == [0, 0, 0])
    }

    /// Sessions that keep their own loops busy would gain nothing from each other's.
    @Test func aLoopThatOtherPoolsKeepBusyIsPassedOver() {
        var busy = Spread(loops: 2, beforeSpread: 2, work: [0, 16])
        #expect(busy.add(8) == Array(repeating: 0, count: 8))
        #expect(busy.add(3) == [0, 1, 1])
        var home = Spread(loops: 2, beforeSpread: 2, work: [16, 0])
        #expect(home.add(4) == [0, 0, 1, 1])
    }

    @Test func theNinthConnectionLivesOnAnotherLoop() async throws {
        let (harness, endpoint, server) = try start(loops: 2)
        for number in 1...8 { harness.start("/\(number)", to: endpoint) }
        #expect(await opened(harness) == [[], []])
        for number in 9...12 { harness.start("/\(number)", to: endpoint) }
        #expect(await opened(harness).map(\.count) == [2, 2])
        withExtendedLifetime(server) {}
    }

    @Test func aPoolDoesNotUseALoopThatIsNotAvailable() async throws {
        let (harness, endpoint, server) = try start(loops: 2, beforeSpread: 1)
        harness.perform { ($0.others[0] as? RecordingLoop)?.isAvailable = false }
        for number in 1...4 { harness.start("/\(number)", to: endpoint) }
        // The other number also depends on the connections that pools of earlier tests have on the home loop.
        let counts = await opened(harness).map(\.count)
        #expect(counts[0] == 0 && counts[1] >= 2)
        withExtendedLifetime(server) {}
    }

    // MARK: Events of another loop

    /// Starts an exchange on the first other loop, and ends it, so that its connection is pooled.
    private func finishExchange(on harness: WireHarness, to endpoint: Endpoint) async {
        let first = harness.start("/first", to: endpoint)
        harness.perform { client in
            guard let loop = client.others[0] as? RecordingLoop, let last = loop.opened.last else { return }
            client.pool.connected(last, capacity: 1, isShared: false)
            client.pool.finished(on: last, isReusable: true)
            loop.started.last?.handler.didEnd(nil, isDeadConnection: false)
        }
        await first.waitForEnd()
    }

    /// Opens the last connection of the first other loop, and lets it end before its exchange is sent.
    private func endLast(_ client: PoolClient, isKnown: Bool) {
        guard let loop = client.others[0] as? RecordingLoop, let last = loop.opened.last else { return }
        if !isKnown { client.pool.connected(last, capacity: 1, isShared: false) }
        guard let exchange = loop.started.last else { return }
        client.pool.closed(last)
        client.pool.returned(exchange)
    }

    @Test func anExchangeIsReturnedByTwoNewConnectionsAtMost() async throws {
        let (harness, endpoint, server) = try start(loops: 1, beforeSpread: 1)
        // Connected, so that it does not take the connection of the exchange after it.
        await harness.start("/held", to: endpoint).wait(for: "connected")
        let log = harness.start("/returned", to: endpoint)
        for count in 1...2 {
            #expect(await opened(harness)[0].count == count)
            harness.perform { endLast($0, isKnown: false) }
            #expect(await harness.value { _ in log.entries.contains("done") } == false)
        }
        #expect(await opened(harness)[0].count == 3)
        harness.perform { endLast($0, isKnown: false) }
        #expect(await log.waitForEnd().last == "failed connectionFailed")
        #expect(log.error?.reason.contains("each new connection") == true)
        #expect(await opened(harness)[0].count == 3)
        withExtendedLifetime(server) {}
    }

    /// A pooled connection can end at any time, so it says nothing about the server.
    @Test func pooledConnectionsThatEndAreNotCounted() async throws {
        let (harness, endpoint, server) = try start(loops: 1, beforeSpread: 1)
        // Connected, so that it does not take the connection of the exchange after it.
        await harness.start("/held", to: endpoint).wait(for: "connected")
        await finishExchange(on: harness, to: endpoint)
        let log = harness.start("/returned", to: endpoint)
        harness.perform { endLast($0, isKnown: true) }
        for _ in 0..<2 { harness.perform { endLast($0, isKnown: false) } }
        #expect(await opened(harness)[0].count == 4)
        #expect(await harness.value { _ in log.entries.contains("done") } == false)
        withExtendedLifetime(server) {}
    }

    @Test func aConnectionThatIsBeingClosedKeepsItsRoom() async throws {
        let (harness, endpoint, server) = try start(loops: 1, connections: 2, beforeSpread: 1)
        // Connected, so that it does not take the connection of the exchange after it.
        await harness.start("/held", to: endpoint).wait(for: "connected")
        await finishExchange(on: harness, to: endpoint)
        var other = endpoint
        other.host = "other.example"
        harness.start("/other", to: other)
        let order = await opened(harness)
        #expect(order[0].count == 1)
        #expect(await harness.value { ($0.others[0] as? RecordingLoop)?.closed } == order[0])
        harness.perform { client in order[0].first.map { client.pool.closed($0) } }
        #expect(await opened(harness)[0].count == 2)
        withExtendedLifetime(server) {}
    }

    // MARK: A second loop

    /// Returns a pool that opens its second connection on a loop of its own.
    private func startSecondLoop(
        connections: Int
    ) throws -> (harness: WireHarness, loop: @Sendable () async -> OtherLoop?) {
        let harness = try WireHarness(
            connectionsPerOrigin: connections, connectionsBeforeSpread: 1,
            others: { [OtherLoop(home: $0, settings: $1)] })
        return (harness, { await harness.value { $0.others.first as? OtherLoop } })
    }

    /// Answers one request when a gate opens, and waits for the end of the connection.
    private static func answer(_ connection: ScriptedConnection, after release: Gate) throws {
        try connection.readHead()
        try release.wait()
        try connection.write("HTTP/1.1 204 No Content\r\n\r\n")
        try connection.waitForEnd()
    }

    @Test func anUpgradedConnectionLivesOnItsLoopAndLeavesThePool() async throws {
        let release = Gate()
        let server = try ScriptedServer(
            { try Self.answer($0, after: release) },
            { connection in
                try connection.readHead()
                try connection.write("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: Echo\r\n\r\n")
                while case let bytes = try connection.readSome(), !bytes.isEmpty { try connection.write(bytes) }
            }, { try $0.answer() })
        defer { server.stop() }
        let (harness, loop) = try startSecondLoop(connections: 2)
        let other = try #require(await loop())
        let held = harness.start("/held", to: Endpoint(server))
        await held.wait(for: "connected")
        var settings = TestExchange.Settings()
        settings.upgrade = "echo"
        settings.expected = 5
        let log = harness.start(settings, to: Endpoint(server))
        #expect(
            await log.waitForEnd() == ["connecting", "connected http11 new", "head 101", "upgraded elsewhere", "ended"])
        // The object moves to the second loop, which has had the only other use of it.
        let upgraded = await harness.value { OnOtherLoop($0.upgraded(of: log)) }
        #expect(await other.value { upgraded.write("hello") })
        await log.wait(for: "all")
        #expect(log.text == "hello")
        let next = harness.start("/next", to: Endpoint(server))
        #expect(await next.waitForEnd() == ["connecting", "connected http11 new", "head 200", "ended"])
        #expect(await other.value { upgraded.close() })
        release.open()
        #expect(await held.waitForEnd().last == "ended")
        #expect(server.failures == [])
    }

    /// Uses two connections of a pool, which then ends. Returns the loop of the second one.
    private func endPool(of server: ScriptedServer, release: Gate) async throws -> OtherLoop {
        let (harness, loop) = try startSecondLoop(connections: 2)
        let other = try #require(await loop())
        let held = harness.start("/held", to: Endpoint(server))
        await held.wait(for: "connected")
        #expect(await harness.start("/second", to: Endpoint(server)).waitForEnd().last == "ended")
        #expect(other.work == LoopLoads.work(on: 1))
        release.open()
        #expect(await held.waitForEnd().last == "ended")
        return other
    }

    /// Work that stayed after its pool would keep the connections of other pools away from the loop.
    @Test(.timeLimit(.minutes(1))) func aPoolThatEndsLeavesNoWork() async throws {
        let release = Gate()
        let server = try ScriptedServer(
            { try Self.answer($0, after: release) },
            { connection in
                try connection.answer()
                try connection.waitForEnd()
            })
        defer { server.stop() }
        let other = try await endPool(of: server, release: release)
        for await work in other.changesOfWork.stream where work == 0 { break }
        #expect(server.failures == [])
    }

    @Test func aSessionOfTLSIsResumedOnAnotherLoop() async throws {
        let identity = try TestIdentity()
        let isResumed = ExchangeLog()
        let release = Gate()
        let server = try ScriptedServer(
            tls: try TestServer(identity, version: 13),
            { connection in
                try connection.answer()
                try Self.answer(connection, after: release)
            },
            { connection in
                try connection.handshake()
                isResumed.add("\(connection.isResumed)")
                try connection.answer()
            })
        defer { server.stop() }
        let (harness, _) = try startSecondLoop(connections: 2)
        let endpoint = Endpoint(server, policy: TLSPolicy(.only(identity)))
        #expect(await harness.start("/first", to: endpoint).waitForEnd().last == "ended")
        let held = harness.start("/held", to: endpoint)
        await held.wait(for: "connected")
        let second = harness.start("/second", to: endpoint)
        #expect(await second.waitForEnd().last == "ended")
        #expect(isResumed.entries == ["true"])
        release.open()
        #expect(await held.waitForEnd().last == "ended")
        #expect(server.failures == [])
    }
}

/// A connection that belongs to the second loop.
private final class OnOtherLoop: Sendable {
    // Used by the second loop only.
    private nonisolated(unsafe) let connection: UpgradedConnection?

    init(_ connection: UpgradedConnection?) { unsafe self.connection = connection }

    func write(_ text: String) -> Bool { unsafe connection?.write(Array(text.utf8)) ?? false }

    func close() -> Bool {
        guard let connection = unsafe connection else { return false }
        connection.close()
        return !connection.isOpen
    }
}
#endif
