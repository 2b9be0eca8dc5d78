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

/// Reuses memory for large values, so that not every read pays for new pages: 64 page faults for 256 KiB cost more than
/// reading them. Keeps at most 8 MiB for later reads.
final class DiskBufferPool: Sendable {
    static let shared = DiskBufferPool()

    private struct Buffer {
        let address: UInt
        let capacity: Int
    }

    private struct State {
        var buffers: [Buffer] = []
        var bytes = 0
    }

    private static let limit = 8 << 20
    /// The allocator reuses smaller buffers well by itself.
    private static let smallest = 64 << 10

    private let state = Lock(State())

    /// Returns memory of `size` bytes as a value that recycles it when it is released. `fill` receives `spare` more
    /// bytes, which are not part of the value. Returns nil if there is no memory.
    func data(_ size: Int, spare: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> Data? {
        let whole = size + spare
        guard whole >= Self.smallest else {
            guard let memory = unsafe malloc(max(whole, 1)) else { return nil }
            unsafe fill(UnsafeMutableRawBufferPointer(start: memory, count: whole))
            return unsafe Data(bytesNoCopy: memory, count: size, deallocator: .free)
        }
        let buffer = take(whole)
        let capacity = buffer?.capacity ?? (whole + 65_535) & ~65_535
        guard
            let memory = unsafe buffer.flatMap({ unsafe UnsafeMutableRawPointer(bitPattern: $0.address) })
                ?? malloc(capacity)
        else { return nil }
        unsafe fill(UnsafeMutableRawBufferPointer(start: memory, count: whole))
        return unsafe Data(
            bytesNoCopy: memory, count: size,
            deallocator: .custom { memory, _ in unsafe self.recycle(memory, capacity) })
    }

    private func take(_ size: Int) -> Buffer? {
        state.withLock { state in
            // A buffer that is much too large is left for a larger value.
            guard let index = state.buffers.lastIndex(where: { $0.capacity >= size && $0.capacity / 2 <= size }) else {
                return nil
            }
            state.bytes -= state.buffers[index].capacity
            return state.buffers.remove(at: index)
        }
    }

    private func recycle(_ memory: UnsafeMutableRawPointer, _ capacity: Int) {
        let buffer = Buffer(address: UInt(bitPattern: memory), capacity: capacity)
        let isKept = state.withLock { state in
            guard state.bytes + capacity <= Self.limit else { return false }
            state.buffers.append(buffer)
            state.bytes += capacity
            return true
        }
        if !isKept { unsafe free(memory) }
    }
}
