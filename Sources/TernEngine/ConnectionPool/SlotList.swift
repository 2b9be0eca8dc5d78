/// The ends of a doubly linked list of slots, whose links stand in a `SlotLinks` table.
struct SlotList: Sendable {
    fileprivate(set) var first: Int?
    fileprivate(set) var last: Int?

    var isEmpty: Bool { first == nil }
}

/// The links of slots in lists. One table serves any number of lists; a slot is in one of them at most.
struct SlotLinks: Sendable {
    private struct Link: Sendable {
        var previous: Int?
        var next: Int?
    }

    private var links: [Link] = []

    /// Makes room for one more slot, which gets the number of those before it.
    mutating func addSlot() { links.append(Link()) }

    mutating func append(_ slot: Int, to list: inout SlotList) {
        links[slot] = Link(previous: list.last, next: nil)
        if let last = list.last { links[last].next = slot } else { list.first = slot }
        list.last = slot
    }

    /// Removes a slot from the list that it is in.
    mutating func remove(_ slot: Int, from list: inout SlotList) {
        let link = links[slot]
        if let previous = link.previous { links[previous].next = link.next } else { list.first = link.next }
        if let next = link.next { links[next].previous = link.previous } else { list.last = link.previous }
    }
}
