/// The order in which a shard evicts its entries: the chosen policy. The other policy stays empty, because an enum with
/// their arrays as payloads would copy them at each change.
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

    /// Frees the arrays of an order without entries. Ghosts stay.
    mutating func releaseStorage() {
        lru = LRUOrder()
        s3FIFO.releaseStorage()
    }
}

/// Least recently used: one list. An access moves its entry to the newest end, and the oldest entry is evicted. A pure
/// value.
@usableFromInline
struct LRUOrder: Sendable {
    @usableFromInline var links: [SlotLink] = []
    @usableFromInline var weights: [Int] = []
    @usableFromInline var list = SlotList()

    @inlinable
    init() {}

    /// Adds a slot, which must not be in the order, as the most recently used.
    @inlinable
    mutating func admit(_ slot: Slot, cost: Int) {
        while links.count <= Int(slot) {
            links.append(SlotLink())
            weights.append(0)
        }
        weights[Int(slot)] = cost
        list.push(slot, weight: cost, links: &links)
    }

    /// Records a use of a slot.
    @inlinable
    mutating func touch(_ slot: Slot) {
        guard list.newest != slot else { return }
        let weight = weights[Int(slot)]
        list.remove(slot, weight: weight, links: &links)
        list.push(slot, weight: weight, links: &links)
    }

    /// Changes the cost of a slot.
    @inlinable
    mutating func setCost(_ cost: Int, of slot: Slot) {
        list.weight += cost - weights[Int(slot)]
        weights[Int(slot)] = cost
    }

    /// Removes a slot.
    @inlinable
    mutating func remove(_ slot: Slot) {
        list.remove(slot, weight: weights[Int(slot)], links: &links)
    }

    /// Removes and returns the slot to evict next; nil if the order is empty.
    @inlinable
    mutating func evict() -> Slot? {
        let slot = list.oldest
        guard slot != noSlot else { return nil }
        remove(slot)
        return slot
    }
}
