#if os(Linux)
import CTernCurl
import Glibc
import TernTesting
import Testing

@testable import Tern

/// Checks the blocks that libcurl takes and returns on a thread that keeps them.
@Suite struct CurlMemoryTests {
    private static let limit = 64 * (65_536 + 4_096)

    /// Runs the body on a thread of its own, which keeps blocks until it ends.
    private func keeping(_ body: @escaping @Sendable () throws -> Void) {
        var thread = pthread_t()
        let context = unsafe Unmanaged.passRetained(Work(body)).toOpaque()
        let result = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                tern_curl_keep_blocks()
                unsafe Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context)
        #expect(result == 0)
        #expect(pthread_join(thread, nil) == 0)
    }

    private struct NoMemory: Error {}

    private static func block(_ size: Int) throws -> UnsafeMutableRawPointer {
        guard let block = unsafe tern_curl_allocate(size) else { throw NoMemory() }
        return unsafe block
    }

    private final class Work: Sendable {
        private let body: @Sendable () throws -> Void
        init(_ body: @escaping @Sendable () throws -> Void) { self.body = body }

        func run() {
            do { try body() } catch { Issue.record(error) }
        }
    }

    @Test(arguments: [1, 24, 25, 40, 2_056, 2_057, 4_096, 4_097, 65_537, 100_000])
    func returnedBlockIsReused(size: Int) {
        keeping {
            let first = unsafe tern_curl_allocate(size)
            unsafe tern_curl_release(first)
            #expect(tern_curl_kept_bytes() >= size)
            let second = unsafe tern_curl_allocate(size)
            #expect(unsafe second == first)
            #expect(tern_curl_kept_bytes() == 0)
            unsafe tern_curl_release(second)
        }
    }

    /// malloc returns a step more than requested where the rest of a block is too small to be a block.
    @Test(arguments: [(24, 40), (40, 56), (300, 328), (2_040, 2_056), (2_056, 2_072)])
    func blockLargerThanRequestedIsReused(asked: Int, size: Int) {
        keeping {
            // malloc can return a step more here, too: those blocks are held until one has the expected size.
            var first = unsafe malloc(size)
            var others: [UnsafeMutableRawPointer?] = unsafe []
            while unsafe malloc_usable_size(first) != size {
                unsafe others.append(first)
                unsafe first = malloc(size)
            }
            for index in unsafe others.indices { unsafe free(others[index]) }
            unsafe tern_curl_release(first)
            #expect(tern_curl_kept_bytes() >= asked)
            let second = unsafe tern_curl_allocate(asked)
            #expect(unsafe second == first)
            #expect(tern_curl_kept_bytes() == 0)
            unsafe tern_curl_release(second)
        }
    }

    @Test func blockIsNeverSmallerThanRequested() {
        keeping {
            // A kept block is larger than it was requested, or smaller than the next request, by one byte each time.
            for size in 1...10_000 {
                let block = unsafe try Self.block(size)
                #expect(unsafe malloc_usable_size(block) >= size)
                unsafe memset(block, 0xAA, size)
                unsafe tern_curl_release(block)
            }
        }
    }

    @Test func buffersOfOtherAllocatorsCanBeReleasedHere() {
        keeping {
            for size in 1...5_000 {
                unsafe tern_curl_release(malloc(size))
                let block = unsafe tern_curl_allocate(size)
                #expect(unsafe malloc_usable_size(block) >= size)
                unsafe free(block)
            }
        }
    }

    @Test func zeroedBytesAreZeroInABlockThatWasUsed() {
        keeping {
            let used = unsafe try Self.block(300)
            unsafe memset(used, 0xFF, 300)
            unsafe tern_curl_release(used)
            let zeroed = unsafe tern_curl_allocate_zeroed(3, 100)
            #expect(unsafe zeroed == used)
            let bytes = unsafe UnsafeRawBufferPointer(start: zeroed, count: 300)
            #expect(unsafe bytes.allSatisfy { $0 == 0 })
            unsafe tern_curl_release(zeroed)
            #expect(unsafe tern_curl_allocate_zeroed(.max, 4) == nil)
        }
    }

    @Test(arguments: [(10, 30), (30, 2_000), (2_000, 3_000), (3_000, 200_000), (200_000, 10), (100, 50)])
    func aBlockThatGrowsKeepsItsBytes(old: Int, new: Int) {
        keeping {
            let block = unsafe try Self.block(old)
            unsafe memset(block, 0x5A, old)
            let moved = unsafe tern_curl_reallocate(block, new)
            let bytes = unsafe UnsafeRawBufferPointer(start: moved, count: min(old, new))
            #expect(unsafe bytes.allSatisfy { $0 == 0x5A })
            #expect(unsafe malloc_usable_size(moved) >= new)
            unsafe tern_curl_release(moved)
        }
    }

    @Test func grownBufferIsReused() {
        keeping {
            // libcurl grows a buffer in this way to keep the bytes that a stopped transfer could not deliver.
            for _ in 0..<100 {
                var buffer = unsafe tern_curl_reallocate(nil, 32)
                for size in [100, 1_000, 16_384, 32_768, 49_152] { unsafe buffer = tern_curl_reallocate(buffer, size) }
                unsafe tern_curl_release(buffer)
            }
            #expect(tern_curl_kept_bytes() < 128 << 10)
        }
    }

    @Test func keptBuffersAreLimitedForAllSizes() {
        keeping {
            var blocks: [UnsafeMutableRawPointer?] = unsafe []
            for round in 0..<3_000 { unsafe blocks.append(tern_curl_allocate(1 + round * 37 % 120_000)) }
            for index in unsafe blocks.indices {
                unsafe tern_curl_release(blocks[index])
                #expect(tern_curl_kept_bytes() <= Self.limit)
            }
            #expect(tern_curl_kept_bytes() > 0)
        }
    }

    @Test func otherThreadsKeepNothing() {
        let block = unsafe tern_curl_allocate(100)
        unsafe tern_curl_release(block)
        #expect(tern_curl_kept_bytes() == 0)
    }
}
#endif
