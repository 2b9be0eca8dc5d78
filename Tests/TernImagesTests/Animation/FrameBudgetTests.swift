import Testing

@testable import TernCache
@testable import TernImages

private func frame(_ bytes: Int) throws -> ImageFrame {
    let size = PixelSize(width: bytes / 4, height: 1)
    let image = try #require(RasterImage(size: size, premultiplied: Array(repeating: 0, count: bytes)))
    return ImageFrame(image: image, duration: .milliseconds(10))
}

private func key(_ index: Int, _ store: Int = 1) -> FrameCache.Key { FrameCache.Key(store: store, index: index) }

@Suite struct FrameCacheTests {
    @Test func theLeastRecentlyNeededLeaveFirst() throws {
        var cache = FrameCache(limit: 300)
        for index in 0..<3 { #expect(cache.insert(try frame(100), for: key(index)).isEmpty) }
        cache.markNeeded(key(0))
        #expect(cache.insert(try frame(100), for: key(3)).count == 1)
        #expect([0, 1, 2, 3].map { cache.holds(key($0)) } == [true, false, true, true])
        #expect(cache.insert(try frame(200), for: key(4, 2)).count == 2)
        #expect([0, 2, 3].map { cache.holds(key($0)) } == [false, false, true])
        #expect(cache.used == 300)
        #expect(cache.peak == 300)
    }

    @Test func aFrameLargerThanTheLimitIsNotKept() throws {
        var cache = FrameCache(limit: 300)
        _ = cache.insert(try frame(100), for: key(0))
        #expect(cache.insert(try frame(304), for: key(1)).isEmpty)
        #expect(cache.holds(key(0)))
        #expect(!cache.holds(key(1)))
    }

    @Test func aSmallerLimitTakesEffectAtOnce() throws {
        var cache = FrameCache(limit: 1_000)
        for index in 0..<10 { _ = cache.insert(try frame(100), for: key(index, index % 2)) }
        #expect(cache.setLimit(350).count == 7)
        #expect(cache.used == 300)
        #expect(cache.removeAll(of: 1).count == 2)
        #expect(cache.used == 100)
        #expect(cache.makeRoom(0).count == 1)
        #expect(cache.used == 0)
    }

    /// Compares the cache with a list of keys in the order of need.
    @Test func theFrameCacheMatchesAList() throws {
        var cache = FrameCache(limit: 800)
        let picture = try frame(40)
        var (list, state): ([Int], UInt64) = ([], 3)
        for _ in 0..<100_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let index = Int(state >> 33) % 40
            if let place = list.firstIndex(of: index) {
                cache.markNeeded(key(index))
                list.append(list.remove(at: place))
            } else {
                _ = cache.insert(picture, for: key(index))
                list.append(index)
                if list.count > 20 { list.removeFirst() }
            }
        }
        #expect((0..<40).filter { cache.holds(key($0)) } == list.sorted())
        #expect(cache.used == list.count * 40)
    }
}

@Suite struct FrameBudgetTests {
    @Test func theDefaultIsAFifthOfTheMemoryOrThreeFifthsOfWhatIsFree() {
        #expect(FrameBudget.defaultLimit(memory: 10_000, available: 9_000) == 2_000)
        #expect(FrameBudget.defaultLimit(memory: 10_000, available: 1_000) == 600)
        #expect(FrameBudget.defaultLimit(memory: nil, available: 1_000) == 600)
        #expect(FrameBudget.defaultLimit(memory: nil, available: nil) == 64 << 20)
        #expect(MemoryInfo("MemFree: 7 kB\nMemAvailable:   12 kB\n").available == 12_288)
        #expect(MemoryInfo("nothing").available == nil)
        #expect(FrameBudget().limit > 0)
    }

    @Test func sharesAreEqualAndNeverNone() {
        let budget = FrameBudget(limit: 1_000)
        #expect(budget.share(ofFrames: 100) == 10)
        for _ in 0..<4 { budget.addReader() }
        #expect(budget.share(ofFrames: 100) == 2)
        #expect(budget.share(ofFrames: 5_000) == 1)
        budget.removeReader()
        #expect(budget.share(ofFrames: 100) == 3)
    }

    @Test func trimmingLetsFramesGo() throws {
        let budget = FrameBudget(limit: 1_000)
        let store = budget.makeStore()
        for index in 0..<5 { _ = budget.insert(try frame(100), at: index, of: store) }
        #expect(budget.missing([4, 7, 0], of: store) == [7])
        budget.trim(to: 200)
        #expect(budget.missing([0, 1, 2, 3, 4], of: store) == [1, 2, 3])
        budget.limit = 100
        #expect(budget.used == 100)
        budget.removeAll(of: store)
        #expect(budget.used == 0)
    }
}

@Suite struct FrameDecodingQueueTests {
    private typealias Window = FrameDecodingQueue.Window

    @Test func awaitedFramesComeFirst() {
        var queue = FrameDecodingQueue()
        let (one, two) = (queue.join(), queue.join())
        queue.set(Window(indices: [4, 5]), length: 2, of: one)
        queue.set(Window(indices: [9, 10]), length: 2, of: two)
        #expect(queue.next { _ in false } == 4)
        #expect(queue.next { $0 == 9 } == 9)
        queue.remove(9)
        queue.remove(4)
        #expect(queue.next { _ in false } == 5)
        queue.leave(one)
        #expect(queue.next { _ in false } == 10)
        queue.remove(10)
        #expect(queue.next { _ in false } == nil)
        #expect(queue.isEmpty)
    }

    @Test func backwardsManyAreDecodedInOneGo() {
        var queue = FrameDecodingQueue()
        let reader = queue.join()
        queue.set(Window(indices: [9, 8, 7, 6], isBackwards: true), length: 4, of: reader)
        var order: [Int] = []
        while let index = queue.next(waited: { $0 == 9 }) {
            order.append(index)
            queue.remove(index)
        }
        #expect(order == [6, 7, 8, 9])
        // One missing frame of four is not enough; two are.
        queue.set(Window(indices: [5], isBackwards: true), length: 4, of: reader)
        #expect(queue.next { _ in false } == nil)
        queue.set(Window(indices: [5, 4], isBackwards: true), length: 4, of: reader)
        #expect(queue.next { _ in false } == 4)
    }
}
