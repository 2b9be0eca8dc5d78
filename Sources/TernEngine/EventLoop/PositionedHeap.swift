/// A binary heap of slots, the lowest rank first, that knows the position of each slot: any slot can be removed or
/// ranked anew in logarithmic time. The positions stand in a table of the caller, indexed by slot, which several heaps
/// can share as long as a slot is in one of them at a time.
struct PositionedHeap<Rank: Comparable & Sendable>: Sendable {
    struct Entry: Sendable {
        var rank: Rank
        var slot: Int
    }

    /// The capacity up to which an empty heap keeps its memory.
    private static var keptCapacity: Int { 64 }

    private var entries: [Entry] = []

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }
    /// The slot with the lowest rank.
    var first: Entry? { entries.first }

    mutating func insert(_ slot: Int, rank: Rank, positions: inout [Int]) {
        entries.append(Entry(rank: rank, slot: slot))
        moveUp(from: entries.count - 1, positions: &positions)
    }

    /// Removes the slot at a position. Its own position is not changed in the table.
    mutating func remove(at position: Int, positions: inout [Int]) {
        let last = entries.removeLast()
        guard position < entries.count else {
            if entries.isEmpty, entries.capacity > Self.keptCapacity { entries = [] }
            return
        }
        replace(at: position, by: last, positions: &positions)
    }

    /// Changes the rank of the slot at a position.
    mutating func update(at position: Int, rank: Rank, positions: inout [Int]) {
        replace(at: position, by: Entry(rank: rank, slot: entries[position].slot), positions: &positions)
    }

    mutating func removeAll() { entries.removeAll() }

    private mutating func replace(at position: Int, by entry: Entry, positions: inout [Int]) {
        let isLower = entry.rank < entries[position].rank
        entries[position] = entry
        if isLower {
            moveUp(from: position, positions: &positions)
        } else {
            moveDown(from: position, positions: &positions)
        }
    }

    private mutating func moveUp(from start: Int, positions: inout [Int]) {
        var position = start
        let moved = entries[position]
        while position > 0 {
            let parent = (position - 1) / 2
            guard moved.rank < entries[parent].rank else { break }
            entries[position] = entries[parent]
            positions[entries[position].slot] = position
            position = parent
        }
        entries[position] = moved
        positions[moved.slot] = position
    }

    private mutating func moveDown(from start: Int, positions: inout [Int]) {
        var position = start
        let moved = entries[position]
        while true {
            var child = 2 * position + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, entries[child + 1].rank < entries[child].rank { child += 1 }
            guard entries[child].rank < moved.rank else { break }
            entries[position] = entries[child]
            positions[entries[position].slot] = position
            position = child
        }
        entries[position] = moved
        positions[moved.slot] = position
    }
}
