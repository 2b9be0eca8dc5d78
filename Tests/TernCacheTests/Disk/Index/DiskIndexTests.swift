import Testing

@testable import DiskCrashChild
@testable import TernCache

struct DiskIndexTests {
    private func location(_ id: Int64, file: Int = 0, expires: Int64 = .max) -> DiskIndex.Location {
        DiskIndex.Location(id: id, size: 1, trailer: file > 0 ? 80 : 0, allocated: max(file, 100), expires: expires)
    }

    @Test func victimsAreTheLeastRecentlyUsed() {
        var index = DiskIndex()
        for id in 1...5 { index.insert(UInt64(id), location(Int64(id), file: 4_096)) }
        index.reserveNumbers(upTo: 5)
        #expect(index.use(2, now: 0)?.id == 2)
        #expect(index.use(1, now: 0)?.id == 1)
        #expect(index.order == [3, 4, 5, 2, 1])
        #expect(index.victims(bytes: 5_000, count: 0, limit: 9).map(\.hash) == [3, 4])
        #expect(index.victims(bytes: 0, count: 3, limit: 9).map(\.hash) == [3, 4, 5])
        #expect(index.victims(bytes: .max, count: 0, limit: 4).count == 4)
        #expect(index.takeUnsavedUses().map(\.id).sorted() == [1, 2])
        #expect(index.takeUnsavedUses().isEmpty)
        #expect(index.fileBytes == 5 * 4_096)
        index.remove(4)
        index.remove(4)
        #expect(index.fileBytes == 4 * 4_096)
        #expect(index.order == [3, 5, 2, 1])
    }

    @Test func aRemovedEntryLeavesNoRank() {
        var index = DiskIndex()
        for id in 1...3 { index.insert(UInt64(id), location(Int64(id))) }
        index.reserveNumbers(upTo: 3)
        _ = index.use(1, now: 0)
        index.remove(1)
        index.insert(9, location(9))
        #expect(index.takeUnsavedUses().isEmpty)
        _ = index.use(2, now: 0)
        _ = index.use(9, now: 0)
        #expect(Set(index.takeUnsavedUses().map(\.id)) == [2, 9])
    }

    @Test func onlyCurrentExpiredEntriesAreSwept() {
        var index = DiskIndex()
        for id in 1...100 { index.insert(UInt64(id), location(Int64(id), expires: Int64(id))) }
        index.insert(3, location(200, expires: 500))
        index.remove(4)
        #expect(index.find(10, now: 10) == nil)
        #expect(index.find(10, now: 9) != nil)
        #expect(index.expired(now: 7, limit: 10).map(\.hash).sorted() == [1, 2, 5, 6, 7])
        for id in 1...1_000 { index.insert(50, location(Int64(1_000 + id), expires: 1_000)) }
        #expect(index.count == 99)
    }

    @Test func allThatTheCacheWritesIsValid() {
        // An empty value in the index and in a file, and a file with the longest trailer on a file system that
        // compresses it.
        for (size, trailer) in [(0, 0), (0, 72), (1 << 40, DiskTrailer.maximumCount)] {
            let location = DiskIndex.Location(id: 1, size: size, trailer: trailer, allocated: 0, expires: .min)
            #expect(location.problem == nil)
        }
        for (size, trailer) in [(-1, 0), (0, 71), (0, DiskTrailer.maximumCount + 1)] {
            let location = DiskIndex.Location(id: 1, size: size, trailer: trailer, allocated: 0, expires: .max)
            #expect(location.problem != nil)
        }
    }

    /// Compares the index with a list in the order of use.
    @Test(arguments: 1...5)
    func theIndexKeepsTheOrderOfUse(seed: Int) {
        var random = Random(state: UInt64(seed))
        var index = DiskIndex()
        var oracle: [UInt64] = []
        for _ in 0..<2_000 {
            let hash = UInt64(random.below(40))
            switch random.below(3) {
            case 0:
                index.insert(hash, location(index.nextNumber()))
                oracle.removeAll { $0 == hash }
                oracle.append(hash)
            case 1:
                #expect((index.use(hash, now: 0) != nil) == oracle.contains(hash))
                if oracle.contains(hash) {
                    oracle.removeAll { $0 == hash }
                    oracle.append(hash)
                }
            default:
                index.remove(hash)
                oracle.removeAll { $0 == hash }
            }
        }
        #expect(index.order == oracle)
    }
}
