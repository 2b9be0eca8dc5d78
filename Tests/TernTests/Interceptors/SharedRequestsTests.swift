import Testing

@testable import Tern

@Suite("Shared requests")
struct SharedRequestsTests {
    private typealias Table = SharedRequests<String, Int, Int>

    /// Returns the number of the request to send; nil for a request that waits.
    private func number(_ decision: Table.JoinDecision) -> UInt64? {
        if case .send(let number) = decision { number } else { nil }
    }

    @Test func firstRequestLeadsAndOthersWait() throws {
        var table = Table()
        let first = try #require(number(table.join("a", as: 1, 1)))
        guard case .wait(sender: 1) = table.join("a", as: 2, 2) else {
            Issue.record("does not wait")
            return
        }
        #expect(number(table.join("b", as: 3, 3)) != nil)
        #expect(table.finish("a", first) == [2])
        #expect(number(table.join("a", as: 4, 4)) != nil)
    }

    @Test func removedWaiterReceivesNothing() throws {
        var table = Table()
        let first = try #require(number(table.join("a", as: 1, 1)))
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        guard case .none = table.leave("a", where: { $0 == 2 }) else {
            Issue.record("the others need the request")
            return
        }
        #expect(table.finish("a", first) == [3])
        #expect(table.isEmpty)
    }

    @Test func waitersTakeOverInOrder() throws {
        var table = Table()
        let number = try #require(self.number(table.join("a", as: 1, 1)))
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        #expect(table.nextSender("a", number) == 2)
        #expect(table.setSender(of: "a", number, to: 2) == [3])
        guard case .wait(sender: 2) = table.join("a", as: 4, 4) else {
            Issue.record("does not wait")
            return
        }
        #expect(table.nextSender("a", number) == 3)
        #expect(table.nextSender("a", number) == 4)
        #expect(table.nextSender("a", number) == nil)
        #expect(table.isEmpty)
    }

    @Test func aRequestGoesOnWithoutItsSenderAndEndsWithTheLastWaiter() throws {
        var table = Table()
        let first = try #require(number(table.join("a", as: 1, 1)))
        #expect(table.leaveAsSender("a", first) == nil)
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        #expect(table.hasWaiters("a", first))
        #expect(table.leaveAsSender("a", first) != nil)
        _ = table.leave("a") { $0 == 2 }
        guard case .cancel(1) = table.leave("a", where: { $0 == 3 }) else {
            Issue.record("the request goes on for nobody")
            return
        }
        // The next request does not join it, and its end does not end the next one.
        let second = try #require(number(table.join("a", as: 4, 4)))
        _ = table.join("a", as: 5, 5)
        #expect(table.finish("a", first).isEmpty)
        #expect(table.nextSender("a", first) == nil)
        #expect(table.leaveAsSender("a", first) == nil)
        #expect(table.finish("a", second) == [5])
    }

    @Test func thePriorityIsTheHighestOfThoseThatNeedTheResponse() throws {
        var table = Table()
        let first = try #require(number(table.join("a", as: 1, 1, priority: .veryHigh)))
        _ = table.join("a", as: 2, 2, priority: .low)
        _ = table.join("a", as: 3, 3, priority: .high)
        guard case .lower(1, from: .veryHigh, to: .high)? = table.leaveAsSender("a", first),
            case .lower(1, from: .high, to: .low) = table.leave("a", where: { $0 == 3 })
        else {
            Issue.record("the priority stays")
            return
        }
        let second = try #require(number(table.join("b", as: 1, 1)))
        _ = table.join("b", as: 2, 2, priority: .high)
        guard case .alone(1, from: .high, to: .normal) = table.leave("b", where: { $0 == 2 }),
            !table.hasWaiters("b", second)
        else {
            Issue.record("the sender is not alone")
            return
        }
    }
}
