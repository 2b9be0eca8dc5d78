public import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#endif

/// Whether a writer is at a shard.
@usableFromInline
struct ReaderGate: ~Copyable, Sendable {
    @usableFromInline let isClosed = Atomic<Bool>(false)

    @usableFromInline
    init() {}

    @inlinable var isOpen: Bool { !isClosed.load(ordering: .sequentiallyConsistent) }

    @inlinable
    func close() { isClosed.store(true, ordering: .sequentiallyConsistent) }

    @inlinable
    func open() { isClosed.store(false, ordering: .releasing) }
}

/// The readers of one shard that come from some of the threads, and what they have counted: one word for both, so that
/// a look-up has two atomic operations and not three.
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

    @inlinable static var count: Int { 8 }
    @inlinable static var readers: UInt64 { 0xFFFF }

    /// The stripe of the calling thread. Threads that share one lose time, and nothing else.
    @usableFromInline
    static func current() -> Int {
        // The descriptors of threads that were made one after the other lie a stack apart: the product spreads them.
        #if canImport(Darwin)
        let thread = unsafe UInt64(UInt(bitPattern: pthread_self()))
        #else
        let thread = UInt64(pthread_self())
        #endif
        return Int(truncatingIfNeeded: ((thread >> 12) &* 0x9E37_79B9_7F4A_7C15) >> 61)
    }

    @inlinable
    func enter() { state.wrappingAdd(1, ordering: .sequentiallyConsistent) }

    @inlinable
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
