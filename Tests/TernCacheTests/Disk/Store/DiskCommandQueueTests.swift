import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

struct DiskCommandQueueTests {
    private func item(_ hash: UInt64, size: Int = 100) -> DiskItem {
        DiskItem(
            key: DiskKey(bytes: Data(), hash: hash), content: .bytes(Data(count: size)), size: size, checksum: 0,
            metadata: Data(), tags: [], created: 0, expires: .max)
    }

    private func taken(_ queue: inout DiskCommandQueue, limit: Int = 1 << 20) -> [Int] {
        switch queue.take(limit: limit) {
        case .commit(let commands): commands.map(\.sequence)
        case .perform(let command): [-command.sequence]
        case .idle: []
        }
    }

    @Test func commandsShareATransactionUntilAKeyRepeats() {
        var queue = DiskCommandQueue()
        #expect(queue.push(.insert([item(1)])) { _ in }.mustWake)
        #expect(!queue.push(.insert([item(2), item(3)])) { _ in }.mustWake)
        _ = queue.push(.remove(DiskKey(bytes: Data(), hash: 4))) { _ in }
        _ = queue.push(.insert([item(2)])) { _ in }
        _ = queue.push(.removeAll) { _ in }
        _ = queue.push(.insert([item(5)])) { _ in }
        #expect(taken(&queue) == [1, 2, 3])
        #expect(taken(&queue) == [4])
        #expect(taken(&queue) == [-5])
        #expect(taken(&queue) == [6])
        #expect(taken(&queue).isEmpty)
        queue.sleep()
        #expect(queue.push(.flush) { _ in }.mustWake)
    }

    @Test func aTransactionIsBoundedButNeverEmpty() {
        var queue = DiskCommandQueue()
        for hash in 0..<10 { _ = queue.push(.insert([item(UInt64(hash), size: 10_000)])) { _ in } }
        #expect(taken(&queue, limit: 65_000) == [1, 2, 3])
        #expect(taken(&queue, limit: 1) == [4])
    }
}
