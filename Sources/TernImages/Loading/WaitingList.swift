/// Those who wait for one load, in order of joining, and the highest of their ranks. Pure; every change is O(1).
struct WaitingList<Key: Sendable, Target: Sendable>: Sendable {
    let key: Key
    /// In order of joining; who left is nil.
    var targets: [(ticket: Int, rank: LoadRank, target: Target)?] = []
    var first = 0
    var placeOf: [Int: Int] = [:]
    var rankCounts = [Int](repeating: 0, count: LoadRank.count)
    var wasRepeated = false

    var rank: LoadRank { LoadRank.highest(rankCounts) }
    var all: [Target] { targets[first...].compactMap { $0?.target } }

    mutating func add(_ ticket: Int, _ rank: LoadRank, _ target: Target) {
        placeOf[ticket] = targets.count
        targets.append((ticket, rank, target))
        rankCounts[rank.level] += 1
    }

    mutating func remove(_ ticket: Int) -> Bool {
        guard let place = placeOf.removeValue(forKey: ticket) else { return false }
        if let rank = targets[place]?.rank { rankCounts[rank.level] -= 1 }
        targets[place] = nil
        closeUp()
        return true
    }

    /// Takes the places of those who left out once they are the most: who comes and goes while another stays does not pile
    /// up. O(1) for each who left.
    private mutating func closeUp() {
        guard targets.count > 2 * placeOf.count + 32 else { return }
        targets = targets[first...].filter { $0 != nil }
        first = 0
        for (place, entry) in targets.enumerated() { if let entry { placeOf[entry.ticket] = place } }
    }

    mutating func move(_ ticket: Int, to rank: LoadRank) {
        guard let place = placeOf[ticket], let old = targets[place]?.rank else { return }
        targets[place]?.rank = rank
        rankCounts[old.level] -= 1
        rankCounts[rank.level] += 1
    }

    mutating func takeLeader() -> Target? {
        while first < targets.count {
            guard let (ticket, _, target) = targets[first] else {
                first += 1
                continue
            }
            first += 1
            _ = remove(ticket)
            return target
        }
        return nil
    }
}
