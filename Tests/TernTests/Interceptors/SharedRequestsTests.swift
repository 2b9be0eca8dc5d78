import Testing

@testable import Tern

@Suite("Shared requests")
struct SharedRequestsTests {
    private typealias Table = SharedRequests<String, Int, Int>

    private func sends(_ decision: Table.JoinDecision) -> Bool {
        if case .send = decision { true } else { false }
    }

    @Test func firstRequestLeadsAndOthersWait() {
        var table = Table()
        #expect(sends(table.join("a", as: 1, 1)))
        guard case .wait(sender: 1) = table.join("a", as: 2, 2) else {
            Issue.record("does not wait")
            return
        }
        #expect(sends(table.join("b", as: 3, 3)))
        #expect(table.finish("a") == [2])
        #expect(sends(table.join("a", as: 4, 4)))
    }

    @Test func removedWaiterReceivesNothing() {
        var table = Table()
        _ = table.join("a", as: 1, 1)
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        table.leave("a") { $0 == 2 }
        #expect(table.finish("a") == [3])
        #expect(table.isEmpty)
    }

    @Test func waitersTakeOverInOrder() {
        var table = Table()
        _ = table.join("a", as: 1, 1)
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        #expect(table.nextSender("a") == 2)
        table.setSender(of: "a", to: 2)
        guard case .wait(sender: 2) = table.join("a", as: 4, 4) else {
            Issue.record("does not wait")
            return
        }
        #expect(table.nextSender("a") == 3)
        #expect(table.nextSender("a") == 4)
        #expect(table.nextSender("a") == nil)
        #expect(table.isEmpty)
    }
}
