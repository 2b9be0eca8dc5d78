import Tern
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
        func rank() -> LoadPriority {
            LoadPriority(.allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
        }
        for load in 0..<2_000 {
            let known = model.waiting.randomElement(using: &random)?.load ?? -1
            switch Int.random(in: 0..<6, using: &random) {
            case 0...1:
                let rank = rank()
                let mayBegin = queue.enter(load, rank)
                #expect(mayBegin == (model.running < limit && model.waiting.isEmpty))
                if mayBegin { model.running += 1 } else { model.waiting.append((load, rank)) }
            case 2 where model.running > 0:
                queue.leave()
                model.running -= 1
                while let next = model.next() { #expect(queue.next() == next) }
                #expect(queue.next() == nil)
            case 3:
                #expect(queue.remove(known) == (known >= 0))
                model.waiting.removeAll { $0.load == known }
            case 4:
                let rank = rank()
                queue.move(known, to: rank)
                model.move(known, to: rank)
            case 5:
                let rank = rank()
                queue.append(load, rank)
                model.waiting.append((load, rank))
            default: break
            }
            #expect(queue.waiting == model.waiting.count)
            #expect(queue.running == model.running)
            #expect(queue.hasNext == (model.running < limit && !model.waiting.isEmpty))
        }
    }

    @Test func removingFromALongQueueIsFast() {
        var queue = StageQueue(limit: 1, order: .firstInFirstOut)
        for load in 0..<100_000 { _ = queue.enter(load, LoadPriority(.normal, isVisible: false)) }
        let clock = ContinuousClock()
        let times = (0..<1_000).map { index in
            clock.measure { #expect(queue.remove(99_999 - index * 97) == true) }
        }
        // A linear search would take longer. The median ignores single disturbed measurements.
        #expect(times.sorted()[500] < .milliseconds(1))
        #expect(queue.waiting == 99_999 - 1_000)
    }

    @Test func limitBelowOneCountsAsOne() {
        var queue = StageQueue(limit: 0, order: .firstInFirstOut)
        #expect(queue.enter(1, .lowest) == true)
        #expect(queue.enter(2, .lowest) == false)
    }
}
