import Testing

@testable import TernEngine

@Suite("Connection pool: HTTP/2")
struct SharedConnectionTests {
    @Test func exchangesWaitForAConnectionThatMayBeShared() {
        var harness = PoolHarness()
        #expect(harness.submit(1...3, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, capacity: 100) == ["assign 1 to 1", "assign 2 to 1 again", "assign 3 to 1 again"])
        #expect(harness.submit(4, .waitsForShared) == ["assign 4 to 1 again"])
    }

    @Test func exchangesOpenTheirOwnConnectionsOnceTheServerSpeaksHTTP1() {
        var harness = PoolHarness(perOrigin: 3)
        #expect(harness.submit(1...5, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1) == ["assign 1 to 1", "open 2 for 2", "open 3 for 3"])
        // From now on, exchanges do not wait.
        #expect(harness.open(2) == ["assign 2 to 2"])
        #expect(harness.finish(2, isReusable: false) == ["close 2", "open 4 for 4"])
    }

    @Test func exchangesThatDoNotWaitOpenAConnectionEach() {
        var harness = PoolHarness()
        #expect(harness.submit(1...3) == ["open 1 for 1", "open 2 for 2", "open 3 for 3"])
        #expect(harness.open(2, capacity: 100) == ["assign 1 to 2", "assign 2 to 2 again", "assign 3 to 2 again"])
        #expect(harness.open(1, capacity: 100) == [])
        #expect(harness.fail(3).exchange == nil)
        // The connection that carries exchanges is filled first.
        #expect(harness.submit(4) == ["assign 4 to 2 again"])
    }

    @Test func connectingConnectionsAreCountedByTheirExpectedCapacity() {
        var harness = PoolHarness(perOrigin: 3, streams: 2)
        #expect(
            harness.submit(1...8, .waitsForShared) == ["open 1 for 1", "open 2 for 2", "open 3 for 3"])
        #expect(harness.open(1, capacity: 4).count == 4)
        #expect(harness.open(2, capacity: 4).count == 4)
        #expect(harness.open(3, capacity: 4) == [])
    }

    @Test func fullConnectionIsFollowedByAnother() {
        var harness = PoolHarness(perOrigin: 2)
        _ = harness.start(1, capacity: 2)
        #expect(harness.submit(2) == ["assign 2 to 1 again"])
        #expect(harness.submit(3) == ["open 2 for 3"])
        #expect(harness.submit(4) == [])
        #expect(harness.submit(5) == [])
        #expect(harness.finish(1) == ["assign 3 to 1 again"])
        #expect(harness.open(2, capacity: 2) == ["assign 4 to 2", "assign 5 to 2 again"])
    }

    @Test func exchangesCanWaitForAFullConnection() {
        var harness = PoolHarness(waitsForStreams: true)
        #expect(harness.submit(1...6, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, capacity: 2) == ["assign 1 to 1", "assign 2 to 1 again"])
        #expect(harness.submit(7) == [])
        #expect(harness.finish(1) == ["assign 3 to 1 again"])
        // One that takes only a new connection does not wait.
        #expect(harness.submit(8, .fresh) == ["open 2 for 8"])
    }

    @Test func waitingExchangesGetOneConnectionAfterAFullOneDrains() {
        var harness = PoolHarness(waitsForStreams: true)
        _ = harness.start(1, capacity: 2)
        #expect(harness.submit(2...9) == ["assign 2 to 1 again"])
        #expect(harness.drain(1) == ["open 2 for 3"])
        #expect(harness.open(2, capacity: 2) == ["assign 3 to 2", "assign 4 to 2 again"])
        // The old one goes on with what it carries, and then ends.
        #expect(harness.finish(1) == [])
        #expect(harness.finish(1) == ["close 1"])
        #expect(harness.submit(10) == [])
    }

    @Test func waitingForStreamsDoesNotConcernHTTP1() {
        var harness = PoolHarness(perOrigin: 3, waitsForStreams: true)
        #expect(harness.submit(1...5, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1) == ["assign 1 to 1", "open 2 for 2", "open 3 for 3"])
    }

    @Test func capacityMayFallBelowTheExchangesInFlight() {
        var harness = PoolHarness(perOrigin: 1)
        #expect(harness.submit(1...3, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, capacity: 100).count == 3)
        #expect(harness.change(1, capacity: 2) == [])
        #expect(harness.submit(4) == [])
        #expect(harness.finish(1) == [])
        #expect(harness.finish(1) == ["assign 4 to 1 again"])
    }

    @Test func higherCapacityAdmitsWaitingExchanges() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1, capacity: 2)
        #expect(harness.submit(2...6) == ["assign 2 to 1 again"])
        #expect(harness.change(1, capacity: 4) == ["assign 3 to 1 again", "assign 4 to 1 again"])
        #expect(harness.change(1, capacity: .max) == ["assign 5 to 1 again", "assign 6 to 1 again"])
    }

    @Test(arguments: [0, -1, .min])
    func capacityBelowOneAdmitsNoExchange(capacity: Int) {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.submit(1)
        #expect(harness.open(1, capacity: capacity) == ["assign 1 to 1"])
        #expect(harness.change(1, capacity: capacity) == [])
        #expect(harness.submit(2...3) == [])
        // An idle connection that takes nothing makes room for another.
        #expect(harness.finish(1) == ["close 1", "open 2 for 2"])
    }

    // MARK: The first limit

    @Test func oneExchangeGoesAheadOfTheLimit() {
        var harness = PoolHarness()
        #expect(harness.submit(1...4, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, awaitsLimit: true) == ["assign 1 to 1"])
        #expect(harness.submit(5, .waitsForShared) == [])
        #expect((2...5).allSatisfy { harness.pool.waitsToShare($0) })
        #expect(
            harness.change(1, capacity: 3) == ["assign 2 to 1 again", "assign 3 to 1 again", "open 2 for 4"])
        // The second connection is expected to carry as many as the first one.
        #expect(harness.pool.waitsToShare(5) == false)
        #expect(harness.open(2, awaitsLimit: true) == ["assign 4 to 2"])
        #expect(harness.change(2, capacity: 3) == ["assign 5 to 2 again"])
    }

    @Test func freshExchangesTakeAConnectionWithItsFirstLimit() {
        var harness = PoolHarness()
        #expect(harness.submit(1...3, .fresh) == ["open 1 for 1", "open 2 for 2", "open 3 for 3"])
        #expect(harness.open(1, awaitsLimit: true) == ["assign 1 to 1"])
        #expect(harness.change(1, capacity: 2) == ["assign 2 to 1 again"])
        #expect(harness.change(1, capacity: 3) == [])
    }

    @Test func theFirstLimitOf0KeepsExchangesWaiting() {
        var harness = PoolHarness()
        #expect(harness.submit(1...3, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, awaitsLimit: true) == ["assign 1 to 1"])
        #expect(harness.change(1, capacity: 0) == [])
        // The server refuses the exchange, which is submitted again.
        #expect(harness.finish(1) == [])
        #expect(harness.submit(4, .waitsForShared) == [])
        #expect(harness.pool.waitsToShare(4))
        #expect(harness.change(1, capacity: 2) == ["assign 2 to 1 again", "assign 3 to 1 again", "open 2 for 4"])
    }

    @Test func theEndOfAConnectionWithoutLimitOpensAnother() {
        var harness = PoolHarness()
        #expect(harness.submit(1...3, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, awaitsLimit: true) == ["assign 1 to 1"])
        #expect(harness.lose(1) == ["open 2 for 2"])
        #expect(harness.open(2, awaitsLimit: true) == ["assign 2 to 2"])
        #expect(harness.drain(2) == ["open 3 for 3"])
        #expect(harness.withdraw(3) == [])
        #expect(harness.open(3, awaitsLimit: true) == [])
        #expect(harness.closeIdle() == ["close 3"])
        #expect(harness.submit(4, .waitsForShared) == ["open 4 for 4"])
    }

    @Test func drainingConnectionTakesNoNewExchange() {
        var harness = PoolHarness()
        #expect(harness.submit(1...2, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, capacity: 100).count == 2)
        #expect(harness.drain(1) == [])
        #expect(harness.submit(3) == ["open 2 for 3"])
        #expect(harness.finish(1) == [])
        #expect(harness.change(1, capacity: 200) == [])
        #expect(harness.finish(1) == ["close 1"])
    }

    @Test func idleConnectionThatDrainsIsClosedAtOnce() {
        var harness = PoolHarness()
        _ = harness.start(1, capacity: 100)
        _ = harness.finish(1)
        #expect(harness.drain(1) == ["close 1"])
        #expect(harness.drain(1) == [])
    }

    @Test func drainingConnectionCountsAgainstTheLimit() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1, capacity: 100)
        #expect(harness.drain(1) == [])
        #expect(harness.submit(2) == [])
        #expect(harness.finish(1) == ["close 1", "open 2 for 2"])
    }

    @Test func streamThatSpoilsItsConnectionDrainsIt() {
        var harness = PoolHarness()
        #expect(harness.submit(1...2, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.open(1, capacity: 100).count == 2)
        #expect(harness.finish(1, isReusable: false) == [])
        #expect(harness.submit(3, .waitsForShared) == ["open 2 for 3"])
        #expect(harness.finish(1) == ["close 1"])
    }

    // MARK: Exclusive exchanges

    @Test func exclusiveExchangeGetsAConnectionForItself() {
        var harness = PoolHarness()
        #expect(harness.submit(1, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.submit(2, .exclusive, .waitsForShared) == ["open 2 for 2"])
        #expect(harness.open(1, capacity: 100) == ["assign 1 to 1"])
        #expect(harness.open(2, capacity: 100) == ["assign 2 to 2"])
        #expect(harness.submit(3) == ["assign 3 to 1 again"])
        // After its end, the connection is shared like any other.
        #expect(harness.finish(2) == [])
        #expect(harness.drain(1) == [])
        #expect(harness.submit(4...5) == ["assign 4 to 2 again", "assign 5 to 2 again"])
    }

    @Test func exclusiveExchangeTakesAnIdleConnection() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1, capacity: 100)
        #expect(harness.submit(2, .exclusive) == [])
        // Others may still join the connection that is in use.
        #expect(harness.submit(3) == ["assign 3 to 1 again"])
        #expect(harness.finish(1) == [])
        #expect(harness.finish(1) == ["assign 2 to 1 again"])
        #expect(harness.submit(4) == [])
        #expect(harness.change(1, capacity: 200) == [])
        #expect(harness.finish(1) == ["assign 4 to 1 again"])
    }

    @Test func mostUrgentExchangeDecidesHowANewConnectionIsUsed() {
        var harness = PoolHarness(perOrigin: 1)
        #expect(harness.submit(1, .waitsForShared) == ["open 1 for 1"])
        #expect(harness.submit(2, priority: 5, .exclusive, .waitsForShared) == [])
        #expect(harness.open(1, capacity: 100) == ["assign 2 to 1"])
        #expect(harness.finish(1) == ["assign 1 to 1 again"])
    }

    @Test func connectionIsOpenedForTheMostUrgentExchangeOfAnyKind() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        #expect(harness.submit(2, priority: 1) == [])
        #expect(harness.submit(3, priority: 5, .exclusive) == [])
        #expect(harness.submit(4, priority: 9, .fresh) == [])
        #expect(harness.finish(1, isReusable: false) == ["close 1", "open 2 for 4"])
        #expect(harness.withdraw(4) == [])
        #expect(harness.pool.claimant(of: harness.identifier(2)) == 3)
        #expect(harness.lose(2) == ["open 3 for 3"])
    }

    @Test func exchangeOfAClosedConnectionTakesOverOneThatConnects() {
        var harness = PoolHarness()
        #expect(harness.submit(1...3) == ["open 1 for 1", "open 2 for 2", "open 3 for 3"])
        #expect(harness.withdraw(1) == [])
        #expect(harness.lose(2) == [])
        #expect(harness.drain(3) == ["close 3", "open 4 for 3"])
        #expect(harness.pool.claimant(of: harness.identifier(1)) == 2)
    }

    @Test func freshExchangesShareANewConnection() {
        var harness = PoolHarness()
        _ = harness.start(1, capacity: 100)
        #expect(harness.submit(2...3, .fresh) == ["open 2 for 2"])
        #expect(harness.submit(4) == ["assign 4 to 1 again"])
        #expect(harness.open(2, capacity: 100) == ["assign 2 to 2", "assign 3 to 2 again"])
        #expect(harness.submit(5, .fresh) == ["open 3 for 5"])
    }
}
