public import Synchronization

/// How often each slot was used lately, 0 to 3: the one thing of a shard that look-ups write while others look.
///
/// Relaxed: two uses at one instant may count as one, and no use orders anything else. A use that changes nothing writes
/// nothing, so that what is used often stays in the caches of all processors.
@usableFromInline
@safe
// Sendable by hand: `base` never changes, and what lies there are atomics, for as long as their `Memory` lives.
struct UseCounts: @unchecked Sendable {
    @usableFromInline let base: UnsafeMutablePointer<Atomic<UInt8>>
    @usableFromInline let count: Int

    @inlinable static var most: UInt8 { 3 }

    @inlinable
    subscript(slot: Slot) -> UInt8 {
        get {
            precondition(slot >= 0 && slot < count, "there is no such slot")
            return unsafe base[Int(slot)].load(ordering: .relaxed)
        }
        nonmutating set {
            precondition(slot >= 0 && slot < count, "there is no such slot")
            unsafe base[Int(slot)].store(newValue, ordering: .relaxed)
        }
    }

    /// One use more.
    @inlinable @inline(__always)
    func note(_ slot: Slot) {
        let uses = self[slot]
        if uses < Self.most { self[slot] = uses + 1 }
    }

    /// What the counts lie in. Apart from them, so that a look-up needs no reference to it.
    @usableFromInline
    final class Memory: Sendable {
        @usableFromInline let counts: UseCounts

        /// Room for `count` slots, those of `old` copied. To be called while nobody looks.
        init(_ count: Int, copying old: UseCounts? = nil) {
            counts = unsafe UseCounts(base: .allocate(capacity: count), count: count)
            for slot in 0..<count {
                let uses = old.map { slot < $0.count ? $0[Slot(slot)] : 0 } ?? 0
                unsafe (counts.base + slot).initialize(to: Atomic(uses))
            }
        }

        deinit {
            unsafe counts.base.deinitialize(count: counts.count)
            unsafe counts.base.deallocate()
        }
    }
}
