/// Least recently used: one list, an access moves its entry to the young end, the old end is evicted. Pure.
@usableFromInline
struct LRUOrder: Sendable {
    @usableFromInline var links: [SlotLink] = []
    @usableFromInline var weights: [Int] = []
    @usableFromInline var list = SlotList()

    @inlinable
    init() {}

    /// Takes up `slot`, which it does not hold, as the most recent.
    @inlinable
    mutating func admit(_ slot: Slot, cost: Int) {
        while links.count <= Int(slot) {
            links.append(SlotLink())
            weights.append(0)
        }
        weights[Int(slot)] = cost
        list.push(slot, weight: cost, links: &links)
    }

    /// `slot` was used now.
    @inlinable
    mutating func touch(_ slot: Slot) {
        guard list.newest != slot else { return }
        let weight = weights[Int(slot)]
        list.remove(slot, weight: weight, links: &links)
        list.push(slot, weight: weight, links: &links)
    }

    /// `slot` holds a value of another cost now.
    @inlinable
    mutating func setCost(_ cost: Int, of slot: Slot) {
        list.weight += cost - weights[Int(slot)]
        weights[Int(slot)] = cost
    }

    /// Forgets `slot`.
    @inlinable
    mutating func remove(_ slot: Slot) {
        list.remove(slot, weight: weights[Int(slot)], links: &links)
    }

    /// Forgets the entry that is to go first, and names it; nil when none is held.
    @inlinable
    mutating func evict() -> Slot? {
        let slot = list.oldest
        guard slot != noSlot else { return nil }
        remove(slot)
        return slot
    }
}
