/// The next entry to expire first. Pure; what was removed elsewhere is found out by who takes it.
struct ExpiryHeap {
    typealias Element = (expires: Int64, hash: UInt64, id: Int64)
    private var elements: [Element] = []

    var first: Element? { elements.first }
    var count: Int { elements.count }

    mutating func push(_ element: Element) {
        elements.append(element)
        var child = elements.count - 1
        while child > 0, elements[(child - 1) / 2].expires > elements[child].expires {
            elements.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func pop() {
        guard let last = elements.popLast(), !elements.isEmpty else { return }
        elements[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < elements.count && elements[child].expires < elements[least].expires {
                least = child
            }
            if least == parent { return }
            elements.swapAt(parent, least)
            parent = least
        }
    }

    /// Forgets what `keep` does not want: replaced entries must not pile up.
    mutating func compact(keep: (Element) -> Bool) {
        let kept = elements.filter(keep)
        elements.removeAll(keepingCapacity: true)
        for element in kept { push(element) }
    }
}
