import Tern
import Testing

@testable import TernImages

@Suite struct StageQueueTests {
    private typealias Queue = StageQueue<Int>

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
        var queue = Queue(limit: limit, order: order)
        var model = Model(limit: limit, order: order)
        // The places of the loads that wait, by number, and that of the last load that no longer waits.
        var left: QueuePlace?
        var places: [Int: QueuePlace] = [:]
        func rank() -> LoadPriority {
            LoadPriority(.allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
        }
        for load in 0..<2_000 {
            let known = model.waiting.randomElement(using: &random)?.load ?? -1
            switch Int.random(in: 0..<6, using: &random) {
            case 0...1:
                let rank = rank()
                let mayBegin = queue.takeSlot()
                if !mayBegin { places[load] = queue.append(load, rank) }
                #expect(mayBegin == (model.running < limit && model.waiting.isEmpty))
                if mayBegin { model.running += 1 } else { model.waiting.append((load, rank)) }
            case 2 where model.running > 0:
                queue.leave()
                model.running -= 1
                while let next = model.next() {
                    #expect(queue.next() == next)
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
                places[load] = queue.append(load, rank)
                model.waiting.append((load, rank))
            default: break
            }
            #expect(queue.waiting == model.waiting.count)
            #expect(queue.running == model.running)
            #expect(queue.hasNext == (model.running < limit && !model.waiting.isEmpty))
        }
    }

    @Test func removingFromALongQueueIsFast() {
        var queue = Queue(limit: 1, order: .firstInFirstOut)
        let places = (0..<100_000).map { queue.append($0, LoadPriority(.normal, isVisible: false)) }
        let clock = ContinuousClock()
        let times = (0..<1_000).map { index in
            clock.measure { #expect(queue.remove(places[99_999 - index * 97]) == true) }
        }
        // A linear search would take longer. The median ignores single disturbed measurements.
        #expect(times.sorted()[500] < .milliseconds(1))
        #expect(queue.waiting == 100_000 - 1_000)
    }

    @Test func aPlaceThatEndedDoesNotAffectItsSuccessor() {
        var queue = Queue(limit: 1, order: .firstInFirstOut)
        #expect(queue.takeSlot() == true)
        let ended = queue.append(1, .lowest)
        #expect(queue.remove(ended) == true)
        // Takes the memory of the place that ended.
        let successor = queue.append(2, .lowest)
        #expect(queue.remove(ended) == false)
        queue.move(ended, to: LoadPriority(.high, isVisible: true))
        #expect(queue.waiting == 1)
        #expect(queue.remove(successor) == true)
    }

    @Test func limitBelowOneCountsAsOne() {
        var queue = Queue(limit: 0, order: .firstInFirstOut)
        #expect(queue.takeSlot() == true)
        #expect(queue.takeSlot() == false)
    }
}
