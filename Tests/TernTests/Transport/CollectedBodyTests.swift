#if os(Linux)
import Foundation
import Testing

@testable import Tern

@Suite struct CollectedBodyTests {
    /// Adds bytes as a connection does that copies them. Returns whether there was memory.
    private func collect(_ bytes: Data, into body: inout CollectedBody) -> Bool {
        body.count(bytes.count)
        return unsafe bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return false }
            return unsafe body.collect(start, bytes.count, limit: 50_000)
        }
    }

    /// Writes bytes into the memory as a connection does that reads in place. Returns the size of the memory.
    private func fill(_ body: inout CollectedBody, with bytes: Data) -> Int? {
        guard let room = unsafe body.roomToCollect(limit: 50_000) else { return nil }
        unsafe room.copyBytes(from: bytes.prefix(room.count))
        body.filled(bytes.count)
        return room.count
    }

    /// The size of the memory for the rest of a chunk.
    private func roomOfChunk(_ body: inout CollectedBody) -> Int { unsafe body.roomToGather()?.count ?? 0 }

    @Test func aBodyIsCollectedInPlaceBehindItsBeginning() throws {
        var body = CollectedBody()
        body.expected = 40_000
        let start = Data("start".utf8)
        let hasRoom = collect(start, into: &body)
        #expect(hasRoom)
        let rest = Data((0..<39_995).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let room = try #require(fill(&body, with: rest))
        #expect(room >= rest.count)
        #expect(body.received == 40_000)
        let whole = body.take()
        #expect(whole == start + rest)
    }

    @Test(arguments: [nil, 16 << 10, 50_001])
    func aBodyThatIsSmallOrTooLargeOrOfUnknownLengthIsNotCollectedInPlace(expected: Int64?) {
        var body = CollectedBody()
        body.expected = expected
        let room = fill(&body, with: Data())
        #expect(room == nil)
    }

    @Test func memoryThatNoBytesCameForIsGivenBack() {
        var body = CollectedBody()
        let size = roomOfChunk(&body)
        let isHeld = unsafe body.slab.rest != nil
        #expect(size > 0 && isHeld)
        body.filled(0)
        let isHeldStill = unsafe body.slab.rest != nil
        #expect(!isHeldStill && body.received == 0)
    }

    /// A server that sends a few bytes at a time fills no memory with blocks.
    @Test(arguments: [(15, false), (64 << 10, true), (256 << 10, true)])
    func fewBytesDoNotKeepALargeBlock(count: Int, keepsBlock: Bool) throws {
        var body = CollectedBody()
        let room = unsafe try #require(body.roomToGather())
        let block = UInt(bitPattern: room.baseAddress)
        unsafe room.copyBytes(from: repeatElement(7, count: count))
        body.filled(count)
        let chunk = body.take()
        #expect(chunk == Data(repeating: 7, count: count) && body.waitingCount == 0)
        let isBlock = unsafe chunk.withUnsafeBytes { bytes in UInt(bitPattern: bytes.baseAddress) == block }
        #expect(isBlock == keepsBlock)
    }

    @Test func aChunkIsFullBeforeOnlyFewBytesFit() {
        var body = CollectedBody()
        let size = roomOfChunk(&body)
        #expect(size == CollectedBody.chunkSize)
        body.filled(size / 2)
        #expect(!body.isChunkFull)
        let rest = roomOfChunk(&body)
        #expect(rest == size / 2)
        body.filled(rest - 100)
        #expect(body.isChunkFull)
        let chunk = body.take()
        #expect(chunk.count == size - 100 && body.waitingCount == 0)
    }
}
#endif
