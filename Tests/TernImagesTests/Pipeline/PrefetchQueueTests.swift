import Testing

@testable import TernImages

@Suite struct PrefetchQueueTests {
    private func items(_ batch: UInt64, _ indices: ClosedRange<Int>) -> [PrefetchQueue.Item] {
        indices.map { PrefetchQueue.Item(batch: batch, index: $0) }
    }

    @Test func theLimitHoldsAndTheRestFollowsInOrder() {
        var queue = PrefetchQueue(limit: 2)
        #expect(queue.add(batch: 1, count: 3) == items(1, 0...1))
        #expect(queue.add(batch: 2, count: 2).isEmpty)
        #expect(queue.ended(.init(batch: 1, index: 0)) == items(1, 2...2))
        #expect(queue.ended(.init(batch: 1, index: 1)) == items(2, 0...0))
        #expect(queue.waitingCount == 1)
    }

    @Test func aPauseBeginsNothingAndStopsNothing() {
        var queue = PrefetchQueue(limit: 2)
        _ = queue.add(batch: 1, count: 3)
        queue.pause()
        #expect(queue.ended(.init(batch: 1, index: 0)).isEmpty)
        #expect(queue.running == Set(items(1, 1...1)))
        #expect(queue.resume() == items(1, 2...2))
    }

    @Test func aCancelledBatchMakesRoomForTheOthers() {
        var queue = PrefetchQueue(limit: 2)
        _ = queue.add(batch: 1, count: 3)
        _ = queue.add(batch: 2, count: 3)
        let (stop, begin) = queue.cancel(batch: 1)
        #expect(Set(stop) == Set(items(1, 0...1)))
        #expect(begin == items(2, 0...1))
        #expect(queue.waitingCount == 1)
    }
}
