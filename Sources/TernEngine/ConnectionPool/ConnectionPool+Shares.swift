/// The kind of an exchange, as far as the shares of the connections are concerned.
enum ConnectionUse: Int, CaseIterable, Sendable {
    case ordinary
    /// An exchange of low priority, for which a share of the connections is not used.
    case low
    /// An exchange that lasts long, such as a stream of events. It has a limit of its own.
    case live
}

extension ConnectionPool.Limits {
    /// The number of connections to one origin that exchanges of low priority can use: all but one of eight, all but
    /// one of 2 to 8, and a single one.
    var lowConnections: Int {
        let count = max(1, min(connectionsPerOrigin, connections))
        return count - (count == 1 ? 0 : max(1, count / 8))
    }
}

/// The shares of connections that carry one exchange at a time. Connections that carry several are not counted here.
extension ConnectionPool {
    /// Returns the kind of an exchange.
    func use(priority: Int, isLive: Bool) -> ConnectionUse {
        isLive ? .live : priority <= limits.lowPriority ? .low : .ordinary
    }

    /// Returns the kinds of waiting exchanges of an origin that may use another connection.
    ///
    /// - Parameter opening: Whether the connections that connect for such exchanges count, too.
    func allowedKinds(_ origin: Int, opening: Bool) -> WaitingKinds {
        let record = table.origins[origin]
        var (low, live) = (record.low, record.live)
        if opening {
            for key in record.waitingKeys {
                low += waiting.count(.claimed.of(.low), key: key)
                live += waiting.count(.claimed.of(.live), key: key)
            }
        }
        var kinds = WaitingKinds.all
        if low >= limits.lowConnections { kinds.remove(.all.of(.low)) }
        if live >= limits.liveConnectionsPerOrigin { kinds.remove(.all.of(.live)) }
        return kinds
    }

    /// Returns the kinds of waiting exchanges that may use a connection now.
    func allowedKinds(on connection: Int) -> WaitingKinds {
        if connections[connection].capacity > 1 { return .all }
        return allowedKinds(connections[connection].origin, opening: false)
    }

    /// Returns the waiting exchange of a key that may claim a connecting connection next; nil for none.
    func nextClaimant(of key: Int) -> Int? {
        waiting.first(.unclaimed.intersection(allowedKinds(table.keys[key].origin, opening: true)), key: key)
    }

    /// Gives a waiting exchange the connection that its changed priority allows.
    package mutating func serve(_ exchange: ExchangeID, actions: inout [Action]) {
        guard let slot = waiting.slot(of: exchange) else { return }
        settle(table.keys[waiting[slot].key].origin, actions: &actions)
    }

    /// Records the kind of the only exchange of a connection. One that lasts long does not count for the limits of the
    /// others.
    mutating func setUse(_ use: ConnectionUse, of slot: Int) {
        let (previous, origin) = (connections[slot].use, connections[slot].origin)
        guard use != previous else { return }
        connections[slot].use = use
        switch previous {
        case .ordinary: break
        case .low: table.origins[origin].low -= 1
        case .live:
            table.origins[origin].live -= 1
            table.origins[origin].connections += 1
            connectionCount += 1
        }
        switch use {
        case .ordinary: break
        case .low: table.origins[origin].low += 1
        case .live:
            table.origins[origin].live += 1
            table.origins[origin].connections -= 1
            connectionCount -= 1
        }
    }

    /// Records that the exchange of a connection has turned out to last long. It counts as such if the limit allows one
    /// more.
    package mutating func becameLive(on connection: ConnectionID, actions: inout [Action]) {
        guard let slot = slot(of: connection), connections[slot].inFlight == 1, connections[slot].capacity <= 1,
            connections[slot].state == .open, !connections[slot].isLive
        else { return }
        let origin = connections[slot].origin
        setIsLive(true, of: slot)
        if table.origins[origin].live < limits.liveConnectionsPerOrigin { setUse(.live, of: slot) }
        if waiting.count > 0 || !blockedOrigins.isEmpty || limits.sharesRoom { settle(origin, actions: &actions) }
    }

    /// Records whether the only exchange of a connection lasts long.
    private mutating func setIsLive(_ isLive: Bool, of slot: Int) {
        guard connections[slot].isLive != isLive else { return }
        connections[slot].isLive = isLive
        table.origins[connections[slot].origin].allLive += isLive ? 1 : -1
    }

    /// Records the kind of an exchange that a connection carries from now on.
    mutating func beginUse(_ use: ConnectionUse, of slot: Int) {
        // The first exchange of a connection over HTTP/2 goes ahead of its limit, and others will share the connection.
        guard connections[slot].capacity <= 1, !connections[slot].awaitsLimit else { return }
        if use == .live { setIsLive(true, of: slot) }
        setUse(use, of: slot)
    }

    /// Records that a connection carries no exchange, or several.
    mutating func endUse(of slot: Int) {
        setIsLive(false, of: slot)
        setUse(.ordinary, of: slot)
    }

    /// Returns whether there are more connections than the limits allow: others have taken the room of one that has
    /// carried an exchange that lasted long.
    func hasTooMany(_ origin: Int) -> Bool {
        // Those that drain already leave their room.
        table.origins[origin].connections - table.origins[origin].draining > room(of: origin)
            || connectionCount > max(1, limits.connections)
    }

    /// Returns the number of connections that carry exchanges with the server of a waiting exchange, and whether
    /// exchanges that last long hold all that it could get, so that none may ever become free. For an exchange that
    /// lasts long, those of its own limit count.
    package func connectionsInUse(for exchange: ExchangeID) -> (count: Int, areAllLive: Bool) {
        guard let slot = waiting.slot(of: exchange) else { return (0, false) }
        let origin = table.keys[waiting[slot].key].origin
        if waiting[slot].use == .live, table.origins[origin].live >= limits.liveConnectionsPerOrigin {
            return (table.origins[origin].live, true)
        }
        let count = connections.count { $0.origin == origin && $0.isOpen && $0.inFlight > 0 }
        return (count, count > 0 && count == table.origins[origin].allLive)
    }
}
