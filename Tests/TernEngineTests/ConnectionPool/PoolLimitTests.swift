import Testing

@testable import TernEngine

@Suite("Connection pool: limits and turns")
struct PoolLimitTests {
    // MARK: Closing

    @Test func aConnectionCountsUntilItsCloseIsConfirmed() {
        var pool = PoolHarness(perOrigin: 2, total: 2)
        pool.confirmsCloses = false
        #expect(pool.start(1) == ["open 1 for 1", "assign 1 to 1"])
        #expect(pool.start(2, to: "b") == ["open 2 for 2", "assign 2 to 2"])
        #expect(pool.finish(1) == [])
        #expect(pool.submit(3, to: "c") == ["close 1"])
        #expect(pool.pool.closingCount == 1 && pool.pool.connectionCount == 2)
        // The exchange has a connection, which waits for the room.
        #expect(pool.pool.connection(for: 3) != nil)
        #expect(pool.lose(1) == ["open 3 for 3"])
        #expect(pool.pool.closingCount == 0 && pool.pool.connectionCount == 2)
        #expect(pool.open(3) == ["assign 3 to 3"])
    }

    @Test func aConnectionThatEndsByItselfGivesItsRoomToTheFirstThatWaits() {
        var pool = PoolHarness(perOrigin: 1, total: 3)
        pool.confirmsCloses = false
        for (exchange, origin) in [(1, "a"), (2, "b"), (3, "c")] as [(UInt64, String)] {
            _ = pool.start(exchange, to: origin)
        }
        for connection in 1...2 { #expect(pool.finish(connection) == []) }
        // The limit of the origin holds, too: this one waits for the first connection alone.
        #expect(pool.submit(4, to: "a", .fresh) == ["close 1"])
        #expect(pool.submit(5, to: "d") == ["close 2"])
        #expect(pool.lose(3) == ["open 4 for 5"])
        #expect(pool.lose(2) == [])
        #expect(pool.lose(1) == ["open 5 for 4"])
    }

    @Test func aConnectionThatNobodyNeedsAnyMoreIsNotOpened() {
        var pool = PoolHarness(perOrigin: 1, total: 1)
        pool.confirmsCloses = false
        _ = pool.start(1)
        #expect(pool.finish(1) == [])
        #expect(pool.submit(2, to: "b") == ["close 1"])
        #expect(pool.withdraw(2) == [])
        #expect(pool.lose(1) == [])
        #expect(pool.pool.connectionCount == 0 && pool.pool.idleCount == 0)
        // While the close is under way, the next exchange takes the room.
        _ = pool.start(3)
        #expect(pool.finish(2) == [])
        #expect(pool.submit(4, to: "b") == ["close 2"])
        #expect(pool.withdraw(4) == [])
        #expect(pool.submit(5, to: "c") == [])
        #expect(pool.lose(2) == ["open 3 for 5"])
    }

    @Test func aConnectionThatTakesTooLongIsClosedBeforeItsReplacementOpens() {
        var pool = PoolHarness(perOrigin: 1, total: 1)
        pool.confirmsCloses = false
        #expect(pool.submit(1) == ["open 1 for 1"])
        #expect(pool.submit(2) == [])
        #expect(pool.withdraw(1) == [])
        #expect(pool.pool.claimant(of: pool.identifier(1)) == 2)
        #expect(pool.giveUp(1) == ["close 1"])
        // Its failure arrives in place of the confirmation.
        let (failed, actions) = pool.fail(1)
        #expect(failed == nil && actions == ["open 2 for 2"])
    }

    @Test func originHasALimitAndOthersWait() {
        var harness = PoolHarness(perOrigin: 2)
        #expect(harness.submit(1...5) == ["open 1 for 1", "open 2 for 2"])
        #expect(harness.pool.waitingCount == 5)
        #expect(harness.submit(6, to: "b") == ["open 3 for 6"])
    }

    @Test(arguments: [0, -1])
    func limitBelowOneCountsAsOne(limit: Int) {
        var harness = PoolHarness(perOrigin: limit, total: limit, streams: limit)
        #expect(harness.submit(1...2) == ["open 1 for 1"])
        #expect(harness.open(1) == ["assign 1 to 1"])
        #expect(harness.finish(1) == ["assign 2 to 1 again"])
    }

    @Test func limitPerOriginCountsAllItsKeys() {
        var harness = PoolHarness(perOrigin: 2)
        _ = harness.start(1, to: "a")
        _ = harness.start(2, to: "a/1")
        #expect(harness.submit(3, to: "a/2") == [])
        #expect(harness.finish(1) == ["close 1", "open 3 for 3"])
    }

    @Test func idleConnectionOfAnotherKeyMakesRoomInItsOrigin() {
        var harness = PoolHarness(perOrigin: 2)
        _ = harness.start(1, to: "b")
        _ = harness.start(2, to: "a")
        _ = harness.start(3, to: "a")
        _ = harness.finish(1)
        _ = harness.finish(3)
        _ = harness.finish(2)
        #expect(harness.submit(4, to: "a/1") == ["close 3", "open 4 for 4"])
    }

    @Test func oldestIdleConnectionMakesRoomInAll() {
        var harness = PoolHarness(total: 3)
        for (number, name) in [(1, "a"), (2, "b"), (3, "c")] as [(UInt64, String)] {
            _ = harness.start(number, to: name)
        }
        #expect([2, 1, 3].flatMap { harness.finish($0) } == [])
        #expect(harness.submit(4, to: "d") == ["close 2", "open 4 for 4"])
        #expect(harness.submit(5, to: "e") == ["close 1", "open 5 for 5"])
        #expect(harness.submit(6, to: "c") == ["assign 6 to 3 again"])
        #expect(harness.submit(7, to: "a") == [])
    }

    @Test func connectingConnectionWithoutAnExchangeMakesRoom() {
        var harness = PoolHarness(total: 1)
        #expect(harness.submit(1, to: "a") == ["open 1 for 1"])
        #expect(harness.submit(2, to: "b") == [])
        #expect(harness.withdraw(1) == ["close 1", "open 2 for 2"])
    }

    @Test func waitingExchangesGoInOrderOfAge() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        _ = harness.submit(2...4)
        #expect((0..<4).flatMap { _ in harness.finish(1) } == [2, 3, 4].map { "assign \($0) to 1 again" })
    }

    @Test func urgentExchangeGoesFirstAndEqualOnesByAge() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        for (id, priority) in [(2, 0), (3, 2), (4, 4), (5, 2), (6, 4), (7, .min), (8, .max)] as [(UInt64, Int)] {
            #expect(harness.submit(id, priority: priority) == [])
        }
        #expect((0..<7).flatMap { _ in harness.finish(1) } == [8, 4, 6, 3, 5, 2, 7].map { "assign \($0) to 1 again" })
    }

    @Test func newestGoesFirstOnRequestAfterMoreUrgentOnes() {
        var harness = PoolHarness(perOrigin: 1, order: .lastInFirstOut)
        _ = harness.start(1)
        for id in 2...4 as ClosedRange<UInt64> { _ = harness.submit(id, priority: 2) }
        _ = harness.submit(5, priority: 3)
        _ = harness.submit(6, priority: 1)
        #expect((0..<5).flatMap { _ in harness.finish(1) } == [5, 4, 3, 2, 6].map { "assign \($0) to 1 again" })
    }

    @Test func changedPriorityMovesAWaitingExchangeAndKeepsItsAge() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        _ = harness.submit(2...5)
        #expect(harness.pool.prioritize(4, priority: 4) == true)
        #expect(harness.pool.prioritize(2, priority: -1) == true)
        #expect(harness.pool.prioritize(5, priority: -1) == true)
        #expect(harness.pool.prioritize(1, priority: 9) == false)
        #expect((0..<4).flatMap { _ in harness.finish(1) } == [4, 3, 2, 5].map { "assign \($0) to 1 again" })
    }

    @Test func withdrawnExchangeNeverStarts() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1)
        _ = harness.submit(2...4)
        #expect(harness.withdraw(3) == [])
        #expect(harness.withdraw(3) == ["not waiting"])
        #expect(harness.withdraw(1) == ["not waiting"])
        #expect((0..<3).flatMap { _ in harness.finish(1) } == [2, 4].map { "assign \($0) to 1 again" })
    }

    @Test func mostUrgentExchangeOfAnOriginGoesFirstOverItsKeys() {
        var harness = PoolHarness(perOrigin: 1)
        _ = harness.start(1, to: "a")
        #expect(harness.submit(2, to: "a") == [])
        #expect(harness.submit(3, to: "a/1", priority: 1) == [])
        #expect(harness.finish(1) == ["close 1", "open 2 for 3"])
        #expect(harness.open(2) == ["assign 3 to 2"])
        #expect(harness.finish(2) == ["close 2", "open 3 for 2"])
    }

    @Test func originsAlternate() {
        var harness = PoolHarness(perOrigin: 10, total: 1)
        _ = harness.start(1)
        _ = harness.submit(11...13, to: "a")
        _ = harness.submit(21...22, to: "b")
        _ = harness.submit(31, to: "c")
        var order: [UInt64] = []
        for number in [11, 21, 31, 12, 22, 13] as [UInt64] {
            let connections = harness.pool.connectionCount
            let actions = harness.finish(order.count + 1, isReusable: false)
            #expect(connections == 1)
            #expect(actions == ["close \(order.count + 1)", "open \(order.count + 2) for \(number)"])
            #expect(harness.open(order.count + 2) == ["assign \(number) to \(order.count + 2)"])
            order.append(number)
        }
        #expect(harness.finish(7) == [])
    }

    @Test func originsAlternateWithReusableConnections() {
        var harness = PoolHarness(total: 1)
        _ = harness.start(1, to: "a")
        _ = harness.submit(2...4, to: "a")
        _ = harness.submit(5, to: "b")
        #expect(harness.finish(1) == ["assign 2 to 1 again"])
        #expect(harness.finish(1) == ["close 1", "open 2 for 5"])
        #expect(harness.open(2) == ["assign 5 to 2"])
        #expect(harness.finish(2) == ["close 2", "open 3 for 3"])
    }

    @Test func newExchangeDoesNotOvertakeWaitingOnes() {
        var harness = PoolHarness(perOrigin: 2, total: 2)
        _ = harness.start(1, to: "a")
        _ = harness.start(2, to: "b")
        #expect(harness.submit(3, to: "a") == [])
        #expect(harness.finish(2) == ["close 2", "open 3 for 3"])
        #expect(harness.submit(4, to: "a") == [])
    }

    @Test func originAtItsLimitDoesNotDelayOthers() {
        var harness = PoolHarness(perOrigin: 1, total: 2)
        _ = harness.start(1, to: "a")
        _ = harness.start(2, to: "b")
        _ = harness.submit(3, to: "a")
        _ = harness.submit(4, to: "b")
        #expect(harness.finish(2) == ["assign 4 to 2 again"])
        #expect(harness.finish(1) == ["assign 3 to 1 again"])
    }

    @Test func manyOriginsTakeTurns() {
        var harness = PoolHarness(total: 1)
        _ = harness.start(0, to: "a")
        for number in 1...2_000 as ClosedRange<UInt64> {
            #expect(harness.submit(number, to: "host \(number)") == [])
        }
        for number in 1...2_000 {
            #expect(harness.finish(number) == ["close \(number)", "open \(number + 1) for \(number)"])
            #expect(harness.open(number + 1) == ["assign \(number) to \(number + 1)"])
        }
        #expect(harness.pool.waitingCount == 0)
    }

    @Test func busySharedConnectionDoesNotKeepOthersWaitingForever() {
        var harness = PoolHarness(total: 1)
        _ = harness.start(0, to: "a", capacity: 100)
        #expect(harness.submit(1, to: "b") == [])
        // Exchanges follow each other so that the connection is never idle.
        var number: UInt64 = 2
        while harness.submit(number, to: "a") == ["assign \(number) to 1 again"] {
            #expect(harness.finish(1) == [])
            number += 1
            guard number < 1_000 else { break }
        }
        #expect(number < 1_000)
        #expect(harness.finish(1) == ["close 1", "open 2 for 1"])
        #expect(harness.open(2) == ["assign 1 to 2"])
        #expect(harness.finish(2) == ["close 2", "open 3 for \(number)"])
    }

    @Test func originsWithEqualSharesKeepTheirConnections() {
        var harness = PoolHarness(total: 2)
        _ = harness.start(1, to: "a")
        _ = harness.start(2, to: "a")
        _ = harness.submit(11...19, to: "a")
        _ = harness.submit(21...30, to: "b")
        #expect(harness.finish(1) == ["assign 11 to 1 again"])
        #expect(harness.finish(2) == ["close 2", "open 3 for 21"])
        #expect(harness.open(3) == ["assign 21 to 3"])
        for number in 12...19 {
            #expect(harness.finish(1) == ["assign \(number) to 1 again"])
            #expect(harness.finish(3) == ["assign \(number + 10) to 3 again"])
        }
        // An origin that has nothing left gives its connection away.
        #expect(harness.finish(1) == ["close 1", "open 4 for 30"])
    }

    @Test func originWithLongExchangesIsNotPassedOverForever() {
        var harness = PoolHarness(total: 2)
        _ = harness.start(1, to: "a")
        _ = harness.start(2, to: "b")
        _ = harness.submit(3, to: "b")
        _ = harness.submit(101...200, to: "a")
        var actions: [String] = []
        var count = 0
        while !actions.contains("open 3 for 3"), count < 100 {
            actions = harness.finish(1)
            count += 1
        }
        #expect(actions == ["close 1", "open 3 for 3"])
        #expect(count == 17)
    }

    /// Three origins submit all the time, and one that has a single exchange is served within as many turns.
    @Test(arguments: [1, 2, 3] as [Int])
    func noOriginStarves(limit: Int) {
        var harness = PoolHarness(total: limit)
        var next: UInt64 = 100
        var connections: [Int] = []
        func connection(in texts: [String]) -> [Int] {
            texts.filter { $0.hasPrefix("open") }.compactMap { Int($0.split(separator: " ")[1]) }
        }
        for _ in 0..<20 {
            for name in ["a", "b", "c"] {
                connections += connection(in: harness.submit(next, to: name))
                next += 1
            }
        }
        for number in connections { _ = harness.open(number) }
        #expect(harness.submit(1, to: "d") == [])
        var finished = 0
        var isServed = false
        while !isServed, finished < 20, !connections.isEmpty {
            let texts = harness.finish(connections.removeFirst())
            finished += 1
            isServed = texts.contains { $0.hasPrefix("open") && $0.hasSuffix(" for 1") }
            connections += connection(in: texts)
            for number in connection(in: texts) { _ = harness.open(number) }
            for text in texts where text.hasPrefix("assign") {
                connections += [Int(text.split(separator: " ")[3]) ?? 0]
            }
        }
        #expect(isServed && finished <= 4)
    }

    @Test func cancellingManyWaitingExchangesIsFast() {
        var harness = PoolHarness(perOrigin: 6)
        _ = harness.submit(1...10_000)
        var actions: [ConnectionPool.Action] = []
        let duration = ContinuousClock().measure {
            for number in 1...10_000 as ClosedRange<UInt64> {
                _ = harness.pool.withdraw(number, now: 0, actions: &actions)
            }
        }
        #expect(actions == [] && harness.pool.waitingCount == 0 && harness.pool.idleCount == 6)
        // In a release build on one processor it takes 4 ms; the bound finds a linear search in a debug build.
        #expect(duration < .seconds(2))
    }
}
