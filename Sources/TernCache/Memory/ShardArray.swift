public import TernConcurrency

/// Locks around equal values, found by their number without a branch, each on cache lines of its own, and readers beside
/// each that write no line which another thread uses.
///
/// An array cannot hold locks, an array of objects costs each access two atomic operations on a line that all threads
/// share, and a switch over fields is mispredicted three times of four.
///
/// A reader enters its thread's stripe, then looks whether a writer is there; a writer says that it is there, then waits
/// until the stripes are empty. Both are sequentially consistent, so that one of the two sees the other. A reader who
/// sees a writer goes away and takes the lock. Measured: two threads that take one lock for a look-up reach half of
/// what one thread does, since the lock's line travels with each; four locks change nothing about that.
// Sendable by hand: `base` never changes, its memory is written by `init` and freed by `deinit`. A value is written only
// with the lock held, the gate closed and no reader in any stripe, and read only so, or from within a stripe.
@usableFromInline
@safe
struct ShardArray<Value: Sendable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let base: UnsafeMutableRawPointer
    @usableFromInline let count: Int

    /// Whole pairs of cache lines, as the processor fetches them.
    @inlinable static var line: Int { 128 }
    /// Where the parts of one shard lie: the gate and the value, which are written by writers alone; the stripes.
    @inlinable static var lockOffset: Int { 8 }
    @inlinable static var valueOffset: Int {
        let alignment = MemoryLayout<Value>.alignment
        return (lockOffset + MemoryLayout<Lock<Void>>.stride + alignment - 1) & ~(alignment - 1)
    }
    @inlinable static var stripesOffset: Int { (valueOffset + MemoryLayout<Value>.stride + line - 1) & ~(line - 1) }
    @inlinable static var stride: Int { stripesOffset + ReaderStripe.count * line }

    init(count: Int, _ value: () -> Value) {
        self.count = count
        unsafe base = .allocate(byteCount: count * Self.stride, alignment: Self.line)
        for number in 0..<count {
            unsafe gate(number).initialize(to: ReaderGate())
            unsafe lock(number).initialize(to: Lock(()))
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
    func withLock<Result: Sendable>(_ number: Int, _ body: (inout Value) -> Result) -> Result {
        precondition(number >= 0 && number < count, "there is no such shard")
        return unsafe lock(number).pointee.withLock { _ in
            unsafe gate(number).pointee.close()
            for index in 0..<ReaderStripe.count { unsafe stripe(number, index).pointee.waitUntilEmpty() }
            let result = unsafe body(&value(number).pointee)
            unsafe gate(number).pointee.open()
            return result
        }
    }

    /// Runs `body` beside other readers, in the stripe of this thread; nil, and nothing run, while there is a writer.
    /// - Parameter body: what it gives, and how it is counted. It must not come back here, as under any lock.
    @inlinable @inline(__always)
    func read<Result>(_ number: Int, _ body: (borrowing Value) -> (Result, ReaderStripe.Count)) -> Result? {
        precondition(number >= 0 && number < count, "there is no such shard")
        let index = ReaderStripe.current()
        unsafe stripe(number, index).pointee.enter()
        guard unsafe gate(number).pointee.isOpen else {
            unsafe stripe(number, index).pointee.leave(.nothing)
            return nil
        }
        let (result, counted) = unsafe body(value(number).pointee)
        unsafe stripe(number, index).pointee.leave(counted)
        return result
    }

    /// What the readers of this number have counted.
    func readerCounts(_ number: Int) -> (hits: Int, misses: Int) {
        var (hits, misses) = (0, 0)
        for index in 0..<ReaderStripe.count {
            hits += unsafe stripe(number, index).pointee.hits
            misses += unsafe stripe(number, index).pointee.misses
        }
        return (hits, misses)
    }

    @inlinable @inline(__always)
    func gate(_ number: Int) -> UnsafeMutablePointer<ReaderGate> {
        unsafe (base + number &* Self.stride).assumingMemoryBound(to: ReaderGate.self)
    }

    @inlinable @inline(__always)
    func lock(_ number: Int) -> UnsafeMutablePointer<Lock<Void>> {
        unsafe (base + number &* Self.stride + Self.lockOffset).assumingMemoryBound(to: Lock<Void>.self)
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
