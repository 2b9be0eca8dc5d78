import Testing

@testable import Tern

@Suite("Flights")
struct FlightsTests {
    private typealias Table = Flights<String, Int, Int>

    private func leads(_ arrival: Table.Arrival) -> Bool {
        if case .lead = arrival { true } else { false }
    }

    @Test func theFirstLeadsAndTheOthersWaitForIt() {
        var table = Table()
        #expect(leads(table.join("a", as: 1, 1)))
        guard case .wait(leader: 1) = table.join("a", as: 2, 2) else {
            Issue.record("does not wait")
            return
        }
        #expect(leads(table.join("b", as: 3, 3)))
        #expect(table.land("a") == [2])
        #expect(leads(table.join("a", as: 4, 4)))
    }

    @Test func whoLeavesGetsNothing() {
        var table = Table()
        _ = table.join("a", as: 1, 1)
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        table.leave("a") { $0 == 2 }
        #expect(table.land("a") == [3])
        #expect(table.isEmpty)
    }

    @Test func oneAfterTheOtherTakesOver() {
        var table = Table()
        _ = table.join("a", as: 1, 1)
        _ = table.join("a", as: 2, 2)
        _ = table.join("a", as: 3, 3)
        #expect(table.successor("a") == 2)
        table.lead("a", by: 2)
        guard case .wait(leader: 2) = table.join("a", as: 4, 4) else {
            Issue.record("does not wait")
            return
        }
        #expect(table.successor("a") == 3)
        #expect(table.successor("a") == 4)
        #expect(table.successor("a") == nil)
        #expect(table.isEmpty)
    }
}
