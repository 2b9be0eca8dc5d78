public import Synchronization
public import TernConcurrency

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// An array of values, each with a lock on cache lines of its own, and with concurrent readers that write no cache line
/// of another thread.
///
/// A shard is found by its number without a branch. An array cannot hold locks, an array of objects costs each access
/// two atomic operations on a line that all threads share, and a switch over fields is mispredicted three times of
/// four.
///
/// A reader enters the stripe of its thread, then checks whether the gate is open. A writer, which holds the lock,
/// closes the gate, then waits until the stripes are empty. Both are sequentially consistent, so that one of the two
/// sees the other. A reader that finds the gate closed takes the lock. Measured: two threads that take one lock for a
/// look-up reach half of the rate of one thread, because the lock's cache line moves between them; with 64 locks they
/// reach the rate of one.
@usableFromInline
@safe
// Sendable by hand: `base` never changes, its memory is written by `init` and freed by `deinit`. A value is written
// only with the lock held, the gate closed and no reader in any stripe, and read only with the lock or from within a
// stripe.
struct ShardArray<Value: Sendable & ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let base: UnsafeMutableRawPointer
    @usableFromInline let count: Int

    init(count: Int, _ value: () -> Value) {
        self.count = count
        unsafe base = .allocate(byteCount: count * Self.stride, alignment: Self.line)
        for number in 0..<count {
            unsafe gate(number).initialize(to: ReaderGate())
            unsafe lock(number).initialize(to: Lock(ReaderGate.LockedCounts()))
            unsafe self.value(number).initialize(to: value())
            for index in 0..<ReaderStripe.count { unsafe stripe(number, index).initialize(to: ReaderStripe()) }
        }
    }

    deinit {
        for number in 0..<count {
            unsafe gate(number).deinitialize(count: 1)
            unsafe lock(number).deinitialize(count: 1)
            unsafe value(number).deinitialize(count: 1)
            for index in 0..<ReaderStripe.count { unsafe stripe(number, index).deinitialize(count: 1) }
        }
        unsafe base.deallocate()
    }

    /// Runs `body` exclusively: with the lock of the shard held, and without readers.
    @inlinable @inline(__always)
    func withLock<Result: Sendable & ~Copyable>(_ number: Int, _ body: (inout Value) -> Result) -> Result {
        precondition(number >= 0 && number < count, "there is no such shard")
        return unsafe lock(number).pointee.withLock { counts in
            counts.lookUps = 0
            if unsafe gate(number).pointee.isProbablyOpen { closeGate(number) }
            return unsafe body(&value(number).pointee)
        }
    }

    /// Runs `body`, which only reads, concurrently with other readers.
    /// - Parameter body: Returns its result, and how the look-up counts. It must not use this array, because it can run
    ///   under a lock.
    @inlinable @inline(__always)
    func read<Result: Sendable>(_ number: Int, _ body: (borrowing Value) -> (Result, ReaderStripe.LookUp)) -> Result {
        precondition(number >= 0 && number < count, "there is no such shard")
        if unsafe gate(number).pointee.isProbablyOpen {
            let index = ReaderStripe.current()
            unsafe stripe(number, index).pointee.enter()
            if unsafe gate(number).pointee.isOpen {
                let (result, lookUp) = unsafe body(value(number).pointee)
                unsafe stripe(number, index).pointee.leave(lookUp)
                return result
            }
            unsafe stripe(number, index).pointee.leave(.notCounted)
        }
        return unsafe lock(number).pointee.withLock { counts in
            let (result, lookUp) = unsafe body(value(number).pointee)
            if counts.record(lookUp) { unsafe gate(number).pointee.open() }
            return result
        }
    }

    /// Closes the gate, with the lock held. When it returns, no reader is in a stripe, and none enters.
    @inlinable @inline(never)
    func closeGate(_ number: Int) {
        unsafe gate(number).pointee.close()
        for index in 0..<ReaderStripe.count { unsafe stripe(number, index).pointee.waitUntilEmpty() }
    }

    /// Returns the hits and misses that the readers of a shard have counted.
    func readerCounts(_ number: Int) -> (hits: Int, misses: Int) {
        var (hits, misses) = unsafe lock(number).pointee.withLock { ($0.hits, $0.misses) }
        for index in 0..<ReaderStripe.count {
            hits += unsafe stripe(number, index).pointee.hits
            misses += unsafe stripe(number, index).pointee.misses
        }
        return (hits, misses)
    }

    // MARK: Memory layout

    /// Two cache lines, because the processor fetches them in pairs.
    @inlinable static var line: Int { 128 }
    @inlinable static var lockOffset: Int { 8 }
    @inlinable static var valueOffset: Int {
        let alignment = MemoryLayout<Value>.alignment
        return (lockOffset + MemoryLayout<Lock<ReaderGate.LockedCounts>>.stride + alignment - 1) & ~(alignment - 1)
    }
    /// The offset of the stripes. The gate, the lock and the value, which only writers write, come before them.
    @inlinable static var stripesOffset: Int { (valueOffset + MemoryLayout<Value>.stride + line - 1) & ~(line - 1) }
    @inlinable static var stride: Int { stripesOffset + ReaderStripe.count * line }

    @inlinable @inline(__always)
    func gate(_ number: Int) -> UnsafeMutablePointer<ReaderGate> {
        unsafe (base + number &* Self.stride).assumingMemoryBound(to: ReaderGate.self)
    }

    @inlinable @inline(__always)
    func lock(_ number: Int) -> UnsafeMutablePointer<Lock<ReaderGate.LockedCounts>> {
        unsafe (base + number &* Self.stride + Self.lockOffset).assumingMemoryBound(
            to: Lock<ReaderGate.LockedCounts>.self)
    }

    @inlinable @inline(__always)
    func value(_ number: Int) -> UnsafeMutablePointer<Value> {
        unsafe (base + number &* Self.stride + Self.valueOffset).assumingMemoryBound(to: Value.self)
    }

    @inlinable @inline(__always)
    func stripe(_ number: Int, _ index: Int) -> UnsafeMutablePointer<ReaderStripe> {
        unsafe (base + number &* Self.stride + Self.stripesOffset + index &* Self.line)
            .assumingMemoryBound(to: ReaderStripe.self)
    }
}

/// Controls whether readers may access a shard without its lock.
///
/// A writer closes the gate. It stays closed until enough look-ups took the lock to pay for closing it again, so that a
/// shard with many inserts does not pay for stripes.
@usableFromInline
struct ReaderGate: ~Copyable, Sendable {
    @usableFromInline let isOpened = Atomic<Bool>(false)

    @usableFromInline
    init() {}

    /// Whether it is worth entering a stripe.
    @inlinable var isProbablyOpen: Bool { isOpened.load(ordering: .relaxed) }
    /// Whether the gate is open. For a reader in its stripe, and for a writer with the lock.
    @inlinable var isOpen: Bool { isOpened.load(ordering: .sequentiallyConsistent) }

    @inlinable
    func close() { isOpened.store(false, ordering: .sequentiallyConsistent) }

    @inlinable
    func open() { isOpened.store(true, ordering: .releasing) }

    /// The counters that a shard's lock guards beside its value: the look-ups that took the lock.
    @usableFromInline
    struct LockedCounts: Sendable {
        /// The look-ups since the last writer.
        @usableFromInline var lookUps = 0
        @usableFromInline var hits = 0
        @usableFromInline var misses = 0

        @usableFromInline
        init() {}

        /// The number of look-ups after which the gate opens. Closing it costs a writer 50 to 200 ns; this many
        /// look-ups cost 500 ns.
        @inlinable static var openingThreshold: Int { 16 }

        /// Counts a look-up, and returns whether the gate is to be opened now.
        @inlinable
        mutating func record(_ lookUp: ReaderStripe.LookUp) -> Bool {
            switch lookUp {
            case .notCounted: break
            case .hit: hits += 1
            case .miss: misses += 1
            }
            lookUps += 1
            return lookUps == Self.openingThreshold
        }
    }
}

/// The readers of one shard on some of the threads, and their counters. One word holds both, so that a look-up needs
/// two atomic operations instead of three.
@usableFromInline
struct ReaderStripe: ~Copyable, Sendable {
    /// The number of current readers in the lower 16 bits, and hits above them.
    @usableFromInline let state = Atomic<UInt64>(0)
    @usableFromInline let missCount = Atomic<Int>(0)

    /// The way in which a look-up counts.
    @usableFromInline
    enum LookUp: Sendable {
        case notCounted
        case hit
        case miss
    }

    @usableFromInline
    init() {}

    /// The number of stripes of a shard, which four bits address.
    @inlinable static var count: Int { 16 }
    @inlinable static var readerMask: UInt64 { 0xFFFF }

    /// Returns the stripe of the calling thread. Threads that share a stripe are slower, but correct.
    @usableFromInline
    static func current() -> Int {
        // The descriptors of consecutive threads are one stack apart. The multiplication spreads them.
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
    func leave(_ lookUp: LookUp) {
        switch lookUp {
        case .hit: state.wrappingAdd(Self.readerMask, ordering: .releasing)
        case .notCounted: state.wrappingSubtract(1, ordering: .releasing)
        case .miss:
            missCount.wrappingAdd(1, ordering: .relaxed)
            state.wrappingSubtract(1, ordering: .releasing)
        }
    }

    @inlinable
    func waitUntilEmpty() {
        if state.load(ordering: .sequentiallyConsistent) & Self.readerMask != 0 { waitByYielding() }
    }

    /// Waits for a reader, which takes 20 ns, or longer if its thread was preempted. Then other threads need to run.
    @usableFromInline
    func waitByYielding() {
        var rounds = 0
        while state.load(ordering: .sequentiallyConsistent) & Self.readerMask != 0 {
            rounds += 1
            if rounds > 1_000 { usleep(50) } else if rounds > 100 { sched_yield() }
        }
    }

    var hits: Int { Int(state.load(ordering: .relaxed) >> 16) }
    var misses: Int { missCount.load(ordering: .relaxed) }
}
