/// The steps of the pool: waiting exchanges get free connections or new ones, in their turn, until neither is possible.
extension ConnectionPool {
    /// The number of times in a row that origins keep their connections although a blocked origin is next.
    private static let passesBeforeClosing = 16

    // MARK: Serving

    /// Serves waiting exchanges after a connection has changed.
    mutating func settle(connection slot: Int, actions: inout [Action]) {
        let origin = connections[slot].origin
        if connections[slot].state == .draining, connections[slot].inFlight == 0 {
            close(slot, actions: &actions)
        } else {
            updateLists(slot)
        }
        if waiting.count > 0 || !blockedOrigins.isEmpty || limits.sharesRoom { settle(origin, actions: &actions) }
    }

    /// Serves waiting exchanges after a change of an origin. The other origins are as after their last change: they
    /// have no free connection that one of their exchanges can use, and they need room in the total limit or nothing.
    mutating func settle(_ origin: Int, actions: inout [Action]) {
        unblock(origin)
        while true {
            let blocked = hasRoom ? blockedOrigins.first : nil
            let next = nextCandidate(of: origin)
            if let blocked, isFirst(blocked, before: next, of: origin) {
                serveBlocked(blocked.slot, actions: &actions)
            } else if let next {
                serve(next, of: origin, actions: &actions)
            } else {
                break
            }
        }
        blockIfNeeded(origin)
        if limits.sharesRoom { settleRoom(of: origin, actions: &actions) }
    }

    private mutating func serveBlocked(_ origin: Int, actions: inout [Action]) {
        unblock(origin)
        assignmentsWhileBlocked = 0
        passedOver = 0
        // Without a candidate, the origin does not need room, and is not blocked again.
        guard let next = nextCandidate(of: origin) else { return }
        serve(next, of: origin, actions: &actions)
        blockIfNeeded(origin)
    }

    /// Returns whether a blocked origin goes before an exchange of the origin that has room or a free connection.
    ///
    /// The turn decides, with one exception: an origin keeps its connection if it has no more connections than the
    /// blocked one. Otherwise two origins with many exchanges would close and open a connection for every second one.
    /// The number of exceptions in a row is limited, because all connections of the blocked origin can have long
    /// exchanges.
    private mutating func isFirst(
        _ blocked: PositionedHeap<UInt64>.Entry, before next: Candidate?, of origin: Int
    ) -> Bool {
        guard let next else { return true }
        guard blocked.rank < table.origins[origin].turn else { return false }
        let hasFewer = table.origins[blocked.slot].connections < table.origins[origin].connections
        if next.connection == nil || hasFewer || passedOver >= Self.passesBeforeClosing { return true }
        passedOver += 1
        return false
    }

    /// The most urgent exchange of a key that can be served now, and the connection for it; nil for a new one.
    private struct Candidate {
        var exchange: Int
        var connection: Int?
    }

    /// Returns the most urgent exchange of an origin that can be served; nil if there is none.
    private func nextCandidate(of origin: Int) -> Candidate? {
        guard !table.origins[origin].waitingKeys.isEmpty else { return nil }
        let opened: WaitingKinds? = hasRoom && hasRoom(origin) ? allowedKinds(origin, opening: true) : nil
        let pooled = allowedKinds(origin, opening: false)
        var best: Candidate?
        for index in table.origins[origin].waitingKeys.indices {
            let key = table.origins[origin].waitingKeys[index]
            guard let found = candidate(of: key, pooled: pooled, opened: opened) else { continue }
            if let best, waiting[best.exchange].urgency < waiting[found.exchange].urgency { continue }
            best = found
        }
        return best
    }

    private mutating func serve(_ candidate: Candidate, of origin: Int, actions: inout [Action]) {
        if let connection = candidate.connection {
            assign(candidate.exchange, to: connection, actions: &actions)
        } else {
            open(for: candidate.exchange, actions: &actions)
        }
        table.origins[origin].turn = takeTurn()
    }

    /// - Parameters:
    ///   - pooled: The kinds of exchanges that may use a connection that carries one at a time.
    ///   - opened: The kinds for which one may be opened; nil without room for one.
    private func candidate(of key: Int, pooled: WaitingKinds, opened: WaitingKinds?) -> Candidate? {
        var found: Candidate?
        let (idle, partial) = (table.keys[key].idle.last, table.keys[key].partial.last)
        if let free = partial ?? idle {
            let isShared = partial != nil || connections[free].capacity > 1
            let kinds: WaitingKinds = idle == nil ? .sharingPooled : .pooled
            if let exchange = waiting.first(isShared ? kinds : kinds.intersection(pooled), key: key) {
                // Without an idle connection, only exchanges that share one are looked for.
                let joins = partial != nil && !waiting[exchange].isExclusive
                found = Candidate(exchange: exchange, connection: joins ? partial : idle)
            }
        }
        if let opened, let kinds = kindsThatNeedConnections(key, among: opened),
            let exchange = waiting.first(kinds, key: key)
        {
            if let found, !(waiting[exchange].urgency < waiting[found.exchange].urgency) { return found }
            found = Candidate(exchange: exchange, connection: nil)
        }
        return found
    }

    /// Returns the kinds of exchanges for which more connections are to be opened than connect already; nil if none.
    ///
    /// Each connecting connection is claimed by one exchange. Where connections are expected to be multiplexed, the
    /// others share those that exchanges of the sharing kind have claimed, and those whose server has not allowed an
    /// exchange yet, up to their expected capacity.
    func kindsThatNeedConnections(_ key: Int, among allowed: WaitingKinds) -> WaitingKinds? {
        let sharing = waiting.count(.unclaimedSharing.intersection(allowed), key: key)
        if sharing > 0, limits.waitsForStreams, hasShared(key) {
            // Those that take only a connection that has just been opened do not wait for an old one.
            let fresh = WaitingKinds.unclaimedSharing.subtracting(.pooled).intersection(allowed)
            if waiting.count(fresh, key: key) > waiting.count(.claimedSharing, key: key) { return fresh }
        } else if sharing > 0 {
            let others = table.keys[key].expectsShared ? table.keys[key].expectedCapacity - 1 : 0
            let connecting = waiting.count(.claimedSharing, key: key)
            let awaiting = table.keys[key].awaitingLimit * (others + 1)
            if sharing > connecting * others + awaiting { return .unclaimed.intersection(allowed) }
        }
        let exclusive = WaitingKinds.unclaimedExclusive.intersection(allowed)
        return waiting.count(exclusive, key: key) > 0 ? exclusive : nil
    }

    /// Returns whether a connection of a key that carries several exchanges takes some now or later, or connects.
    private func hasShared(_ key: Int) -> Bool {
        let record = table.keys[key]
        guard record.expectsShared else { return false }
        return record.settled + record.awaitingLimit > 0 || waiting.count(.claimedSharing, key: key) > 0
    }

    mutating func takeTurn() -> UInt64 {
        nextTurn += 1
        return nextTurn
    }

    // MARK: Room

    /// Whether the total limit allows another connection, or an idle one can be closed.
    private var hasRoom: Bool { connectionCount < max(1, limits.connections) || !idle.isEmpty }

    /// Returns whether the limit of the origin allows another connection, or an idle one of the origin can be closed.
    private func hasRoom(_ origin: Int) -> Bool {
        if table.origins[origin].connections < room(of: origin) { return true }
        // With other pools, there can be free room elsewhere, for which this one asks first.
        return !table.origins[origin].idle.isEmpty && (!limits.sharesRoom || table.origins[origin].isAsking)
    }

    /// Queues an origin that needs room in the total limit alone.
    private mutating func blockIfNeeded(_ origin: Int) {
        guard !table.origins[origin].waitingKeys.isEmpty, hasRoom(origin) else { return }
        guard needsConnection(origin) else { return }
        while blockedPositions.count <= origin { blockedPositions.append(0) }
        blockedOrigins.insert(origin, rank: table.origins[origin].turn, positions: &blockedPositions)
        table.origins[origin].isBlocked = true
    }

    /// Returns whether exchanges of an origin wait for which another connection is to be opened.
    func needsConnection(_ origin: Int) -> Bool {
        let allowed = allowedKinds(origin, opening: true)
        return table.origins[origin].waitingKeys.contains { kindsThatNeedConnections($0, among: allowed) != nil }
    }

    mutating func unblock(_ origin: Int) {
        guard table.origins[origin].isBlocked else { return }
        blockedOrigins.remove(at: blockedPositions[origin], positions: &blockedPositions)
        table.origins[origin].isBlocked = false
    }
}
