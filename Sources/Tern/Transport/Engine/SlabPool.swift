#if os(Linux)
import TernConcurrency
import FoundationEssentials
import Glibc

/// Recycled memory for bodies and chunks: a fresh block of this size costs a page fault per 4 KiB, fifteen for a body
/// of 64 KiB.
final class SlabPool: Sendable {
    static let shared = SlabPool()

    /// Blocks that wait to be used again, of one size each: 16 KiB, 32 KiB … 1 MiB.
    private struct Shelf {
        var blocks: [UInt] = []
    }

    private static let smallestShift = 14
    private static let shelfCount = 7
    /// Bytes kept per size.
    private static let keptBytes = 4 << 20

    private let shelves: Lock<[Shelf]>

    private init() {
        shelves = Lock(Array(repeating: Shelf(), count: Self.shelfCount))
    }

    /// The size of block that `take` gives for a number of bytes.
    static func capacity(for count: Int) -> Int {
        var capacity = 1 << smallestShift
        while capacity < count { capacity <<= 1 }
        return capacity
    }

    private static func shelf(of capacity: Int) -> Int? {
        let shelf = capacity.trailingZeroBitCount - smallestShift
        return shelf < shelfCount ? shelf : nil
    }

    /// A block of `capacity(for: count)` bytes, not cleared; nil when there is no memory.
    func take(_ capacity: Int) -> UnsafeMutableRawPointer? {
        if let index = Self.shelf(of: capacity), let block = shelves.withLock({ $0[index].blocks.popLast() }) {
            return unsafe UnsafeMutableRawPointer(bitPattern: block)
        }
        return unsafe malloc(capacity)
    }

    func give(_ block: UnsafeMutableRawPointer, _ capacity: Int) {
        let address = UInt(bitPattern: block)
        let isKept = shelves.withLock { shelves in
            guard let index = Self.shelf(of: capacity), shelves[index].blocks.count * capacity < Self.keptBytes else {
                return false
            }
            shelves[index].blocks.append(address)
            return true
        }
        if !isKept { unsafe free(block) }
    }

    func data(_ block: UnsafeMutableRawPointer, count: Int, capacity: Int) -> Data {
        unsafe Data(
            bytesNoCopy: block, count: count,
            deallocator: .custom { block, _ in unsafe SlabPool.shared.give(block, capacity) })
    }
}

/// A growing buffer that hands its memory over instead of copying it. Confined to the loop.
@safe struct Slab {
    private(set) var count = 0
    private var capacity = 0
    private var block: UnsafeMutableRawPointer?

    var isEmpty: Bool { count == 0 }
    var room: Int { capacity - count }

    /// Makes sure of a block; one of at least `expected` bytes if there is none yet.
    mutating func reserve(_ expected: Int) -> Bool {
        guard unsafe block == nil else { return true }
        capacity = SlabPool.capacity(for: expected)
        unsafe block = SlabPool.shared.take(capacity)
        return unsafe block != nil
    }

    /// Adds bytes and grows as needed; false when there is no memory.
    mutating func append(_ bytes: UnsafeRawPointer, _ added: Int) -> Bool {
        guard reserve(added) else { return false }
        if room < added, !grow(to: count + added) { return false }
        unsafe block?.advanced(by: count).copyMemory(from: bytes, byteCount: added)
        count += added
        return true
    }

    /// The memory behind the bytes so far; nil without a block.
    var rest: UnsafeMutableRawBufferPointer? {
        guard let block = unsafe block else { return nil }
        return unsafe UnsafeMutableRawBufferPointer(start: block + count, count: room)
    }

    /// Adds bytes that are in `rest` already.
    mutating func filled(_ added: Int) { count += added }

    private mutating func grow(to needed: Int) -> Bool {
        let larger = SlabPool.capacity(for: needed)
        // realloc moves large blocks by their page tables: no second copy of a large body ever stands in memory.
        guard let grown = unsafe realloc(block, larger) else { return false }
        unsafe block = grown
        capacity = larger
        return true
    }

    /// The bytes; the slab is empty after. They are copied only if they use less than a quarter of the block, which
    /// they would keep: a server that sends a few bytes at a time would fill the memory with blocks.
    mutating func take() -> Data {
        defer {
            unsafe block = nil
            count = 0
            capacity = 0
        }
        guard let block = unsafe block else { return Data() }
        if count < capacity / 4 {
            defer { unsafe SlabPool.shared.give(block, capacity) }
            return unsafe Data(bytes: block, count: count)
        }
        return unsafe SlabPool.shared.data(block, count: count, capacity: capacity)
    }
}
#endif
