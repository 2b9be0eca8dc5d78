import Testing

@testable import TernEngine

/// A pool that shares the limits of its connections with others.
@Suite("Connection pool: shared room") struct PoolRoomTests {
    @Test func eachConnectionNeedsRoom() {
        var pool = PoolHarness(sharesRoom: true)
        #expect(pool.submit(1) == ["ask for a"])
        #expect(pool.submit(2) == [])
        #expect(pool.grant() == ["open 1 for 1", "ask for a"])
        #expect(pool.grant() == ["open 2 for 2", "stop asking for a"])
        #expect(pool.open(1) == ["assign 1 to 1"])
        #expect(pool.finish(1) == ["assign 2 to 1 again"])
        // The second one is idle once it is open, and keeps its room.
        #expect(pool.open(2) == [])
        #expect(pool.submit(3) == ["assign 3 to 2"])
    }

    @Test func roomThatIsNotNeededIsGivenBack() {
        var pool = PoolHarness(sharesRoom: true)
        #expect(pool.submit(1) == ["ask for a"])
        #expect(pool.withdraw(1) == ["stop asking for a"])
        // The answer was on its way.
        #expect(pool.grant() == ["give 1 of a back", "stop asking for a"])
        #expect(pool.grant("unknown") == ["give 1 of unknown back"])
        _ = pool.submit(2)
        #expect(pool.grant() == ["open 1 for 2", "stop asking for a"])
        #expect(pool.open(1) == ["assign 2 to 1"])
        #expect(pool.lose(1) == ["give 1 of a back"])
    }

    @Test func aConnectionThatFailsKeepsItsRoomForTheNext() {
        var pool = PoolHarness(sharesRoom: true)
        _ = pool.submit(1...2)
        #expect(pool.grant() == ["open 1 for 1", "ask for a"])
        #expect(pool.fail(1).exchange == 1)
        #expect(pool.submit(3) == ["ask for a"] || pool.pool.connectionCount == 1)
    }

    @Test func anIdleConnectionIsClosedForOthers() {
        var pool = PoolHarness(sharesRoom: true)
        _ = pool.submit(1)
        _ = pool.grant()
        _ = pool.open(1)
        // One that carries an exchange stays, unless the room is owed.
        #expect(pool.giveRoom() == [])
        #expect(pool.finish(1) == [])
        #expect(pool.giveRoom() == ["close 1", "give 1 of a back"])
        #expect(pool.giveRoom() == [] && pool.giveRoom(of: "unknown") == [])
    }

    @Test func roomThatIsOwedIsGivenWhenAConnectionIsFree() {
        var pool = PoolHarness(sharesRoom: true)
        _ = pool.submit(1...3)
        #expect(pool.grant() == ["open 1 for 1", "ask for a"])
        #expect(pool.open(1) == ["assign 1 to 1"])
        #expect(pool.giveRoom(isOwed: true) == [])
        // Two exchanges wait, and for them the pool has asked already.
        #expect(pool.finish(1) == ["close 1", "give 1 of a back"])
        #expect(pool.grant() == ["open 2 for 2", "ask for a"])
        #expect(pool.open(2) == ["assign 2 to 2"])
        #expect(pool.finish(2) == ["assign 3 to 2 again", "stop asking for a"])
    }

    /// The most urgent exchange goes first, over all keys of an origin, although those of another key wait always.
    @Test func aKeyWithoutAConnectionHasItsTurn() {
        var pool = PoolHarness(sharesRoom: true)
        _ = pool.submit(1)
        _ = pool.grant()
        _ = pool.open(1)
        #expect(pool.submit(2, to: "a/1") == ["ask for a"])
        #expect(pool.submit(3) == [])
        #expect(pool.finish(1) == ["close 1", "open 2 for 2"])
    }

    /// One connection that carries several exchanges drains for what is owed, and not all of them.
    @Test func oneConnectionDrainsForWhatIsOwed() {
        var pool = PoolHarness(sharesRoom: true)
        for number in 1...2 as ClosedRange<UInt64> {
            _ = pool.submit(number)
            _ = pool.grant()
            _ = pool.open(Int(number), capacity: 2)
            _ = pool.submit(10 + number)
        }
        #expect(pool.giveRoom(isOwed: true) == [])
        #expect(pool.finish(1) == [] && pool.finish(2) == [])
        // The second one takes exchanges still.
        #expect(pool.submit(20) == ["assign 20 to 2 again"])
        #expect(pool.finish(1) == ["close 1", "give 1 of a back"])
    }

    /// An answer that crosses a second question leaves no need behind.
    @Test func aSecondQuestionIsTakenBack() {
        var pool = PoolHarness(sharesRoom: true)
        #expect(pool.submit(1) == ["ask for a"])
        #expect(pool.withdraw(1) == ["stop asking for a"])
        #expect(pool.submit(2) == ["ask for a"])
        #expect(pool.grant() == ["open 1 for 2", "stop asking for a"])
    }

    @Test func anotherKeyOfTheOriginTakesTheRoom() {
        var pool = PoolHarness(sharesRoom: true)
        pool.confirmsCloses = false
        _ = pool.submit(1, to: "a")
        _ = pool.grant()
        _ = pool.open(1)
        _ = pool.finish(1)
        #expect(pool.submit(2, to: "a/1") == ["ask for a"])
        // There is no more, and the pool has an idle connection itself.
        #expect(pool.pool.hasIdle("a") && !pool.pool.hasIdle("b"))
        #expect(pool.giveRoom() == ["close 1"])
        #expect(pool.lose(1) == ["open 2 for 2", "stop asking for a"])
    }

    @Test func anExchangeThatLastsLongNeedsNoRoom() {
        var pool = PoolHarness(live: 1, sharesRoom: true)
        _ = pool.submit(1)
        _ = pool.grant()
        #expect(pool.open(1) == ["assign 1 to 1"])
        #expect(pool.becomeLive(1) == ["give 1 of a back"])
        #expect(pool.submit(2) == ["ask for a"])
    }

    @Test func oneConnectionOverHTTP2NeedsTheRoomOfOne() {
        var pool = PoolHarness(sharesRoom: true)
        #expect(pool.submit(1...3, .waitsForShared) == ["ask for a"])
        #expect(pool.grant() == ["open 1 for 1", "stop asking for a"])
        #expect(pool.open(1, capacity: 100) == ["assign 1 to 1", "assign 2 to 1 again", "assign 3 to 1 again"])
        #expect(pool.finish(1) == [] && pool.finish(1) == [] && pool.finish(1) == [])
        #expect(pool.giveRoom() == ["close 1", "give 1 of a back"])
    }
}

/// The division of the room among pools.
@Suite("Connection pool: division of room") struct RoomLedgerTests {
    private func need(_ loop: Int, _ origin: String = "a") -> RoomLedger.Need {
        RoomLedger.Need(origin: origin, loop: loop)
    }

    private func granted(_ loop: Int, _ origin: String = "a") -> RoomLedger.Message {
        RoomLedger.Message(loop: loop, content: .granted(origin: origin))
    }

    private func giveRoom(_ loop: Int, isOwed: Bool, _ origin: String = "a") -> RoomLedger.Message {
        RoomLedger.Message(loop: loop, content: .giveRoom(origin: origin, isOwed: isOwed))
    }

    @Test func roomIsGivenUpToTheLimits() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 2, limit: 3)
        #expect(ledger.ask(need(0)) == [granted(0)])
        #expect(ledger.ask(need(1)) == [granted(1)])
        // Both have their parts.
        #expect(ledger.ask(need(0)) == [giveRoom(1, isOwed: false)])
        #expect(ledger.ask(need(0, "b")) == [granted(0, "b")])
        #expect(ledger.free == 0)
        #expect(ledger.giveBack(need(1), count: 1) == [granted(0)])
        #expect(ledger.giveBack(need(0), count: 2) == [])
        #expect(ledger.room(of: need(0)) == 0 && ledger.room(of: need(0, "b")) == 1 && ledger.free == 2)
    }

    @Test func aPoolWithLessThanItsPartIsOwedRoom() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 4, limit: 100)
        for _ in 0..<4 { _ = ledger.ask(need(0)) }
        #expect(ledger.ask(need(0)) == [])
        #expect(ledger.ask(need(1)) == [giveRoom(0, isOwed: true)])
        // The other one has asked before, and has more than its part.
        #expect(ledger.giveBack(need(0), count: 1) == [granted(1)])
        #expect(ledger.ask(need(1)) == [giveRoom(0, isOwed: true)])
        #expect(ledger.giveBack(need(0), count: 1) == [granted(1)])
        #expect(ledger.ask(need(1)) == [giveRoom(0, isOwed: false)])
        // Now the order counts.
        #expect(ledger.giveBack(need(0), count: 1) == [granted(0)])
    }

    @Test func aPoolClosesItsOwnIdleConnectionsFirst() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 2, limit: 3)
        for loop in 0..<2 { _ = ledger.ask(need(loop)) }
        #expect(ledger.ask(need(0), hasIdleOfOrigin: true, hasIdle: true) == [giveRoom(0, isOwed: false)])
        _ = ledger.ask(need(0, "b"))
        let message = RoomLedger.Message(loop: 1, content: .closeOldestIdle)
        #expect(ledger.ask(need(1, "c"), hasIdle: true) == [message])
    }

    @Test func theLimitForAllOriginsIsShared() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 10, limit: 4)
        for origin in ["a", "a", "b", "c"] { _ = ledger.ask(need(0, origin)) }
        let messages = ledger.ask(need(1, "d"))
        #expect(
            messages == [RoomLedger.Message(loop: 0, content: .closeOldestIdle), giveRoom(0, isOwed: true, "a")])
        #expect(ledger.requests(to: 0) == [RoomLedger.Message(loop: 0, content: .closeOldestIdle)])
        // The pool itself can have an idle connection of its own, too.
        #expect(ledger.requests(to: 1) == [RoomLedger.Message(loop: 1, content: .closeOldestIdle)])
        #expect(ledger.giveBack(need(0, "a"), count: 1) == [granted(1, "d")])
    }

    /// A pool that is asked twice for the room of one connection owes it once.
    @Test func aNeedThatIsLeftIsAskedForAgain() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 8, limit: 8)
        for origin in ["p", "p", "p", "q", "q", "q", "r", "r"] { _ = ledger.ask(need(0, origin)) }
        _ = ledger.ask(need(1, "a"))
        _ = ledger.ask(need(1, "b"))
        let messages = ledger.giveBack(need(0, "p"), count: 1)
        #expect(messages.first == granted(1, "a"))
        #expect(messages.contains(giveRoom(0, isOwed: true, "q")))
    }

    @Test func aBusyPoolGivesRoomInItsTurn() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 4, limit: 4)
        for _ in 0..<4 { _ = ledger.ask(need(0)) }
        #expect(ledger.turn(of: 0) { _ in nil } == nil)
        _ = ledger.ask(need(0, "b"))
        // The limit for all origins is reached, so that the pool gives room of its richest other origin.
        #expect(ledger.turn(of: 0) { $0 == "b" ? "a" : nil } == giveRoom(0, isOwed: true))
        #expect(ledger.turn(of: 1) { _ in nil } == nil)
        var origin = RoomLedger(loops: 2, limitPerOrigin: 2, limit: 100)
        for loop in [0, 1] { _ = origin.ask(need(loop)) }
        _ = origin.ask(need(0))
        #expect(origin.turn(of: 1) { _ in "z" } == giveRoom(1, isOwed: true))
        #expect(origin.turn(of: 0) { _ in "z" } == nil)
        #expect(origin.isUsedElsewhere(need(0)) && !origin.isUsedElsewhere(need(0, "b")))
    }

    @Test func aPoolThatEndsGivesAllBack() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 2, limit: 2)
        for _ in 0..<2 { _ = ledger.ask(need(0)) }
        _ = ledger.ask(need(1))
        #expect(ledger.leave(0) == [granted(1)])
        #expect(ledger.room(of: need(0)) == 0 && ledger.room(of: need(1)) == 1 && ledger.free == 1)
    }

    @Test func aPoolThatStopsAskingGetsNothing() {
        var ledger = RoomLedger(loops: 2, limitPerOrigin: 1, limit: 1)
        _ = ledger.ask(need(0))
        _ = ledger.ask(need(1))
        ledger.stopAsking(need(1))
        #expect(ledger.giveBack(need(0), count: 1) == [])
        // More than there is cannot be given back.
        #expect(ledger.giveBack(need(0), count: 3) == [] && ledger.free == 1)
    }
}
