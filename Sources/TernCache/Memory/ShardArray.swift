public import TernConcurrency

/// Locks around equal values, found by their number without a branch, each on cache lines of its own.
///
/// An array cannot hold locks, an array of objects costs each access two atomic operations on a line that all threads
/// share, and a switch over fields is mispredicted three times of four.
@usableFromInline
@safe
// Sendable by hand: the memory is written by `init`, freed by `deinit`, and holds nothing but locks, which are Sendable.
struct ShardArray<Value: Sendable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let base: UnsafeMutableRawPointer
    @usableFromInline let count: Int

    /// Bytes from one to the next: whole pairs of cache lines, as the processor fetches them.
    @inlinable
    static var stride: Int { (MemoryLayout<Lock<Value>>.stride + 127) & ~127 }

    init(count: Int, _ value: () -> Value) {
        self.count = count
        unsafe base = .allocate(byteCount: count * Self.stride, alignment: 128)
        for number in 0..<count {
            let place = unsafe (base + number * Self.stride).bindMemory(to: Lock<Value>.self, capacity: 1)
            unsafe place.initialize(to: Lock(value()))
        }
    }

    deinit {
        for number in 0..<count {
            unsafe (base + number * Self.stride).assumingMemoryBound(to: Lock<Value>.self).deinitialize(count: 1)
        }
        unsafe base.deallocate()
    }

    /// Runs `body` with the lock of this number held.
    @inlinable @inline(__always)
    func withLock<Result>(_ number: Int, _ body: (inout sending Value) -> sending Result) -> sending Result {
        precondition(number >= 0 && number < count, "there is no such shard")
        let place = unsafe (base + number &* Self.stride).assumingMemoryBound(to: Lock<Value>.self)
        return unsafe place.pointee.withLock(body)
    }
}
