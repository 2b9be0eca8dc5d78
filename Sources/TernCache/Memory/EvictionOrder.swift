/// Which entry of a shard goes next: the chosen policy. The other one stays empty; an enum with their arrays as payloads
/// would copy them at each change.
@usableFromInline
struct EvictionOrder: Sendable {
    @usableFromInline let isLRU: Bool
    @usableFromInline var lru = LRUOrder()
    @usableFromInline var s3FIFO = S3FIFOOrder()

    @inlinable
    init(_ policy: MemoryCachePolicy) {
        isLRU = policy == .lru
    }

    @inlinable var policy: MemoryCachePolicy { isLRU ? .lru : .s3FIFO }

    @inlinable
    mutating func admit(_ slot: Slot, fingerprint: UInt32, cost: Int) {
        if isLRU { lru.admit(slot, cost: cost) } else { s3FIFO.admit(slot, fingerprint: fingerprint, cost: cost) }
    }

    @inlinable
    mutating func touch(_ slot: Slot) {
        if isLRU { lru.touch(slot) } else { s3FIFO.touch(slot) }
    }

    @inlinable
    mutating func setCost(_ cost: Int, of slot: Slot) {
        if isLRU { lru.setCost(cost, of: slot) } else { s3FIFO.setCost(cost, of: slot) }
    }

    @inlinable
    mutating func remove(_ slot: Slot) {
        if isLRU { lru.remove(slot) } else { s3FIFO.remove(slot) }
    }

    @inlinable
    mutating func evict() -> Slot? {
        isLRU ? lru.evict() : s3FIFO.evict()
    }

    /// Gives the memory of its arrays back; it holds no entry. Ghosts stay.
    mutating func shrink() {
        lru = LRUOrder()
        s3FIFO.shrink()
    }
}
