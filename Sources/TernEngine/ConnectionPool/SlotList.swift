/// The ends of a doubly linked list of slots, whose links stand in a `SlotLinks` table. -1 stands for no slot.
struct SlotList: Sendable {
    fileprivate(set) var first = -1
    fileprivate(set) var last = -1

    var isEmpty: Bool { first < 0 }
}

/// The links of slots in lists. One table serves any number of lists; a slot is in one of them at most.
struct SlotLinks: Sendable {
    private struct Link: Sendable {
        var previous = -1
        var next = -1
    }

    private var links: [Link] = []

    /// Makes room for one more slot, which gets the number of those before it.
    mutating func addSlot() { links.append(Link()) }

    mutating func append(_ slot: Int, to list: inout SlotList) {
        links[slot] = Link(previous: list.last, next: -1)
        if list.last >= 0 { links[list.last].next = slot } else { list.first = slot }
        list.last = slot
    }

    /// Removes a slot from the list that it is in.
    mutating func remove(_ slot: Int, from list: inout SlotList) {
        let link = links[slot]
        if link.previous >= 0 { links[link.previous].next = link.next } else { list.first = link.next }
        if link.next >= 0 { links[link.next].previous = link.previous } else { list.last = link.previous }
    }
}
