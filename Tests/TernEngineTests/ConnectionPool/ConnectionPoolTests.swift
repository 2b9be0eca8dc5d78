import Testing

@testable import TernEngine

@Suite("Connection pool: HTTP/1")
struct ConnectionPoolTests {
    @Test func theFirstConnectionHasTheFirstSlot() {
        var pool = ConnectionPool(limits: .init(connectionsPerOrigin: 1, connections: 1, idleLifetime: 1))
        let key = pool.index(of: PoolKey(origin: "a"))
        var actions: [ConnectionPool.Action] = []
        #expect(pool.submit(.init(exchange: 7, key: key, priority: 0), actions: &actions) == true)
        let first = ConnectionPool.ConnectionID(slot: 0, generation: 0)
        #expect(actions == [.open(first, key: key, exchange: 7)])
        #expect(pool.claimant(of: first) == 7)
    }

    @Test func freeConnectionIsUsedAgain() {
        var harness = PoolHarness()
        #expect(harness.start(1) == ["open 1 for 1", "assign 1 to 1"])
        #expect(harness.finish(1) == [])
        #expect(harness.pool.idleCount == 1)
        #expect(harness.submit(2) == ["assign 2 to 1 again"])
        #expect(harness.pool.idleCount == 0)
    }

    @Test func mostRecentlyUsedConnectionComesFirst() {
        var harness = PoolHarness()
        for number in 1...3 as ClosedRange<UInt64> { _ = harness.start(number) }
        #expect([2, 1, 3].flatMap { harness.finish($0) } == [])
        #expect(
            harness.submit(4...6) == ["assign 4 to 3 again", "assign 5 to 1 again", "assign 6 to 2 again"])
    }

    @Test func connectionThatIsNotReusableIsClosed() {
        var harness = PoolHarness()
        _ = harness.start(1)
        #expect(harness.finish(1, isReusable: false) == ["close 1"])
        #expect(harness.pool.connectionCount == 0)
        #expect(harness.submit(2) == ["open 2 for 2"])
    }

    @Test func otherKeysDoNotShareConnections() {
        var harness = PoolHarness()
        _ = harness.start(1)
        _ = harness.finish(1)
        #expect(harness.submit(2, to: "a/1") == ["open 2 for 2"])
        #expect(harness.submit(3, to: "b") == ["open 3 for 3"])
    }

    @Test func freshExchangeNeverGetsAPooledConnection() {
        var harness = PoolHarness()
        _ = harness.start(1)
        _ = harness.finish(1)
        #expect(harness.submit(2, .fresh) == ["open 2 for 2"])
        #expect(harness.open(2) == ["assign 2 to 2"])
    }

    @Test func freshExchangeDoesNotTakeAConnectionThatBecomesFree() {
        var harness = PoolHarness()
        _ = harness.start(1)
        #expect(harness.submit(2, .fresh) == ["open 2 for 2"])
        #expect(harness.finish(1) == [])
        #expect(harness.open(2) == ["assign 2 to 2"])
    }

    @Test func freshExchangeReplacesAnIdleConnectionAtTheLimit() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        #expect(harness.submit(2, .fresh) == [])
        #expect(harness.finish(1) == ["close 1", "open 2 for 2"])
    }

    @Test func connectionThatBecomesFreeIsPreferredOverANewOne() {
        var harness = PoolHarness()
        _ = harness.start(1)
        #expect(harness.submit(2...3) == ["open 2 for 2", "open 3 for 3"])
        #expect(harness.finish(1) == ["assign 2 to 1 again"])
        // The second connection serves the exchange that waits, and the third becomes idle.
        #expect(harness.open(2) == ["assign 3 to 2"])
        #expect(harness.open(3) == [])
        #expect(harness.pool.idleCount == 1)
        #expect(harness.submit(4) == ["assign 4 to 3"])
    }

    @Test func newConnectionServesTheMostUrgentExchange() {
        var harness = PoolHarness()
        #expect(harness.submit(1, priority: 0) == ["open 1 for 1"])
        #expect(harness.submit(2, priority: 5) == ["open 2 for 2"])
        #expect(harness.open(1) == ["assign 2 to 1"])
        #expect(harness.pool.claimant(of: harness.identifier(2)) == 1)
        #expect(harness.open(2) == ["assign 1 to 2"])
    }

    @Test func connectionWithoutAnExchangeServesTheNextOne() {
        var harness = PoolHarness(perOrigin: 1)
        #expect(harness.submit(1...2) == ["open 1 for 1"])
        #expect(harness.withdraw(1) == [])
        #expect(harness.pool.claimant(of: harness.identifier(1)) == 2)
        #expect(harness.open(1) == ["assign 2 to 1"])
    }

    @Test func connectionMayFinishWithoutAnExchange() {
        var harness = PoolHarness()
        #expect(harness.submit(1) == ["open 1 for 1"])
        #expect(harness.withdraw(1) == [])
        #expect(harness.withdraw(1) == ["not waiting"])
        #expect(harness.pool.idleCount == 1)
        // A later exchange takes it over instead of opening another.
        #expect(harness.submit(2) == [])
        #expect(harness.open(1) == ["assign 2 to 1"])
    }

    @Test func closedConnectionIsForgotten() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        #expect(harness.submit(2) == [])
        #expect(harness.lose(1) == ["open 2 for 2"])
        #expect(harness.finish(1) == [])
        #expect(harness.lose(1) == [])
        #expect(harness.open(1) == [])
        #expect(harness.open(2) == ["assign 2 to 2"])
    }

    @Test func closedConnectingConnectionIsReplaced() {
        var harness = PoolHarness(perOrigin: 1)
        #expect(harness.submit(1) == ["open 1 for 1"])
        #expect(harness.lose(1) == ["open 2 for 1"])
        #expect(harness.drain(2) == ["close 2", "open 3 for 1"])
    }

    @Test func numbersOfClosedConnectionsAreNotUsedAgain() {
        var harness = PoolHarness()
        var seen: Set<ConnectionPool.ConnectionID> = []
        for number in 1...100 as ClosedRange<UInt64> {
            _ = harness.start(number)
            #expect(seen.insert(harness.identifier(Int(number))).inserted == true)
            _ = harness.finish(Int(number), isReusable: false)
        }
        #expect(harness.pool.connectionCount == 0)
    }

    // MARK: Failures

    @Test func exchangeOfAFailedConnectionGetsTheError() {
        var harness = PoolHarness()
        #expect(harness.submit(1...2) == ["open 1 for 1", "open 2 for 2"])
        let failure = harness.fail(1)
        #expect(failure.exchange == 1 && failure.actions == [])
        #expect(harness.pool.waitingCount == 1)
        #expect(harness.open(2) == ["assign 2 to 2"])
    }

    @Test func nextExchangeGetsTheErrorIfTheFirstHasLeft() {
        var harness = PoolHarness(perOrigin: 2)
        #expect(harness.submit(1...4) == ["open 1 for 1", "open 2 for 2"])
        #expect(harness.withdraw(1) == [])
        let failure = harness.fail(1)
        #expect(failure.exchange == 3 && failure.actions == ["open 3 for 4"])
    }

    @Test func failureIsNobodysIfNoExchangeWaits() {
        var harness = PoolHarness()
        _ = harness.submit(1)
        _ = harness.withdraw(1)
        let failure = harness.fail(1)
        #expect(failure.exchange == nil && failure.actions == [])
        #expect(harness.pool.connectionCount == 0)
        #expect(harness.fail(1).exchange == nil)
    }

    @Test func failureSparesAnExchangeThatTookAnotherConnection() {
        var harness = PoolHarness()
        _ = harness.start(1)
        #expect(harness.submit(2) == ["open 2 for 2"])
        #expect(harness.finish(1) == ["assign 2 to 1 again"])
        #expect(harness.fail(2).exchange == nil)
    }

    @Test func anotherConnectionIsOpenedAfterEachFailure() {
        var harness = PoolHarness(perOrigin: 1)
        #expect(harness.submit(1...3, .waitsForShared) == ["open 1 for 1"])
        for number in 1...3 {
            let failure = harness.fail(number)
            #expect(failure.exchange == UInt64(number))
            #expect(failure.actions == (number < 3 ? ["open \(number + 1) for \(number + 1)"] : []))
        }
        #expect(harness.pool.waitingCount == 0 && harness.pool.connectionCount == 0)
    }

    // MARK: Idle connections

    @Test func idleConnectionIsClosedOnTime() {
        var harness = PoolHarness(idleLifetime: 100)
        #expect(harness.pool.nextExpiry == nil)
        for number in 1...3 as ClosedRange<UInt64> { _ = harness.start(number) }
        harness.now = 50
        _ = harness.finish(2)
        harness.now = 60
        _ = harness.finish(1)
        #expect(harness.pool.nextExpiry == 150)
        #expect(harness.expire(at: 149) == [])
        #expect(harness.expire(at: 150) == ["close 2"])
        #expect(harness.pool.nextExpiry == 160)
        #expect(harness.expire(at: 1_000) == ["close 1"])
        #expect(harness.pool.nextExpiry == nil)
        #expect(harness.pool.connectionCount == 1)
    }

    @Test func connectionWithoutAnExchangeIsClosedOnTimeWhileItConnects() {
        var harness = PoolHarness(idleLifetime: 100)
        _ = harness.submit(1)
        harness.now = 10
        _ = harness.withdraw(1)
        #expect(harness.pool.nextExpiry == 110)
        #expect(harness.expire(at: 110) == ["close 1"])
        #expect(harness.open(1) == [])
    }

    @Test func idleTimeBeginsWhenTheConnectionIsOpen() {
        var harness = PoolHarness(idleLifetime: 100)
        _ = harness.submit(1)
        _ = harness.withdraw(1)
        harness.now = 40
        #expect(harness.open(1) == [])
        #expect(harness.pool.nextExpiry == 140)
        #expect(harness.pool.idleCount == 1)
    }

    // MARK: Age and uses

    @Test func aConnectionOfItsAgeTakesNoFurtherExchange() {
        var harness = PoolHarness(perOrigin: 2, age: 500)
        #expect(harness.pool.nextExpiry == nil)
        _ = harness.start(1)
        harness.now = 100
        _ = harness.start(2)
        _ = harness.finish(2)
        #expect(harness.pool.nextExpiry == 500)
        // The first one is busy: it carries its exchange to the end.
        #expect(harness.expire(at: 500) == [])
        #expect(harness.pool.nextExpiry == 600)
        #expect(harness.submit(3) == ["assign 3 to 2 again"])
        #expect(harness.finish(1) == ["close 1"])
        #expect(harness.finish(2) == [])
        #expect(harness.expire(at: 600) == ["close 2"])
        #expect(harness.pool.nextExpiry == nil && harness.pool.connectionCount == 0)
        #expect(harness.start(4) == ["open 3 for 4", "assign 4 to 3"])
    }

    @Test func exchangesThatWaitGetANewConnectionAfterTheAge() {
        var harness = PoolHarness(perOrigin: 1, age: 500)
        _ = harness.start(1)
        _ = harness.submit(2)
        #expect(harness.expire(at: 500) == [])
        #expect(harness.finish(1) == ["close 1", "open 2 for 2"])
    }

    @Test func theShorterOfAgeAndIdleTimeCounts() {
        var harness = PoolHarness(idleLifetime: 100, age: 120)
        _ = harness.start(1)
        harness.now = 50
        _ = harness.finish(1)
        #expect(harness.pool.nextExpiry == 120)
        #expect(harness.expire(at: 120) == ["close 1"])
        harness.now = 200
        _ = harness.start(2)
        _ = harness.finish(2)
        #expect(harness.pool.nextExpiry == 300)
        #expect(harness.expire(at: 300) == ["close 2"])
    }

    @Test func aConnectionTakesItsNumberOfExchanges() {
        var harness = PoolHarness(perOrigin: 1, uses: 2)
        _ = harness.start(1)
        #expect(harness.finish(1) == [])
        #expect(harness.submit(2) == ["assign 2 to 1 again"])
        #expect(harness.submit(3) == [])
        #expect(harness.finish(1) == ["close 1", "open 2 for 3"])
        var single = PoolHarness(uses: 1)
        for number in 1...3 as ClosedRange<UInt64> {
            #expect(single.start(number) == ["open \(number) for \(number)", "assign \(number) to \(number)"])
            #expect(single.finish(Int(number)) == ["close \(number)"])
        }
    }

    @Test func streamsCountAsUses() {
        var harness = PoolHarness(uses: 3)
        _ = harness.start(1, capacity: 10)
        #expect(harness.submit(2) == ["assign 2 to 1 again"] && harness.submit(3) == ["assign 3 to 1 again"])
        #expect(harness.submit(4) == ["open 2 for 4"])
        #expect(harness.finish(1) == [] && harness.finish(1) == [])
        #expect(harness.finish(1) == ["close 1"])
    }

    @Test func infiniteLifetimeHasNoDeadline() {
        var harness = PoolHarness(idleLifetime: .max)
        _ = harness.start(1)
        _ = harness.finish(1)
        #expect(harness.pool.nextExpiry == nil)
        #expect(harness.expire(at: .max) == [])
        #expect(harness.closeIdle() == ["close 1"])
    }

    @Test func longLifetimeDoesNotOverflow() {
        var harness = PoolHarness(idleLifetime: .max - 1)
        harness.now = 1_000
        _ = harness.start(1)
        _ = harness.finish(1)
        #expect(harness.pool.nextExpiry == .max)
        #expect(harness.expire(at: .max - 1) == [])
    }

    @Test func closingIdleConnectionsSparesTheOthers() {
        var harness = PoolHarness()
        for number in 1...3 as ClosedRange<UInt64> { _ = harness.start(number) }
        _ = harness.submit(4, to: "b")
        _ = harness.withdraw(4)
        _ = harness.finish(2)
        #expect(harness.closeIdle() == ["close 4", "close 2"])
        #expect(harness.pool.connectionCount == 2 && harness.pool.idleCount == 0)
    }

    @Test func closingAllForgetsEverything() {
        var harness = PoolHarness(perOrigin: 2)
        _ = harness.start(1)
        _ = harness.submit(2...5)
        _ = harness.start(6, to: "b")
        _ = harness.finish(3)
        #expect(harness.closeAll() == ["close 1", "close 2", "close 3"])
        #expect(harness.pool.connectionCount == 0 && harness.pool.waitingCount == 0 && harness.pool.idleCount == 0)
        #expect(harness.finish(1) == [])
        #expect(harness.submit(2) == ["open 4 for 2"])
        #expect(harness.open(4) == ["assign 2 to 4"])
    }

    // MARK: Open connections

    @Test func openConnectionsAreActiveOrIdle() {
        var harness = PoolHarness()
        _ = harness.submit(1)
        // It connects.
        #expect(harness.pool.openCounts == [:])
        _ = harness.open(1)
        #expect(harness.pool.openCounts == ["a": .init(active: 1)])
        _ = harness.start(2, to: "a/1")
        _ = harness.start(3, to: "b")
        _ = harness.finish(1)
        #expect(harness.pool.openCounts == ["a": .init(active: 1, idle: 1), "b": .init(active: 1)])
        _ = harness.finish(3, isReusable: false)
        #expect(harness.pool.openCounts == ["a": .init(active: 1, idle: 1)])
        _ = harness.lose(2)
        #expect(harness.expire(at: 2_000) == ["close 1"])
        #expect(harness.pool.openCounts == [:])
    }

    @Test func sharedConnectionsAreCountedOnce() {
        var harness = PoolHarness()
        _ = harness.submit(1...3, .waitsForShared)
        _ = harness.open(1, capacity: 100)
        #expect(harness.pool.openCounts == ["a": .init(active: 1)])
        for _ in 0..<2 { _ = harness.finish(1) }
        #expect(harness.pool.openCounts == ["a": .init(active: 1)])
        // It goes on for its last exchange.
        #expect(harness.drain(1) == [] && harness.pool.openCounts == ["a": .init(active: 1)])
        harness.confirmsCloses = false
        #expect(harness.finish(1) == ["close 1"] && harness.pool.openCounts == [:])
    }

    // MARK: Keys

    @Test func unusedKeysAreForgotten() {
        var harness = PoolHarness()
        let first = harness.pool.index(of: PoolKey(origin: "a"))
        _ = harness.start(1, to: "kept")
        let kept = harness.pool.index(of: PoolKey(origin: "kept"))
        for number in 0..<10_000 {
            _ = harness.pool.index(of: PoolKey(origin: "host \(number)"))
            #expect(harness.pool.keyCount <= 1_001)
        }
        #expect(harness.pool.key(first) == nil)
        #expect(harness.pool.key(kept) == PoolKey(origin: "kept"))
        #expect(harness.pool.index(of: PoolKey(origin: "kept")) == kept)
        var actions: [ConnectionPool.Action] = []
        #expect(harness.pool.submit(.init(exchange: 2, key: first, priority: 0), actions: &actions) == false)
        #expect(actions.isEmpty)
        #expect(harness.submit(3) == ["open 2 for 3"])
    }

    @Test func keysInUseAreAllKept() {
        var harness = PoolHarness(total: 10_000)
        for number in 0..<3_000 as Range<UInt64> { _ = harness.submit(number, to: "host \(number)") }
        #expect(harness.pool.keyCount == 3_000)
        #expect(harness.pool.connectionCount == 3_000)
    }
}
