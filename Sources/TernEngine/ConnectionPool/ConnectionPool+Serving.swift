/// The steps of the pool: waiting exchanges get free connections or new ones, in their turn, until neither is possible.
extension ConnectionPool {
    // MARK: Serving

    /// Serves waiting exchanges after a connection has changed.
    mutating func settle(connection slot: Int, actions: inout [Action]) {
        let origin = connections[slot].origin
        if connections[slot].state == .draining, connections[slot].inFlight == 0 {
            close(slot, actions: &actions)
        } else {
            placeInLists(slot)
        }
        if waiting.count > 0 || !blockedOrigins.isEmpty { settle(origin, actions: &actions) }
    }

    /// Serves waiting exchanges after a change of an origin. The other origins are as after their last change: they
    /// have no free connection that one of their exchanges can use, and they need room in the total limit or nothing.
    mutating func settle(_ origin: Int, actions: inout [Action]) {
        unblock(origin)
        while true {
            let turn = table.origins[origin].waitingKeys.isEmpty ? .max : table.origins[origin].turn
            let blocked = hasRoom ? blockedOrigins.first : nil
            if let blocked, blocked.rank < turn {
                serveBlocked(blocked.slot, actions: &actions)
            } else if serveNext(of: origin, actions: &actions) {
                continue
            } else if let blocked {
                serveBlocked(blocked.slot, actions: &actions)
            } else {
                break
            }
        }
        blockIfNeeded(origin)
    }

    private mutating func serveBlocked(_ origin: Int, actions: inout [Action]) {
        unblock(origin)
        assignmentsWhileBlocked = 0
        // Without success, the origin does not need room, and is not blocked again.
        if serveNext(of: origin, actions: &actions) { blockIfNeeded(origin) }
    }

    /// The most urgent exchange of a key that can be served now, and the connection for it; -1 for a new one.
    private struct Candidate {
        var exchange: Int
        var connection: Int
    }

    /// Serves the most urgent exchange of an origin that can be served. Returns false if there is none.
    private mutating func serveNext(of origin: Int, actions: inout [Action]) -> Bool {
        guard !table.origins[origin].waitingKeys.isEmpty else { return false }
        let canOpen = hasRoom && hasRoom(origin)
        var best: Candidate?
        for index in table.origins[origin].waitingKeys.indices {
            let key = table.origins[origin].waitingKeys[index]
            guard let found = candidate(of: key, canOpen: canOpen) else { continue }
            if let best, waiting[best.exchange].urgency < waiting[found.exchange].urgency { continue }
            best = found
        }
        guard let best else { return false }
        if best.connection >= 0 {
            assign(best.exchange, to: best.connection, actions: &actions)
        } else {
            open(for: best.exchange, actions: &actions)
        }
        table.origins[origin].turn = takeTurn()
        return true
    }

    private func candidate(of key: Int, canOpen: Bool) -> Candidate? {
        var found: Candidate?
        let (idle, partial) = (table.keys[key].idle.last, table.keys[key].partial.last)
        if idle >= 0 || partial >= 0 {
            let exchange = waiting.first(idle >= 0 ? .pooled : .sharingPooled, key: key)
            if exchange >= 0 {
                let isShared = partial >= 0 && !waiting[exchange].isExclusive
                found = Candidate(exchange: exchange, connection: isShared ? partial : idle)
            }
        }
        if canOpen, let kinds = kindsThatNeedConnections(key) {
            let exchange = waiting.first(kinds, key: key)
            if let found, !(waiting[exchange].urgency < waiting[found.exchange].urgency) { return found }
            found = Candidate(exchange: exchange, connection: -1)
        }
        return found
    }

    /// Returns the kinds of exchanges for which more connections are to be opened than connect already; nil if none.
    ///
    /// Each connecting connection is claimed by one exchange. Where connections are expected to be multiplexed, the
    /// others share those that exchanges of the sharing kind have claimed, up to their expected capacity.
    private func kindsThatNeedConnections(_ key: Int) -> WaitingKinds? {
        let sharing = waiting.count(.unclaimedSharing, key: key)
        if sharing > 0 {
            let others = table.keys[key].expectsShared ? table.keys[key].expectedCapacity - 1 : 0
            let connecting = waiting.count(.claimedSharing, key: key)
            if sharing > connecting * others { return .unclaimed }
        }
        return waiting.count(.unclaimedExclusive, key: key) > 0 ? .unclaimedExclusive : nil
    }

    mutating func takeTurn() -> UInt64 {
        nextTurn += 1
        return nextTurn
    }

    // MARK: Room

    /// A Boolean value that indicates whether the total limit allows another connection, or an idle one can be closed.
    private var hasRoom: Bool { connectionCount < max(1, limits.connections) || !idle.isEmpty }

    /// Returns whether the limit of the origin allows another connection, or an idle one of the origin can be closed.
    private func hasRoom(_ origin: Int) -> Bool {
        table.origins[origin].connections < max(1, limits.connectionsPerOrigin) || !table.origins[origin].idle.isEmpty
    }

    /// Queues an origin that needs room in the total limit alone.
    private mutating func blockIfNeeded(_ origin: Int) {
        guard !table.origins[origin].waitingKeys.isEmpty, hasRoom(origin),
            table.origins[origin].waitingKeys.contains(where: { kindsThatNeedConnections($0) != nil })
        else { return }
        while blockedPositions.count <= origin { blockedPositions.append(-1) }
        blockedOrigins.insert(origin, rank: table.origins[origin].turn, positions: &blockedPositions)
    }

    mutating func unblock(_ origin: Int) {
        guard origin < blockedPositions.count, blockedPositions[origin] >= 0 else { return }
        blockedOrigins.remove(at: blockedPositions[origin], positions: &blockedPositions)
        blockedPositions[origin] = -1
    }
}
