import Testing

@testable import TernEngine

@Suite("Connection pool: shares of the connections")
struct PoolShareTests {
    // MARK: Low priorities

    @Test(arguments: [(1, 1), (2, 1), (8, 7), (9, 8), (15, 14), (16, 14), (32, 28), (256, 224)])
    func lowPrioritiesLeaveAShare(limit: Int, low: Int) {
        var limits = ConnectionPool.Limits(connectionsPerOrigin: limit, connections: 1_000, idleLifetime: 1)
        #expect(limits.lowConnections == low)
        limits.connections = 2
        #expect(limits.lowConnections == 1)
    }

    @Test func lowPrioritiesOpenNoMoreThanTheirShare() {
        var harness = PoolHarness(perOrigin: 4, lowPriority: 1)
        let opened = (1...6).flatMap { harness.submit($0, priority: 1) }
        #expect(opened == ["open 1 for 1", "open 2 for 2", "open 3 for 3"])
        #expect(harness.open(1) == ["assign 1 to 1"])
        #expect(harness.submit(7, priority: 2) == ["open 4 for 7"])
        // The exchange that is more urgent takes the next connection, and an idle one is none for the low ones.
        #expect(harness.open(2) == ["assign 7 to 2"])
        #expect(harness.open(3) == ["assign 2 to 3"])
        #expect(harness.open(4) == ["assign 3 to 4"])
        #expect(harness.finish(2) == [])
        #expect(harness.submit(8, priority: 1) == [])
        #expect(harness.submit(9, priority: 2) == ["assign 9 to 2 again"])
        #expect(harness.finish(3) == ["assign 4 to 3 again"])
    }

    @Test func aHigherPriorityEndsTheWaitForTheShare() {
        var harness = PoolHarness(perOrigin: 2, lowPriority: 1)
        #expect(harness.submit(1, priority: 1) == ["open 1 for 1"])
        #expect(harness.submit(2, priority: 1) == [])
        #expect(harness.open(1) == ["assign 1 to 1"])
        #expect(harness.prioritize(2, priority: 2) == ["open 2 for 2"])
    }

    @Test func oneConnectionIsForAll() {
        var harness = PoolHarness(perOrigin: 1, lowPriority: 1)
        #expect(harness.submit(1, priority: 1) == ["open 1 for 1"])
        #expect(harness.open(1) == ["assign 1 to 1"])
        #expect(harness.submit(2, priority: 1) == [])
        #expect(harness.finish(1) == ["assign 2 to 1 again"])
    }

    @Test func connectionsThatAreSharedHaveNoShare() {
        var harness = PoolHarness(perOrigin: 2, lowPriority: 1)
        _ = harness.submit(1, priority: 1)
        #expect(harness.open(1, capacity: 2) == ["assign 1 to 1"])
        #expect(harness.submit(2, priority: 1) == ["assign 2 to 1 again"])
        #expect(harness.submit(3, priority: 1) == ["open 2 for 3"])
        #expect(harness.open(2, capacity: 2) == ["assign 3 to 2"])
    }

    // MARK: Exchanges that last long

    @Test func liveExchangesDoNotCountForTheLimits() {
        var harness = PoolHarness(perOrigin: 1, total: 1, live: 2)
        #expect(harness.submit(1, .live) == ["open 1 for 1"])
        #expect(harness.open(1) == ["assign 1 to 1"])
        #expect(harness.submit(2, .live) == ["open 2 for 2"])
        #expect(harness.open(2) == ["assign 2 to 2"])
        #expect(harness.submit(3, .live) == [])
        let use3 = harness.pool.connectionsInUse(for: 3)
        #expect(use3.count == 2 && use3.areAllLive == true)
        #expect(harness.submit(4) == ["open 3 for 4"])
        #expect(harness.open(3) == ["assign 4 to 3"])
        #expect(harness.submit(5) == [])
        let use5 = harness.pool.connectionsInUse(for: 5)
        #expect(use5.count == 3 && use5.areAllLive == false)
        #expect(harness.finish(3) == ["assign 5 to 3 again"])
        #expect(harness.finish(1) == ["assign 3 to 1 again"])
        #expect(harness.finish(3) == [])
        #expect(harness.pool.openCounts["a"] == .init(active: 2, idle: 1))
        #expect(harness.lose(2) == [])
        // A connection that is free again is one too many.
        #expect(harness.finish(1) == ["close 1"])
        #expect(harness.pool.connectionCount == 1 && harness.pool.idleCount == 1)
    }

    @Test func aResponseThatTurnsOutToLastLongMakesRoom() {
        var harness = PoolHarness(perOrigin: 1, live: 1)
        _ = harness.start(1)
        #expect(harness.submit(2) == [])
        #expect(harness.becomeLive(1) == ["open 2 for 2"])
        #expect(harness.becomeLive(1) == [])
        #expect(harness.open(2) == ["assign 2 to 2"])
        // Its own limit is reached: the second one counts among the others.
        #expect(harness.submit(3) == [])
        #expect(harness.becomeLive(2) == [])
        let use3 = harness.pool.connectionsInUse(for: 3)
        #expect(use3.count == 2 && use3.areAllLive == true)
        #expect(harness.lose(2) == ["open 3 for 3"])
        #expect(harness.lose(1) == [])
        #expect(harness.open(3) == ["assign 3 to 3"])
        #expect(harness.finish(3) == [])
        #expect(harness.pool.connectionCount == 1)
    }

    /// The first exchange of a connection over HTTP/2 goes ahead of its limit, and others will share the connection.
    @Test func aConnectionThatAwaitsItsLimitIsNotThatOfALiveExchange() {
        var harness = PoolHarness(perOrigin: 1, live: 1)
        #expect(harness.submit(1, .live) == ["open 1 for 1"])
        #expect(harness.open(1, awaitsLimit: true) == ["assign 1 to 1"])
        #expect(harness.submit(2) == [])
        #expect(harness.change(1, capacity: 3) == ["assign 2 to 1 again"])
        #expect(harness.submit(3, .fresh) == [])
        #expect(harness.pool.connectionCount == 1)
    }

    @Test func aSharedConnectionCountsAsBefore() {
        var harness = PoolHarness(perOrigin: 1, live: 1)
        #expect(harness.submit(1, .live) == ["open 1 for 1"])
        #expect(harness.open(1, capacity: 3) == ["assign 1 to 1"])
        #expect(harness.submit(2, .live) == ["assign 2 to 1 again"])
        #expect(harness.becomeLive(1) == [])
        #expect(harness.submit(3) == ["assign 3 to 1 again"])
        #expect(harness.submit(4) == [])
        #expect(harness.finish(1) == ["assign 4 to 1 again"])
    }
}
