import Tern
import Testing

@testable import TernImages

@Suite struct SubscriberListTests {
    private struct Caller: Identifiable, Equatable {
        let id: Int
    }

    private typealias List = SubscriberList<Caller>
    private let low = LoadPriority(.low, isVisible: false)
    private let high = LoadPriority(.high, isVisible: false)

    private func list(of count: Int) -> List {
        var list = List()
        for id in 0..<count { _ = list.add(Caller(id: id), low) }
        return list
    }

    private func ids(_ list: List) -> [Int] { list.all.map(\.id) }

    @Test func aLoadHasTheHighestPriorityOfThoseThatJoin() {
        var list = List()
        #expect(list.priority == .lowest)
        #expect(list.add(Caller(id: 100), low) == low)
        #expect(list.add(Caller(id: 101), low) == nil)
        #expect(list.add(Caller(id: 102), high) == high)
        #expect(ids(list) == [100, 101, 102])
        #expect(list.priority == high)
        #expect(list.takeAll().all == [100, 101, 102].map(Caller.init))
        #expect(list.takeAll().all == [])
        #expect(list.count == 0)
    }

    @Test func theLastToLeaveEndsTheLoad() {
        var list = List()
        _ = list.add(Caller(id: 100), high)
        _ = list.add(Caller(id: 101), low)
        #expect(list.remove(100) == .stays(newPriority: low))
        #expect(list.remove(100) == .unknown)
        #expect(list.remove(101) == .ends)
        #expect(list.remove(101) == .unknown)
        _ = list.add(Caller(id: 102), low)
        // One that has left does not affect those that join later.
        #expect(list.update(100, high) == nil)
        #expect(ids(list) == [102])
    }

    @Test func onlyTheFirstSubscriberGetsTheFirstFailure() {
        var list = list(of: 3)
        guard case .retry(let first) = list.fail(isFinal: false) else {
            Issue.record("not tried again")
            return
        }
        #expect(first.id == 0)
        guard case .end = list.fail(isFinal: false) else {
            Issue.record("tried a third time")
            return
        }
        #expect(list.takeAll().all.map(\.id) == [1, 2])
    }

    @Test func finalFailuresAndSingleSubscribersAreNotRetried() {
        var list = list(of: 3)
        guard case .end = list.fail(isFinal: true) else {
            Issue.record("tried again")
            return
        }
        #expect(ids(list) == [0, 1, 2])
        var single = self.list(of: 1)
        guard case .end = single.fail(isFinal: false) else {
            Issue.record("tried again")
            return
        }
        #expect(ids(single) == [0])
    }

    @Test func theRetryGoesToTheFirstRemainingSubscriber() {
        var list = list(of: 100)
        for id in 0..<97 { _ = list.remove(id) }
        guard case .retry(let first) = list.fail(isFinal: false) else {
            Issue.record("not tried again")
            return
        }
        #expect(first.id == 97)
        #expect(ids(list) == [98, 99])
        #expect(list.remove(98) == .stays(newPriority: nil))
        #expect(list.remove(99) == .ends)
    }

    @Test func subscribersThatLeaveAreCompacted() {
        var list = List()
        _ = list.add(Caller(id: 0), low)
        for id in 1...100_000 {
            _ = list.add(Caller(id: id), high)
            #expect(list.remove(id) == .stays(newPriority: low))
        }
        #expect(list.capacity < 100)
        #expect(ids(list) == [0])
        #expect(list.priority == low)
        #expect(list.remove(0) == .ends)
    }

    @Test func leavingALongListIsFast() {
        var list = list(of: 50_000)
        let clock = ContinuousClock()
        let times = (0..<1_000).map { index in
            clock.measure { #expect(list.remove(49_999 - index * 37) == .stays(newPriority: nil)) }
        }
        // A linear search would take longer. The median ignores single disturbed measurements.
        #expect(times.sorted()[500] < .milliseconds(1))
        #expect(list.count == 49_000)
    }

    /// Compares the list with an array: 100,000 steps in all.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func aSubscriberListMatchesAnArray(seed: UInt64) {
        var random = SplitMix(state: seed)
        var list = List()
        var model: [(id: Int, rank: LoadPriority)] = []
        var wasRetried = false
        // Some lists stay so short that they have no table.
        let growth = seed % 4 == 0 ? 2 : 4
        for id in 0..<5_000 {
            let rank = LoadPriority(
                .allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
            let known = model.randomElement(using: &random)?.id ?? -1
            let before = list.priority
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<growth:
                model.append((id, rank))
                let highest = model.map(\.rank).max() ?? .lowest
                #expect(list.add(Caller(id: id), rank) == (highest == before ? nil : highest))
            case growth..<6:
                model.removeAll { $0.id == known }
                let highest = model.map(\.rank).max() ?? .lowest
                let stays = List.Removal.stays(newPriority: highest == before ? nil : highest)
                #expect(list.remove(known) == (known < 0 ? .unknown : model.isEmpty ? .ends : stays))
            case 6:
                for place in model.indices where model[place].id == known { model[place].rank = rank }
                let highest = model.map(\.rank).max() ?? .lowest
                #expect(list.update(known, rank) == (highest == before ? nil : highest))
            default:
                let isFinal = Bool.random(using: &random)
                switch list.fail(isFinal: isFinal) {
                case .retry(let first):
                    #expect(!isFinal && !wasRetried && model.count > 1)
                    #expect(first.id == model.first?.id)
                    model = Array(model.dropFirst())
                    wasRetried = true
                case .end:
                    #expect(isFinal || wasRetried || model.count < 2)
                    #expect(list.takeAll().all.map(\.id) == model.map(\.id))
                    model = []
                    wasRetried = false
                }
            }
            #expect(ids(list) == model.map(\.id))
            #expect(list.priority == model.map(\.rank).max() ?? .lowest)
            #expect(list.count == model.count)
        }
    }
}
