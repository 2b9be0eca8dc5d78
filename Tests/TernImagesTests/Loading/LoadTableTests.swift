import Tern
import Testing

@testable import TernImages

@Suite struct LoadTableTests {
    private typealias Table = LoadTable<String, Int>
    private let low = LoadPriority(.low, isVisible: false)
    private let high = LoadPriority(.high, isVisible: false)

    @Test func theFirstBeginsAndTheOthersJoin() {
        var table = Table()
        #expect(table.join("a", as: 1, with: Subscription(id: 10, priority: low), subscriber: 100) == .begin)
        #expect(
            table.join("a", as: 2, with: Subscription(id: 11, priority: low), subscriber: 101)
                == .joined(load: 1, newPriority: nil))
        #expect(
            table.join("a", as: 3, with: Subscription(id: 12, priority: high), subscriber: 102)
                == .joined(load: 1, newPriority: high))
        #expect(table.join("b", as: 4, with: Subscription(id: 13, priority: low), subscriber: 103) == .begin)
        #expect(table.subscribers(of: 1) == [100, 101, 102])
        #expect(table.priority(of: 1) == high)
        #expect(table.finish(1) == [100, 101, 102])
        #expect(table.finish(1) == [])
        #expect(table.count == 1)
    }

    @Test func theLastToLeaveEndsItAndTheNextBeginsAnew() {
        var table = Table()
        _ = table.join("a", as: 1, with: Subscription(id: 10, priority: high), subscriber: 100)
        _ = table.join("a", as: 2, with: Subscription(id: 11, priority: low), subscriber: 101)
        #expect(table.leave(1, subscription: 10) == .stays(newPriority: low))
        #expect(table.leave(1, subscription: 10) == .unknown)
        #expect(table.leave(1, subscription: 11) == .ends)
        #expect(table.leave(1, subscription: 11) == .unknown)
        #expect(table.join("a", as: 3, with: Subscription(id: 12, priority: low), subscriber: 102) == .begin)
        // The number of a finished load does not affect its successor.
        #expect(table.finish(1) == [])
        #expect(table.subscribers(of: 3) == [102])
    }

    @Test func onlyTheFirstSubscriberGetsTheFirstFailure() {
        var table = Table()
        for ticket in 0..<3 {
            _ = table.join("a", as: 1, with: Subscription(id: ticket, priority: low), subscriber: 100 + ticket)
        }
        guard case .retry(let firstSubscriber) = table.fail(1, isFinal: false) else {
            Issue.record("not tried again")
            return
        }
        #expect(firstSubscriber == 100)
        guard case .end(let rest) = table.fail(1, isFinal: false) else {
            Issue.record("tried a third time")
            return
        }
        #expect(rest == [101, 102])
        #expect(table.count == 0)
    }

    @Test func finalFailuresAndSingleSubscribersAreNotRetried() {
        var table = Table()
        for ticket in 0..<3 {
            _ = table.join("a", as: 1, with: Subscription(id: ticket, priority: low), subscriber: ticket)
        }
        guard case .end(let all) = table.fail(1, isFinal: true) else {
            Issue.record("tried again")
            return
        }
        #expect(all == [0, 1, 2])
        _ = table.join("b", as: 2, with: Subscription(id: 5, priority: low), subscriber: 5)
        guard case .end(let one) = table.fail(2, isFinal: false) else {
            Issue.record("tried again")
            return
        }
        #expect(one == [5])
    }

    @Test func theRetryGoesToTheFirstRemainingSubscriber() {
        var table = Table()
        for ticket in 0..<100 {
            _ = table.join("a", as: 1, with: Subscription(id: ticket, priority: low), subscriber: ticket)
        }
        for ticket in 0..<97 { _ = table.leave(1, subscription: ticket) }
        guard case .retry(let firstSubscriber) = table.fail(1, isFinal: false) else {
            Issue.record("not tried again")
            return
        }
        #expect(firstSubscriber == 97)
        #expect(table.subscribers(of: 1) == [98, 99])
        #expect(table.leave(1, subscription: 98) == .stays(newPriority: nil))
        #expect(table.leave(1, subscription: 99) == .ends)
    }

    @Test func subscribersThatLeaveAreCompacted() {
        var list = SubscriberList<String, Int>(key: "a")
        list.add(0, Subscription(id: 0, priority: low))
        for ticket in 1...100_000 {
            list.add(ticket, Subscription(id: ticket, priority: high))
            #expect(list.remove(ticket) == true)
        }
        #expect(list.entries.count < 100)
        #expect(list.all == [0])
        #expect(list.priority == low)
        #expect(list.remove(0) == true)
    }

    /// Compares the list with an array.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func aSubscriberListMatchesAnArray(seed: UInt64) {
        var random = SplitMix(state: seed)
        var list = SubscriberList<String, Int>(key: "a")
        var model: [(ticket: Int, rank: LoadPriority)] = []
        for ticket in 0..<1_000 {
            let rank = LoadPriority(
                .allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
            let known = model.randomElement(using: &random)?.ticket ?? -1
            switch Int.random(in: 0..<7, using: &random) {
            case 0...2:
                list.add(ticket, Subscription(id: ticket, priority: rank))
                model.append((ticket, rank))
            case 3...4:
                #expect(list.remove(known) == (known >= 0))
                model.removeAll { $0.ticket == known }
            case 5:
                list.update(Subscription(id: known, priority: rank))
                for place in model.indices where model[place].ticket == known { model[place].rank = rank }
            default:
                #expect(list.removeFirstSubscriber() == model.first?.ticket)
                model = Array(model.dropFirst())
            }
            #expect(list.all == model.map(\.ticket))
            #expect(list.priority == model.map(\.rank).max() ?? .lowest)
            #expect(list.count == model.count)
        }
    }
}
