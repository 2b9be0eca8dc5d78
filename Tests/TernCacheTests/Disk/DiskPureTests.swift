import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

struct DiskChecksumTests {
    /// Vectors of the xxHash specification and its reference implementation.
    @Test func knownVectorsAreMet() {
        #expect(DiskChecksum.of(Data()) == 0xEF46_DB37_51D8_E999)
        #expect(DiskChecksum.of(Data("a".utf8)) == 0xD24E_C4F1_A98C_6E5B)
        #expect(DiskChecksum.of(Data("abc".utf8)) == 0x44BC_2CF5_AD77_0999)
    }

    @Test func piecesGiveTheSameAsTheWhole() {
        for count in [0, 1, 31, 32, 33, 63, 64, 100, 1_000] {
            let data = bytes(count)
            for piece in [1, 7, 32, 45] {
                var checksum = DiskChecksum()
                for start in stride(from: 0, to: count, by: piece) {
                    checksum.update(Data(data[start..<min(start + piece, count)]))
                }
                #expect(checksum.value == DiskChecksum.of(data))
            }
        }
    }
}

struct DiskTrailerTests {
    private let trailer = DiskTrailer(
        checksum: 7, size: 9, created: -5, expires: .max, key: Data("key".utf8), metadata: bytes(300),
        tags: ["", "tag", "\u{E9}"])

    @Test func whatIsEncodedIsDecoded() {
        let bytes = trailer.encoded()
        #expect(DiskTrailer(bytes) == trailer)
        #expect(DiskTrailer.count(footer: bytes.suffix(16)) == bytes.count)
        #expect(DiskTrailer(bytes.dropFirst(0) + Data()) == trailer)
    }

    @Test func anyChangedByteIsSeen() {
        let bytes = trailer.encoded()
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x10
            #expect(DiskTrailer(damaged) == nil, "byte \(index)")
        }
        for count in 0..<bytes.count { #expect(DiskTrailer(bytes.prefix(count)) == nil) }
    }
}

struct DiskIndexTests {
    private func location(_ id: Int64, file: Int = 0, expires: Int64 = .max) -> DiskIndex.Location {
        DiskIndex.Location(id: id, size: 1, trailer: file > 0 ? 80 : 0, allocated: max(file, 100), expires: expires)
    }

    @Test func victimsAreTheLeastRecentlyUsed() {
        var index = DiskIndex()
        for id in 1...5 { index.insert(UInt64(id), location(Int64(id), file: 4_096)) }
        index.advanceSequence(past: 5)
        #expect(index.use(2, now: 0)?.id == 2)
        #expect(index.use(1, now: 0)?.id == 1)
        #expect(index.order == [3, 4, 5, 2, 1])
        #expect(index.victims(bytes: 5_000, count: 0, limit: 9).map(\.hash) == [3, 4])
        #expect(index.victims(bytes: 0, count: 3, limit: 9).map(\.hash) == [3, 4, 5])
        #expect(index.victims(bytes: .max, count: 0, limit: 4).count == 4)
        #expect(index.takeTouched().map(\.id).sorted() == [1, 2])
        #expect(index.takeTouched().isEmpty)
        #expect(index.fileBytes == 5 * 4_096)
        index.remove(4)
        index.remove(4)
        #expect(index.fileBytes == 4 * 4_096)
        #expect(index.order == [3, 5, 2, 1])
    }

    @Test func aRemovedEntryLeavesNoRank() {
        var index = DiskIndex()
        for id in 1...3 { index.insert(UInt64(id), location(Int64(id))) }
        index.advanceSequence(past: 3)
        _ = index.use(1, now: 0)
        index.remove(1)
        index.insert(9, location(9))
        #expect(index.takeTouched().isEmpty)
        _ = index.use(2, now: 0)
        _ = index.use(9, now: 0)
        #expect(Set(index.takeTouched().map(\.id)) == [2, 9])
    }

    @Test func onlyWhatExpiredAndIsStillThereIsSwept() {
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

    /// Against a list in the order of use.
    @Test(arguments: 1...5)
    func itIsAListInTheOrderOfUse(seed: Int) {
        var random = Random(state: UInt64(seed))
        var index = DiskIndex()
        var oracle: [UInt64] = []
        for _ in 0..<2_000 {
            let hash = UInt64(random.below(40))
            switch random.below(3) {
            case 0:
                index.insert(hash, location(index.drawSequence()))
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

struct DiskMailboxTests {
    private func item(_ hash: UInt64, size: Int = 100) -> DiskItem {
        DiskItem(
            key: DiskKey(bytes: Data(), hash: hash), content: .bytes(Data(count: size)), size: size, checksum: 0,
            metadata: Data(), tags: [], created: 0, expires: .max)
    }

    private func taken(_ mailbox: inout DiskMailbox, limit: Int = 1 << 20) -> [Int] {
        switch mailbox.take(limit: limit) {
        case .commit(let letters): letters.map(\.sequence)
        case .perform(let letter): [-letter.sequence]
        case .idle: []
        }
    }

    @Test func whatWaitsSharesATransactionUntilAKeyComesAgain() {
        var mailbox = DiskMailbox()
        #expect(mailbox.push(.insert([item(1)])) { _ in }.mustWake)
        #expect(!mailbox.push(.insert([item(2), item(3)])) { _ in }.mustWake)
        _ = mailbox.push(.remove(DiskKey(bytes: Data(), hash: 4))) { _ in }
        _ = mailbox.push(.insert([item(2)])) { _ in }
        _ = mailbox.push(.removeAll) { _ in }
        _ = mailbox.push(.insert([item(5)])) { _ in }
        #expect(taken(&mailbox) == [1, 2, 3])
        #expect(taken(&mailbox) == [4])
        #expect(taken(&mailbox) == [-5])
        #expect(taken(&mailbox) == [6])
        #expect(taken(&mailbox).isEmpty)
        mailbox.sleep()
        #expect(mailbox.push(.flush) { _ in }.mustWake)
    }

    @Test func aTransactionIsBoundedButNeverEmpty() {
        var mailbox = DiskMailbox()
        for hash in 0..<10 { _ = mailbox.push(.insert([item(UInt64(hash), size: 10_000)])) { _ in } }
        #expect(taken(&mailbox, limit: 65_000) == [1, 2, 3])
        #expect(taken(&mailbox, limit: 1) == [4])
    }
}

struct DiskBudgetTests {
    private var budget: DiskBudget {
        var configuration = DiskCache.Configuration()
        configuration.byteLimit = 16 << 20
        configuration.countLimit = 100
        configuration.minimumFreeBytes = 10 << 20
        return DiskBudget(configuration)
    }

    @Test func theNextStepFollowsFromWhatIsUsed() {
        typealias Usage = DiskBudget.Usage
        let need = DiskBudget.Need(fileBytes: 1 << 20, count: 1)
        #expect(budget.logLimit == 2 << 20)
        #expect(budget.action(Usage(files: 12 << 20, count: 5), need) == .fits)
        #expect(budget.action(Usage(files: 13 << 20, count: 5), need) == .fits)
        #expect(budget.action(Usage(files: 14 << 20, count: 5), need) == .evict(bytes: 1 << 20, count: 0))
        #expect(budget.action(Usage(files: 14 << 20, setAside: 1, count: 5), need) == .dropSetAside)
        #expect(budget.action(Usage(files: 14 << 20, trash: 1, count: 5), need) == .emptyTrash)
        #expect(budget.action(Usage(databasePages: 896, freePages: 800, count: 5), need) == .shrink)
        #expect(budget.action(Usage(databasePages: 896, freePages: 3, count: 0), need) == .shrink)
        #expect(budget.action(Usage(databasePages: 896, count: 0), need) == .refuse(isDiskFull: false))
        #expect(budget.action(Usage(count: 100), need) == .evict(bytes: 0, count: 1))
        #expect(budget.action(Usage(count: 5, diskFree: 11 << 20), need) == .fits)
        #expect(budget.action(Usage(count: 5, diskFree: 10 << 20), need) == .evict(bytes: 1 << 20, count: 0))
        #expect(budget.action(Usage(count: 0, diskFree: 10 << 20), need) == .refuse(isDiskFull: true))
    }
}

struct DiskSchemaTests {
    @Test func whatToDoWithAnIndexFollowsFromItsMarks() {
        let ours = DiskSchema.application
        #expect(DiskSchema.action(application: 0, version: 0, noted: nil, isEmpty: true) == .migrate(from: 0))
        #expect(DiskSchema.action(application: 0, version: 0, noted: nil, isEmpty: false) == .setAside)
        #expect(DiskSchema.action(application: 5, version: 1, noted: nil, isEmpty: false) == .setAside)
        #expect(DiskSchema.action(application: ours, version: 1, noted: nil, isEmpty: false) == .migrate(from: 1))
        #expect(DiskSchema.action(application: ours, version: 2, noted: nil, isEmpty: false) == .use)
        #expect(DiskSchema.action(application: ours, version: 2, noted: 2, isEmpty: false) == .use)
        #expect(DiskSchema.action(application: ours, version: 3, noted: 3, isEmpty: false) == .refuse(version: 3))
        // Damaged in one place or the other.
        for noted in [nil, 2, 4] {
            #expect(DiskSchema.action(application: ours, version: 3, noted: noted, isEmpty: false) == .setAside)
        }
        #expect(DiskSchema.action(application: ours, version: 1, noted: 2, isEmpty: false) == .setAside)
    }
}
