#if os(Linux)
import FoundationEssentials

/// The bytes of a response's body that the session does not have yet. Confined to the loop.
struct CollectedBody {
    /// The largest number of bytes gathered into one chunk of a streamed response.
    static let chunkSize = 256 << 10
    /// Bodies up to this size are copied once into the value itself; larger ones get a block that is handed over.
    private static let smallSize = 16 << 10

    private let chunkLimit: Int
    /// The number of bytes received so far, before decompression.
    private(set) var received: Int64 = 0
    /// The total number of bytes as sent; nil when the head does not state it.
    var expected: Int64?
    private var small = Data()
    private(set) var slab = Slab()

    init(chunkLimit: Int = chunkSize) { self.chunkLimit = chunkLimit }

    /// Whether all bytes that the head states have been received.
    var isWhole: Bool { received == expected }
    /// Bytes that wait to be handed on as a chunk.
    var waitingCount: Int { slab.count }
    /// Whether the chunk is to be handed on. A small rest of room is not worth a read.
    var isChunkFull: Bool { slab.count >= chunkLimit || slab.room <= slab.count / 16 }

    mutating func count(_ bytes: Int) { received += Int64(bytes) }

    /// Adds to a body that is handed over whole; false when there is no memory.
    mutating func collect(_ bytes: UnsafeRawPointer, _ count: Int, limit: Int) -> Bool {
        if slab.isEmpty {
            let whole = Int(max(received, expected ?? 0))
            if whole <= Self.smallSize {
                if small.isEmpty {
                    unsafe small = Data(bytes: bytes, count: count)
                } else {
                    unsafe small.append(bytes.assumingMemoryBound(to: UInt8.self), count: count)
                }
                return true
            }
            guard slab.reserve(min(whole, limit)), moveSmallToSlab() else { return false }
        }
        return unsafe slab.append(bytes, count)
    }

    private mutating func moveSmallToSlab() -> Bool {
        if small.isEmpty { return true }
        defer { small = Data() }
        return unsafe small.withUnsafeBytes { bytes in
            unsafe bytes.baseAddress.map { unsafe slab.append($0, bytes.count) } ?? true
        }
    }

    /// Returns whether this many bytes still fit into the chunk that is being filled.
    func hasRoom(for count: Int) -> Bool { slab.isEmpty || slab.room >= count }

    /// Adds to the chunk that is being filled; false when there is no memory.
    mutating func gather(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
        let size = min(chunkLimit, Int(clamping: expected ?? .max))
        guard slab.reserve(max(size, count)) else { return false }
        return unsafe slab.append(bytes, count)
    }

    // MARK: Reading in place

    /// Returns memory for the next bytes of a body that is handed over whole; nil if it is small, has no stated length,
    /// or exceeds the limit.
    mutating func roomToCollect(limit: Int) -> UnsafeMutableRawBufferPointer? {
        guard let expected, expected > Self.smallSize, expected <= limit, small.isEmpty else { return nil }
        return slab.reserve(Int(expected)) ? unsafe slab.rest : nil
    }

    /// Returns memory for the next bytes of the chunk that is being filled; nil when there is no memory.
    mutating func roomToGather() -> UnsafeMutableRawBufferPointer? {
        guard slab.reserve(min(chunkLimit, Int(clamping: expected ?? .max))) else { return nil }
        return unsafe slab.rest
    }

    /// Adds bytes that are in the memory of the room already. A body that waits for its next bytes keeps no empty
    /// memory.
    mutating func filled(_ count: Int) {
        received += Int64(count)
        slab.filled(count)
        if slab.isEmpty { _ = slab.take() }
    }

    /// Removes and returns the waiting bytes. Copies only few bytes out of a large block.
    mutating func take() -> Data {
        guard slab.isEmpty else { return slab.take() }
        // Swapped, because to return the value and then replace it would copy it.
        var taken = Data()
        swap(&taken, &small)
        return taken
    }
}
#endif
