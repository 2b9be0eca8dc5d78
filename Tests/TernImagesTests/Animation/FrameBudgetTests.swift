import Testing

@testable import TernImages

private func frame(_ bytes: Int) throws -> ImageFrame {
    let size = PixelSize(width: bytes / 4, height: 1)
    let image = try #require(RasterImage(size: size, premultiplied: Array(repeating: 0, count: bytes)))
    return ImageFrame(image: image, duration: .milliseconds(10))
}

private func key(_ index: Int, _ store: Int = 1) -> FrameLedger.Key { FrameLedger.Key(store: store, index: index) }

@Suite struct FrameLedgerTests {
    @Test func theLeastRecentlyNeededLeaveFirst() throws {
        var ledger = FrameLedger(limit: 300)
        for index in 0..<3 { #expect(ledger.keep(try frame(100), key(index)).isEmpty) }
        ledger.need(key(0))
        #expect(ledger.keep(try frame(100), key(3)).count == 1)
        #expect([0, 1, 2, 3].map { ledger.holds(key($0)) } == [true, false, true, true])
        #expect(ledger.keep(try frame(200), key(4, 2)).count == 2)
        #expect([0, 2, 3].map { ledger.holds(key($0)) } == [false, false, true])
        #expect(ledger.used == 300)
        #expect(ledger.peak == 300)
    }

    @Test func whatIsLargerThanAllIsNotKept() throws {
        var ledger = FrameLedger(limit: 300)
        _ = ledger.keep(try frame(100), key(0))
        #expect(ledger.keep(try frame(304), key(1)).isEmpty)
        #expect(ledger.holds(key(0)))
        #expect(!ledger.holds(key(1)))
    }

    @Test func aSmallerLimitTakesEffectAtOnce() throws {
        var ledger = FrameLedger(limit: 1_000)
        for index in 0..<10 { _ = ledger.keep(try frame(100), key(index, index % 2)) }
        #expect(ledger.setLimit(350).count == 7)
        #expect(ledger.used == 300)
        #expect(ledger.removeAll(of: 1).count == 2)
        #expect(ledger.used == 100)
        #expect(ledger.makeRoom(0).count == 1)
        #expect(ledger.used == 0)
    }

    /// Against a plain list of keys in the order of need.
    @Test func aHundredThousandTurnsAgreeWithAList() throws {
        var ledger = FrameLedger(limit: 800)
        let picture = try frame(40)
        var (list, state): ([Int], UInt64) = ([], 3)
        for _ in 0..<100_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let index = Int(state >> 33) % 40
            if let place = list.firstIndex(of: index) {
                ledger.need(key(index))
                list.append(list.remove(at: place))
            } else {
                _ = ledger.keep(picture, key(index))
                list.append(index)
                if list.count > 20 { list.removeFirst() }
            }
        }
        #expect((0..<40).filter { ledger.holds(key($0)) } == list.sorted())
        #expect(ledger.used == list.count * 40)
    }
}

@Suite struct FrameBudgetTests {
    @Test func theDefaultIsAFifthOfTheMemoryOrThreeFifthsOfWhatIsFree() {
        #expect(FrameBudget.defaultLimit(memory: 10_000, available: 9_000) == 2_000)
        #expect(FrameBudget.defaultLimit(memory: 10_000, available: 1_000) == 600)
        #expect(FrameBudget.defaultLimit(memory: nil, available: 1_000) == 600)
        #expect(FrameBudget.defaultLimit(memory: nil, available: nil) == 64 << 20)
        #expect(FrameBudget.available(inMemoryInfo: "MemFree: 7 kB\nMemAvailable:   12 kB\n") == 12_288)
        #expect(FrameBudget.available(inMemoryInfo: "nothing") == nil)
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
        for index in 0..<5 { _ = budget.keep(try frame(100), index, of: store) }
        #expect(budget.missing([4, 7, 0], of: store) == [7])
        budget.trim(to: 200)
        #expect(budget.missing([0, 1, 2, 3, 4], of: store) == [1, 2, 3])
        budget.limit = 100
        #expect(budget.used == 100)
        budget.removeAll(of: store)
        #expect(budget.used == 0)
    }
}

@Suite struct FrameDemandsTests {
    private typealias Window = FrameDemands.Window

    @Test func whatIsWaitedForComesFirst() {
        var demands = FrameDemands()
        let (one, two) = (demands.join(), demands.join())
        demands.set(Window(indices: [4, 5]), length: 2, of: one)
        demands.set(Window(indices: [9, 10]), length: 2, of: two)
        #expect(demands.next { _ in false } == 4)
        #expect(demands.next { $0 == 9 } == 9)
        demands.settle(9)
        demands.settle(4)
        #expect(demands.next { _ in false } == 5)
        demands.leave(one)
        #expect(demands.next { _ in false } == 10)
        demands.settle(10)
        #expect(demands.next { _ in false } == nil)
        #expect(demands.isEmpty)
    }

    @Test func backwardsManyAreDecodedInOneGo() {
        var demands = FrameDemands()
        let reader = demands.join()
        demands.set(Window(indices: [9, 8, 7, 6], isBackwards: true), length: 4, of: reader)
        var order: [Int] = []
        while let index = demands.next(waited: { $0 == 9 }) {
            order.append(index)
            demands.settle(index)
        }
        #expect(order == [6, 7, 8, 9])
        // One of four is missing: not yet. Two: now.
        demands.set(Window(indices: [5], isBackwards: true), length: 4, of: reader)
        #expect(demands.next { _ in false } == nil)
        demands.set(Window(indices: [5, 4], isBackwards: true), length: 4, of: reader)
        #expect(demands.next { _ in false } == 4)
    }
}
