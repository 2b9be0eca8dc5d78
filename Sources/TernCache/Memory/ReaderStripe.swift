public import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The readers of one shard that come from some of the threads, and what they have counted: one word for both, so
/// that a look-up has two atomic operations and not three.
@usableFromInline
struct ReaderStripe: ~Copyable, Sendable {
    /// The readers within, in the lower 16 bits; hits above them.
    @usableFromInline let state = Atomic<UInt64>(0)
    @usableFromInline let missCount = Atomic<Int>(0)

    /// How a look-up counts.
    @usableFromInline
    enum Count: Sendable {
        case nothing
        case hit
        case miss
    }

    @usableFromInline
    init() {}

    /// Stripes of a shard, as many as four bits name.
    @inlinable static var count: Int { 16 }
    @inlinable static var readers: UInt64 { 0xFFFF }

    /// The stripe of the calling thread. Threads that share one lose time, and nothing else.
    @usableFromInline
    static func current() -> Int {
        // The descriptors of threads that were made one after the other lie a stack apart: the product spreads them.
        #if canImport(Glibc)
        let thread = UInt64(pthread_self())
        #else
        let thread = unsafe UInt64(UInt(bitPattern: pthread_self()))
        #endif
        return Int(truncatingIfNeeded: ((thread >> 12) &* 0x9E37_79B9_7F4A_7C15) >> 60)
    }

    @inlinable @inline(__always)
    func enter() { state.wrappingAdd(1, ordering: .sequentiallyConsistent) }

    @inlinable @inline(__always)
    func leave(_ counted: Count) {
        switch counted {
        case .hit: state.wrappingAdd(Self.readers, ordering: .releasing)
        case .nothing: state.wrappingSubtract(1, ordering: .releasing)
        case .miss:
            missCount.wrappingAdd(1, ordering: .relaxed)
            state.wrappingSubtract(1, ordering: .releasing)
        }
    }

    @inlinable
    func waitUntilEmpty() {
        if state.load(ordering: .sequentiallyConsistent) & Self.readers != 0 { waitLong() }
    }

    /// A reader is within for some 20 ns, and longer only if its thread was put aside there: then others are to run.
    @usableFromInline
    func waitLong() {
        var rounds = 0
        while state.load(ordering: .sequentiallyConsistent) & Self.readers != 0 {
            rounds += 1
            if rounds > 1_000 { usleep(50) } else if rounds > 100 { sched_yield() }
        }
    }

    var hits: Int { Int(state.load(ordering: .relaxed) >> 16) }
    var misses: Int { missCount.load(ordering: .relaxed) }
}
