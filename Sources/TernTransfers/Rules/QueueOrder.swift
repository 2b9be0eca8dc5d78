/// The places of a queue's items in their order: numbers with room between them, so that a move changes few. Pure.
enum QueueOrder {
    typealias ID = TransferQueue.ItemID

    /// The item, and the number of its place.
    struct Position: Equatable {
        let id: ID
        let number: Int64
    }

    /// The room between two items that stand one after the other.
    static let gap: Int64 = 1 << 20
    /// The greatest number; a stored one beyond it is not valid.
    static let bound: Int64 = 1 << 60

    /// Returns the numbers for items that are added at the end; nil if there is no room, and all items need new
    /// numbers.
    static func numbers(forNew count: Int, after last: Int64?) -> [Int64]? {
        let start = last ?? 0
        guard start <= bound - Int64(count) * gap else { return nil }
        return (0..<count).map { start + Int64($0 + 1) * gap }
    }

    /// Returns the new numbers of a move: those of the moved items, or of all if there is no room between two others.
    /// Empty for a place beside an item that is not there, or that itself moves.
    ///
    /// - Parameters:
    ///   - moved: The items that move, in their new order.
    ///   - place: Their place.
    ///   - all: All items, in any order.
    static func numbers(moving moved: [ID], to place: TransferQueue.Place, among all: [Position]) -> [ID: Int64] {
        let set = Set(moved)
        let rest = all.filter { !set.contains($0.id) }.sorted { ($0.number, $0.id) < ($1.number, $1.id) }
        let index: Int
        switch place {
        case .first: index = 0
        case .last: index = rest.count
        case .before(let id):
            guard let found = rest.firstIndex(where: { $0.id == id }) else { return [:] }
            index = found
        case .after(let id):
            guard let found = rest.firstIndex(where: { $0.id == id }) else { return [:] }
            index = found + 1
        }
        let low = index > 0 ? rest[index - 1].number : (rest.first?.number ?? 0) - Int64(moved.count + 1) * gap
        let high = index < rest.count ? rest[index].number : low + Int64(moved.count + 1) * gap
        let step = (high - low) / Int64(moved.count + 1)
        guard step > 0, low >= -bound, high <= bound else {
            let order = rest[..<index].map(\.id) + moved + rest[index...].map(\.id)
            return Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, Int64($0 + 1) * gap) })
        }
        return Dictionary(uniqueKeysWithValues: moved.enumerated().map { ($1, low + Int64($0 + 1) * step) })
    }
}
