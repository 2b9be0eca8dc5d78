/// The items of a queue that have ended, in the order of their ends. Pure.
///
/// Thousands of ends can wait for their acknowledgment. A look-up is a binary search, and a new end is almost always
/// the last one. A removal at the front costs constant time on average, and one elsewhere moves the ends behind it.
struct QueueEnds: Sendable {
    typealias ID = TransferQueue.ItemID

    /// The ends by number, smallest first. Those before `start` are removed.
    private var ends: [(number: Int64, id: ID)]
    private var start = 0

    /// Creates the ends of items, in any order.
    init(_ ends: [(number: Int64, id: ID)] = []) { self.ends = ends.sorted { $0.number < $1.number } }

    var lastNumber: Int64? { start < ends.count ? ends.last?.number : nil }

    /// The items in the order of their ends.
    var ids: [ID] { ends[start...].map(\.id) }

    /// Returns the first end after a number; nil for none.
    func first(after number: Int64) -> (number: Int64, id: ID)? {
        // No number is the greatest one: `QueueRecord.problem`.
        let index = place(of: number + 1)
        return index < ends.count ? ends[index] : nil
    }

    mutating func add(_ id: ID, number: Int64) {
        if let last = lastNumber, last > number {
            // Results are stored before their transfers end, so that a later one can be here first.
            ends.insert((number, id), at: place(of: number))
        } else {
            ends.append((number, id))
        }
    }

    /// Removes the end of an item, if it is there.
    mutating func remove(_ id: ID, number: Int64) {
        let index = place(of: number)
        guard index < ends.count, ends[index].number == number, ends[index].id == id else { return }
        guard index == start else {
            ends.remove(at: index)
            return
        }
        start += 1
        if start > ends.count / 2 {
            ends.removeFirst(start)
            start = 0
        }
    }

    /// Returns the index of the first end whose number is not smaller.
    private func place(of number: Int64) -> Int {
        var (low, high) = (start, ends.count)
        while low < high {
            let middle = (low + high) / 2
            if ends[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
