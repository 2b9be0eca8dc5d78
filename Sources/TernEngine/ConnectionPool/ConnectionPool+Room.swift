/// The room for connections where several pools of one session, each on its own loop, share the limits.
///
/// The pool has room for the connections that it has, asks for the room of each further one (`Action.ask`), and gives
/// back what it does not use (`Action.giveBack`). `RoomLedger` decides which pool gets it.
extension ConnectionPool {
    /// Returns the number of connections to an origin for which there is room.
    func room(of origin: Int) -> Int {
        guard limits.sharesRoom else { return max(1, limits.connectionsPerOrigin) }
        return table.origins[origin].room - table.origins[origin].owed
    }

    /// Returns whether there is an idle connection to an origin.
    package func hasIdle(_ name: String) -> Bool {
        table.originSlot(of: name).map { !table.origins[$0].idle.isEmpty } ?? false
    }

    /// Gives the room of one connection to an origin, for which the pool has asked. It is given back at once if it is not
    /// needed any more.
    package mutating func granted(_ name: String, actions: inout [Action]) {
        guard let origin = table.originSlot(of: name) else {
            return actions.append(.giveBack(origin: name, count: 1))
        }
        table.origins[origin].isAsking = false
        table.origins[origin].room += 1
        settle(origin, actions: &actions)
        // The pool can have asked a second time while the answer to the first one was on its way.
        if !table.origins[origin].isAsking { actions.append(.stopAsking(origin: name)) }
    }

    /// Returns the origin with the most connections, other than one; nil without connections to another one.
    package func richestOrigin(except name: String) -> String? {
        let origins = table.origins.filter { $0.connections > $0.draining && $0.name != name }
        return origins.max { $0.connections < $1.connections }?.name
    }

    /// Closes an idle connection to an origin, because another pool, or another key, needs its room.
    ///
    /// - Parameter isOwed: Whether the other pool has less than its part. Without an idle connection, the next one that
    ///   becomes free is then closed, although exchanges wait for it.
    package mutating func giveRoom(of name: String, isOwed: Bool, actions: inout [Action]) {
        guard let origin = table.originSlot(of: name) else { return }
        let room = table.origins[origin].room
        // A connection whose exchange has turned out to last long needs no room.
        settleRoom(of: origin, actions: &actions)
        guard table.origins[origin].room == room else { return }
        if let oldest = table.origins[origin].idle.first {
            close(oldest, actions: &actions)
        } else if isOwed, table.origins[origin].owed < table.origins[origin].room {
            table.origins[origin].owed += 1
            settle(origin, actions: &actions)
        }
    }

    /// Asks for room that is needed, and gives back what is owed or not used.
    mutating func settleRoom(of origin: Int, actions: inout [Action]) {
        let record = table.origins[origin]
        // One that waits for the room of another which is being closed takes that room.
        let used = max(record.connections, record.connections - record.delayed + record.closing)
        var needsMore = false
        if record.connections >= room(of: origin) { needsMore = needsConnection(origin) }
        let unused = max(0, record.room - used)
        let surplus = needsMore ? min(unused, record.owed) : unused
        if surplus > 0 {
            table.origins[origin].room -= surplus
            table.origins[origin].owed = max(0, record.owed - surplus)
            actions.append(.giveBack(origin: record.name, count: surplus))
        }
        guard needsMore != record.isAsking else { return }
        table.origins[origin].isAsking = needsMore
        actions.append(needsMore ? .ask(origin: record.name) : .stopAsking(origin: record.name))
    }
}
