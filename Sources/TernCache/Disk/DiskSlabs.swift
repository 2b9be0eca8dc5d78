import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Memory for large values that are read: used again, so that not every read pays for its fresh pages (64 page faults for
/// 256 KiB cost more than reading them). At most 8 MiB wait for the next read.
final class DiskSlabs: Sendable {
    static let shared = DiskSlabs()

    private struct Slab {
        let address: UInt
        let capacity: Int
    }

    private struct State {
        var slabs: [Slab] = []
        var bytes = 0
    }

    private static let limit = 8 << 20
    /// The allocator reuses smaller ones well by itself.
    private static let smallest = 64 << 10

    private let state = Lock(State())

    /// Memory of `size` bytes, as a value that gives it back when nobody holds it any more. `fill` is given `spare` bytes
    /// more, which are not of the value. Nil if there is no memory.
    func data(_ size: Int, spare: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> Data? {
        let whole = size + spare
        guard whole >= Self.smallest else {
            guard let memory = unsafe malloc(max(whole, 1)) else { return nil }
            unsafe fill(UnsafeMutableRawBufferPointer(start: memory, count: whole))
            return unsafe Data(bytesNoCopy: memory, count: size, deallocator: .free)
        }
        let slab = take(whole)
        let capacity = slab?.capacity ?? (whole + 65_535) & ~65_535
        guard
            let memory = unsafe slab.flatMap({ unsafe UnsafeMutableRawPointer(bitPattern: $0.address) })
                ?? malloc(capacity)
        else { return nil }
        unsafe fill(UnsafeMutableRawBufferPointer(start: memory, count: whole))
        return unsafe Data(
            bytesNoCopy: memory, count: size,
            deallocator: .custom { memory, _ in unsafe self.give(memory, capacity) })
    }

    private func take(_ size: Int) -> Slab? {
        state.withLock { state in
            // Not one that is much too large: it may be wanted.
            guard let index = state.slabs.lastIndex(where: { $0.capacity >= size && $0.capacity / 2 <= size }) else {
                return nil
            }
            state.bytes -= state.slabs[index].capacity
            return state.slabs.remove(at: index)
        }
    }

    private func give(_ memory: UnsafeMutableRawPointer, _ capacity: Int) {
        let slab = Slab(address: UInt(bitPattern: memory), capacity: capacity)
        let isKept = state.withLock { state in
            guard state.bytes + capacity <= Self.limit else { return false }
            state.slabs.append(slab)
            state.bytes += capacity
            return true
        }
        if !isKept { unsafe free(memory) }
    }
}
