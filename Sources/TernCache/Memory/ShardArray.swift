public import TernConcurrency

/// Locks around equal values, found by their number without a branch, each on cache lines of its own, and readers beside
/// each that write no line which another thread uses.
///
/// An array cannot hold locks, an array of objects costs each access two atomic operations on a line that all threads
/// share, and a switch over fields is mispredicted three times of four.
///
/// A reader enters the stripe of its thread, then looks whether the gate is open; a writer, with the lock, closes the
/// gate, then waits until the stripes are empty. Both are sequentially consistent, so that one of the two sees the other.
/// A reader who finds the gate closed takes the lock. Measured: two threads that take one lock for a look-up reach half
/// of what one thread does, since the lock's line travels with each; with 64 locks they reach as much as one.
@usableFromInline
@safe
// Sendable by hand: `base` never changes, its memory is written by `init` and freed by `deinit`. A value is written only
// with the lock held, the gate closed and no reader in any stripe, and read only with the lock or from within a stripe.
struct ShardArray<Value: Sendable & ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let base: UnsafeMutableRawPointer
    @usableFromInline let count: Int

    init(count: Int, _ value: () -> Value) {
        self.count = count
        unsafe base = .allocate(byteCount: count * Self.stride, alignment: Self.line)
        for number in 0..<count {
            unsafe gate(number).initialize(to: ReaderGate())
            unsafe lock(number).initialize(to: Lock(ReaderGate.Turn()))
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

    /// Runs `body` alone: with the lock of this number held, and without readers.
    @inlinable @inline(__always)
    func withLock<Result: Sendable & ~Copyable>(_ number: Int, _ body: (inout Value) -> Result) -> Result {
        precondition(number >= 0 && number < count, "there is no such shard")
        return unsafe lock(number).pointee.withLock { turn in
            turn.lookUps = 0
            if unsafe gate(number).pointee.seemsOpen { shut(number) }
            return unsafe body(&value(number).pointee)
        }
    }

    /// Runs `body`, which only reads, beside other readers.
    /// - Parameter body: what it gives, and how it is counted. It must not come back here, as under any lock.
    @inlinable @inline(__always)
    func read<Result: Sendable>(_ number: Int, _ body: (borrowing Value) -> (Result, ReaderStripe.Count)) -> Result {
        precondition(number >= 0 && number < count, "there is no such shard")
        if unsafe gate(number).pointee.seemsOpen {
            let index = ReaderStripe.current()
            unsafe stripe(number, index).pointee.enter()
            if unsafe gate(number).pointee.isOpen {
                let (result, counted) = unsafe body(value(number).pointee)
                unsafe stripe(number, index).pointee.leave(counted)
                return result
            }
            unsafe stripe(number, index).pointee.leave(.nothing)
        }
        return unsafe lock(number).pointee.withLock { turn in
            let (result, counted) = unsafe body(value(number).pointee)
            if turn.note(counted) { unsafe gate(number).pointee.open() }
            return result
        }
    }

    /// With the lock: no reader is in a stripe when this returns, and none enters.
    @inlinable @inline(never)
    func shut(_ number: Int) {
        unsafe gate(number).pointee.close()
        for index in 0..<ReaderStripe.count { unsafe stripe(number, index).pointee.waitUntilEmpty() }
    }

    /// What the readers of this number have counted.
    func readerCounts(_ number: Int) -> (hits: Int, misses: Int) {
        var (hits, misses) = unsafe lock(number).pointee.withLock { ($0.hits, $0.misses) }
        for index in 0..<ReaderStripe.count {
            hits += unsafe stripe(number, index).pointee.hits
            misses += unsafe stripe(number, index).pointee.misses
        }
        return (hits, misses)
    }

    // MARK: Places

    /// Whole pairs of cache lines, as the processor fetches them.
    @inlinable static var line: Int { 128 }
    @inlinable static var lockOffset: Int { 8 }
    @inlinable static var valueOffset: Int {
        let alignment = MemoryLayout<Value>.alignment
        return (lockOffset + MemoryLayout<Lock<ReaderGate.Turn>>.stride + alignment - 1) & ~(alignment - 1)
    }
    /// The gate, the lock and the value, which writers write alone, come before the stripes.
    @inlinable static var stripesOffset: Int { (valueOffset + MemoryLayout<Value>.stride + line - 1) & ~(line - 1) }
    @inlinable static var stride: Int { stripesOffset + ReaderStripe.count * line }

    @inlinable @inline(__always)
    func gate(_ number: Int) -> UnsafeMutablePointer<ReaderGate> {
        unsafe (base + number &* Self.stride).assumingMemoryBound(to: ReaderGate.self)
    }

    @inlinable @inline(__always)
    func lock(_ number: Int) -> UnsafeMutablePointer<Lock<ReaderGate.Turn>> {
        unsafe (base + number &* Self.stride + Self.lockOffset).assumingMemoryBound(to: Lock<ReaderGate.Turn>.self)
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
