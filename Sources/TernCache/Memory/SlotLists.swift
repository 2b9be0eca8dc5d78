/// The number of a place in a shard's flat arrays.
@usableFromInline typealias Slot = Int32

/// The end of a list, and the place of nothing.
@usableFromInline let noSlot: Slot = -1

/// Two neighbours in a list that runs through a flat array: no object for each entry, and 4 bytes a link.
@usableFromInline
struct SlotLink: Sendable {
    @usableFromInline var newer: Slot = noSlot
    @usableFromInline var older: Slot = noSlot

    @inlinable
    init() {}
}

/// The two ends of one list, with its length and weight; its links lie in an array that several lists share.
@usableFromInline
struct SlotList: Sendable {
    @usableFromInline var newest: Slot = noSlot
    @usableFromInline var oldest: Slot = noSlot
    @usableFromInline var count = 0
    @usableFromInline var weight = 0

    @inlinable
    init() {}

    /// Puts `slot`, which is in no list, at the young end.
    @inlinable
    mutating func push(_ slot: Slot, weight added: Int, links: inout [SlotLink]) {
        links[Int(slot)].newer = noSlot
        links[Int(slot)].older = newest
        if newest == noSlot { oldest = slot } else { links[Int(newest)].newer = slot }
        newest = slot
        count += 1
        weight += added
    }

    /// Takes `slot`, which is in this list, out of it.
    @inlinable
    mutating func remove(_ slot: Slot, weight removed: Int, links: inout [SlotLink]) {
        let link = links[Int(slot)]
        if link.newer == noSlot { newest = link.older } else { links[Int(link.newer)].older = link.older }
        if link.older == noSlot { oldest = link.newer } else { links[Int(link.older)].newer = link.newer }
        count -= 1
        weight -= removed
    }
}
