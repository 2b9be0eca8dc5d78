import Tern
import TernConcurrency
import Testing

@testable import TernImages

@Suite struct StageQueueTests {
    /// A model of the queue with linear searches.
    private struct Model {
        let limit: Int
        let order: ImagePipeline.Order
        var running = 0
        var waiting: [(load: Int, rank: LoadPriority)] = []

        mutating func next() -> Int? {
            guard running < limit, let best = waiting.map(\.rank).max() else { return nil }
            let equals = waiting.indices.filter { waiting[$0].rank == best }
            guard let place = order == .firstInFirstOut ? equals.first : equals.last else { return nil }
            running += 1
            return waiting.remove(at: place).load
        }

        mutating func move(_ load: Int, to rank: LoadPriority) {
            guard let place = waiting.firstIndex(where: { $0.load == load }), waiting[place].rank != rank else {
                return
            }
            waiting.append((waiting.remove(at: place).load, rank))
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func theQueueMatchesALinearSearch(seed: UInt64) {
        var random = SplitMix(state: seed)
        let order: ImagePipeline.Order = seed % 2 == 0 ? .firstInFirstOut : .lastInFirstOut
        let limit = Int(seed % 4) + 1
        var queue = StageQueue(limit: limit, order: order)
        var model = Model(limit: limit, order: order)
        // The places of the loads that wait, by number, and that of the last load that no longer waits.
        var left: QueuePlace?
        var places: [Int: QueuePlace] = [:]
        func number(_ waiter: Waiter<Bool>?) -> Int? {
            waiter.flatMap { waiter in places.first { $0.value.waiter === waiter }?.key }
        }
        func rank() -> LoadPriority {
            LoadPriority(.allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
        }
        for load in 0..<2_000 {
            let known = model.waiting.randomElement(using: &random)?.load ?? -1
            switch Int.random(in: 0..<6, using: &random) {
            case 0...1:
                let rank = rank()
                places[load] = queue.enter(rank)
                let mayBegin = places[load] == nil
                #expect(mayBegin == (model.running < limit && model.waiting.isEmpty))
                if mayBegin { model.running += 1 } else { model.waiting.append((load, rank)) }
            case 2 where model.running > 0:
                queue.leave()
                model.running -= 1
                while let next = model.next() {
                    #expect(number(queue.next()) == next)
                    left = places.removeValue(forKey: next)
                }
                #expect(queue.next() == nil)
            case 3:
                guard let place = places[known] ?? left else { break }
                #expect(queue.remove(place) == (known >= 0))
                left = places.removeValue(forKey: known) ?? left
                model.waiting.removeAll { $0.load == known }
            case 4:
                let rank = rank()
                if let place = places[known] ?? left { queue.move(place, to: rank) }
                model.move(known, to: rank)
            case 5:
                let rank = rank()
                places[load] = queue.append(rank)
                model.waiting.append((load, rank))
            default: break
            }
            #expect(queue.waiting == model.waiting.count)
            #expect(queue.running == model.running)
            #expect(queue.hasNext == (model.running < limit && !model.waiting.isEmpty))
        }
    }

    @Test func removingFromALongQueueIsFast() throws {
        var queue = StageQueue(limit: 1, order: .firstInFirstOut)
        let places = (0..<100_000).map { _ in queue.enter(LoadPriority(.normal, isVisible: false)) }
        let clock = ContinuousClock()
        let times = try (0..<1_000).map { index in
            let place = try #require(places[99_999 - index * 97])
            return clock.measure { #expect(queue.remove(place) == true) }
        }
        // A linear search would take longer. The median ignores single disturbed measurements.
        #expect(times.sorted()[500] < .milliseconds(1))
        #expect(queue.waiting == 99_999 - 1_000)
    }

    @Test func aPlaceThatEndedDoesNotAffectItsSuccessor() throws {
        var queue = StageQueue(limit: 1, order: .firstInFirstOut)
        #expect(queue.enter(.lowest) == nil)
        let first = queue.enter(.lowest)
        let ended = try #require(first)
        #expect(queue.remove(ended) == true)
        // Takes the memory of the place that ended.
        let second = queue.enter(.lowest)
        let successor = try #require(second)
        #expect(queue.remove(ended) == false)
        queue.move(ended, to: LoadPriority(.high, isVisible: true))
        #expect(queue.waiting == 1)
        #expect(queue.remove(successor) == true)
    }

    @Test func limitBelowOneCountsAsOne() {
        var queue = StageQueue(limit: 0, order: .firstInFirstOut)
        #expect(queue.enter(.lowest) == nil)
        #expect(queue.enter(.lowest) != nil)
    }
}
