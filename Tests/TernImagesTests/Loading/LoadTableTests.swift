import Tern
import Testing

@testable import TernImages

@Suite struct LoadTableTests {
    private typealias Table = LoadTable<String, Int>
    private let low = LoadRank(.low, isVisible: false)
    private let high = LoadRank(.high, isVisible: false)

    @Test func theFirstBeginsAndTheOthersJoin() {
        var table = Table()
        #expect(table.join("a", as: 1, ticket: 10, rank: low, 100) == .begin)
        #expect(table.join("a", as: 2, ticket: 11, rank: low, 101) == .joined(load: 1, rank: nil))
        #expect(table.join("a", as: 3, ticket: 12, rank: high, 102) == .joined(load: 1, rank: high))
        #expect(table.join("b", as: 4, ticket: 13, rank: low, 103) == .begin)
        #expect(table.targets(of: 1) == [100, 101, 102])
        #expect(table.rank(of: 1) == high)
        #expect(table.finish(1) == [100, 101, 102])
        #expect(table.finish(1) == [])
        #expect(table.count == 1)
    }

    @Test func theLastToLeaveEndsItAndTheNextBeginsAnew() {
        var table = Table()
        _ = table.join("a", as: 1, ticket: 10, rank: high, 100)
        _ = table.join("a", as: 2, ticket: 11, rank: low, 101)
        #expect(table.leave(1, ticket: 10) == .stays(rank: low))
        #expect(table.leave(1, ticket: 10) == .unknown)
        #expect(table.leave(1, ticket: 11) == .ends)
        #expect(table.leave(1, ticket: 11) == .unknown)
        #expect(table.join("a", as: 3, ticket: 12, rank: low, 102) == .begin)
        // The number of one that has gone changes nothing of its successor.
        #expect(table.finish(1) == [])
        #expect(table.targets(of: 3) == [102])
    }

    @Test func theLeaderAloneIsToldOfTheFirstFailure() {
        var table = Table()
        for ticket in 0..<3 { _ = table.join("a", as: 1, ticket: ticket, rank: low, 100 + ticket) }
        guard case .again(let leader) = table.fail(1, isFinal: false) else {
            Issue.record("not tried again")
            return
        }
        #expect(leader == 100)
        guard case .ends(let rest) = table.fail(1, isFinal: false) else {
            Issue.record("tried a third time")
            return
        }
        #expect(rest == [101, 102])
        #expect(table.count == 0)
    }

    @Test func whatWouldEndTheSameAndWhatOneWaitsForIsNotTriedAgain() {
        var table = Table()
        for ticket in 0..<3 { _ = table.join("a", as: 1, ticket: ticket, rank: low, ticket) }
        guard case .ends(let all) = table.fail(1, isFinal: true) else {
            Issue.record("tried again")
            return
        }
        #expect(all == [0, 1, 2])
        _ = table.join("b", as: 2, ticket: 5, rank: low, 5)
        guard case .ends(let one) = table.fail(2, isFinal: false) else {
            Issue.record("tried again")
            return
        }
        #expect(one == [5])
    }

    @Test func theLeaderIsTheFirstWhoIsStillThere() {
        var table = Table()
        for ticket in 0..<100 { _ = table.join("a", as: 1, ticket: ticket, rank: low, ticket) }
        for ticket in 0..<97 { _ = table.leave(1, ticket: ticket) }
        guard case .again(let leader) = table.fail(1, isFinal: false) else {
            Issue.record("not tried again")
            return
        }
        #expect(leader == 97)
        #expect(table.targets(of: 1) == [98, 99])
        #expect(table.leave(1, ticket: 98) == .stays(rank: nil))
        #expect(table.leave(1, ticket: 99) == .ends)
    }

    @Test func whoComesAndGoesDoesNotPileUp() {
        var list = WaitingList<String, Int>(key: "a")
        list.add(0, low, 0)
        for ticket in 1...100_000 {
            list.add(ticket, high, ticket)
            #expect(list.remove(ticket) == true)
        }
        #expect(list.targets.count < 100)
        #expect(list.all == [0])
        #expect(list.rank == low)
        #expect(list.remove(0) == true)
    }

    /// Against tickets in an array.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func aWaitingListIsAnArray(seed: UInt64) {
        var random = SplitMix(state: seed)
        var list = WaitingList<String, Int>(key: "a")
        var model: [(ticket: Int, rank: LoadRank)] = []
        for ticket in 0..<1_000 {
            let rank = LoadRank(
                .allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
            let known = model.randomElement(using: &random)?.ticket ?? -1
            switch Int.random(in: 0..<7, using: &random) {
            case 0...2:
                list.add(ticket, rank, ticket)
                model.append((ticket, rank))
            case 3...4:
                #expect(list.remove(known) == (known >= 0))
                model.removeAll { $0.ticket == known }
            case 5:
                list.move(known, to: rank)
                for place in model.indices where model[place].ticket == known { model[place].rank = rank }
            default:
                #expect(list.takeLeader() == model.first?.ticket)
                model = Array(model.dropFirst())
            }
            #expect(list.all == model.map(\.ticket))
            #expect(list.rank == model.map(\.rank).max() ?? .lowest)
            #expect(list.placeOf.count == model.count)
        }
    }
}
