/// Who may work at one stage, and who is next. Pure: every change is O(1), whatever waits.
///
/// The waiting stand in one doubly linked list for each rank, in flat arrays: a change of priority, a cancellation and
/// the choice of the next one touch a constant number of places.
struct StageQueue: Sendable {
    private struct Place {
        var load: Int
        var rank: LoadRank
        var previous = -1
        var next = -1
    }

    let limit: Int
    let order: ImagePipeline.Order
    private(set) var running = 0
    private var places: [Place] = []
    private var free: [Int] = []
    private var placeOf: [Int: Int] = [:]
    private var heads = [Int](repeating: -1, count: LoadRank.count)
    private var tails = [Int](repeating: -1, count: LoadRank.count)

    init(limit: Int, order: ImagePipeline.Order) {
        self.limit = max(1, limit)
        self.order = order
    }

    var waiting: Int { placeOf.count }

    /// Whether `next` would name somebody.
    var hasNext: Bool { running < limit && !placeOf.isEmpty }

    /// Whether the load may begin now; else it waits until `next` names it.
    mutating func enter(_ load: Int, _ rank: LoadRank) -> Bool {
        if running < limit, placeOf.isEmpty {
            running += 1
            return true
        }
        wait(load, rank)
        return false
    }

    /// The load waits until `next` names it, also if there is room.
    mutating func wait(_ load: Int, _ rank: LoadRank) {
        let place = free.popLast() ?? places.count
        if place == places.count {
            places.append(Place(load: load, rank: rank))
        } else {
            places[place] = Place(load: load, rank: rank)
        }
        placeOf[load] = place
        link(place)
    }

    /// One that ran has ended.
    mutating func leave() { running -= 1 }

    /// Who begins now; nil if nobody waits or nobody may.
    mutating func next() -> Int? {
        guard running < limit, !placeOf.isEmpty else { return nil }
        guard let rank = heads.lastIndex(where: { $0 >= 0 }) else { return nil }
        let place = order == .firstInFirstOut ? heads[rank] : tails[rank]
        let load = places[place].load
        remove(load)
        running += 1
        return load
    }

    /// Takes out one that waits; one that runs, or is not there, is left.
    @discardableResult
    mutating func remove(_ load: Int) -> Bool {
        guard let place = placeOf.removeValue(forKey: load) else { return false }
        unlink(place)
        free.append(place)
        return true
    }

    /// The load's new rank; behind those that have it already.
    mutating func move(_ load: Int, to rank: LoadRank) {
        guard let place = placeOf[load], places[place].rank != rank else { return }
        unlink(place)
        places[place].rank = rank
        link(place)
    }

    private mutating func link(_ place: Int) {
        let rank = places[place].rank.level
        places[place].previous = tails[rank]
        places[place].next = -1
        if tails[rank] >= 0 { places[tails[rank]].next = place } else { heads[rank] = place }
        tails[rank] = place
    }

    private mutating func unlink(_ place: Int) {
        let (rank, previous, next) = (places[place].rank.level, places[place].previous, places[place].next)
        if previous >= 0 { places[previous].next = next } else { heads[rank] = next }
        if next >= 0 { places[next].previous = previous } else { tails[rank] = previous }
    }
}
