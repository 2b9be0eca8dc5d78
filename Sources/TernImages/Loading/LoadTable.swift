/// The loads under way by key, and who waits for each. Pure: it decides who shares, who leads, who is told.
///
/// The first of those that wait is the leader: it is told of a failure, and one of the others has the load made again,
/// once; what comes of that is everybody's. A load that nobody waits for is out of the table at once, so that the next of
/// its key begins anew.
struct LoadTable<Key: Hashable & Sendable, Target: Sendable>: Sendable {
    /// What joining a load came to.
    enum Joining: Equatable {
        /// Nobody loads this yet: begin.
        case begin
        /// It is under way as this load; its rank if that has changed.
        case joined(load: Int, rank: LoadRank?)
    }

    /// What leaving a load came to.
    enum Leaving: Equatable {
        /// Others wait; the rank if that has changed.
        case stays(rank: LoadRank?)
        /// Nobody waits any more: cancel.
        case ends
        /// There is no such load, or the ticket does not wait for it.
        case unknown
    }

    /// What a failure came to.
    enum Failing {
        /// These are told, and the load is over.
        case ends([Target])
        /// The leader alone is told; make the load again for the others.
        case again(leader: Target)
    }

    private var loads: [Int: WaitingList<Key, Target>] = [:]
    private var loadOf: [Key: Int] = [:]

    var count: Int { loads.count }

    /// How many wait for a load.
    func waiting(for load: Int) -> Int { loads[load]?.placeOf.count ?? 0 }

    /// Those who wait for a load, in order of joining.
    func targets(of load: Int) -> [Target] { loads[load]?.all ?? [] }

    func rank(of load: Int) -> LoadRank { loads[load]?.rank ?? .lowest }

    /// Adds one who waits; `number` is the load's if it is to begin.
    mutating func join(_ key: Key, as number: Int, ticket: Int, rank: LoadRank, _ target: Target) -> Joining {
        guard let load = loadOf[key] else {
            var list = WaitingList<Key, Target>(key: key)
            list.add(ticket, rank, target)
            loadOf[key] = number
            loads[number] = list
            return .begin
        }
        let before = loads[load]?.rank
        loads[load]?.add(ticket, rank, target)
        let after = loads[load]?.rank
        return .joined(load: load, rank: after == before ? nil : after)
    }

    mutating func leave(_ load: Int, ticket: Int) -> Leaving {
        guard let before = loads[load]?.rank, loads[load]?.remove(ticket) == true else { return .unknown }
        if waiting(for: load) == 0 {
            remove(load)
            return .ends
        }
        let after = rank(of: load)
        return .stays(rank: after == before ? nil : after)
    }

    /// The ticket's new rank; the load's if that has changed by it.
    mutating func move(_ load: Int, ticket: Int, to rank: LoadRank) -> LoadRank? {
        guard let before = loads[load]?.rank else { return nil }
        loads[load]?.move(ticket, to: rank)
        let after = self.rank(of: load)
        return after == before ? nil : after
    }

    /// The load is over, well: those who are told.
    mutating func finish(_ load: Int) -> [Target] {
        let targets = targets(of: load)
        remove(load)
        return targets
    }

    /// The load has failed.
    /// - Parameter isFinal: whether another attempt would end the same, so that all are told.
    mutating func fail(_ load: Int, isFinal: Bool) -> Failing {
        guard !isFinal, waiting(for: load) > 1, loads[load]?.wasRepeated == false,
            let leader = loads[load]?.takeLeader()
        else { return .ends(finish(load)) }
        loads[load]?.wasRepeated = true
        return .again(leader: leader)
    }

    private mutating func remove(_ load: Int) {
        guard let removed = loads.removeValue(forKey: load) else { return }
        loadOf[removed.key] = nil
    }
}
