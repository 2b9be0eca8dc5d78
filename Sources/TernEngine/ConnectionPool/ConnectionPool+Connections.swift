/// The tables of the pool: exchanges that wait, the connections that they have claimed, and lists of free connections.
extension ConnectionPool {
    /// The number of exchanges that busy connections take while an origin waits for the total limit, before one drains.
    private static let assignmentsBeforeDraining = 200

    // MARK: Waiting exchanges

    mutating func addWaiting(_ exchange: WaitingExchange) {
        let key = exchange.key
        let origin = table.keys[key].origin
        waiting.add(exchange)
        table.keys[key].waiting += 1
        if table.keys[key].waiting == 1 {
            if table.origins[origin].waitingKeys.isEmpty { table.origins[origin].turn = takeTurn() }
            table.keys[key].waitingIndex = table.origins[origin].waitingKeys.count
            table.origins[origin].waitingKeys.append(key)
        }
        claimConnecting(key)
    }

    /// Removes a waiting exchange. The connecting connection that it has claimed goes on for another.
    mutating func removeWaiting(_ slot: Int) -> WaitingExchange {
        let exchange = waiting.remove(slot)
        let key = exchange.key
        table.keys[key].waiting -= 1
        if table.keys[key].waiting == 0, let index = table.keys[key].waitingIndex.take() {
            let origin = table.keys[key].origin
            let last = table.origins[origin].waitingKeys.removeLast()
            if last != key {
                table.origins[origin].waitingKeys[index] = last
                table.keys[last].waitingIndex = index
            }
        }
        if let connection = exchange.connection {
            connections[connection].claimant = nil
            if let next = nextClaimant(of: key) { claim(connection, for: next) } else { updateLists(connection) }
        }
        return exchange
    }

    private mutating func claim(_ connection: Int, for exchange: Int) {
        connections[connection].claimant = exchange
        waiting.setConnection(connection, of: exchange)
        claimChanges.append(ClaimChange(exchange: waiting[exchange].id, hasConnection: true))
        updateLists(connection)
    }

    /// Lets the exchange that has claimed a connecting connection wait without one.
    mutating func releaseClaim(_ connection: Int) {
        guard let exchange = connections[connection].claimant.take() else { return }
        waiting.setConnection(nil, of: exchange)
        claimChanges.append(ClaimChange(exchange: waiting[exchange].id, hasConnection: false))
    }

    /// Lets waiting exchanges of a key claim connecting connections that none has claimed.
    mutating func claimConnecting(_ key: Int) {
        while let connection = table.keys[key].unclaimed.first, let next = nextClaimant(of: key) {
            claim(connection, for: next)
        }
    }

    // MARK: Connections

    /// Assigns a waiting exchange to a connection.
    mutating func assign(_ exchange: Int, to connection: Int, actions: inout [Action]) {
        let record = removeWaiting(exchange)
        occupy(connection, exchange: record.id, record.use, isExclusive: record.isExclusive, actions: &actions)
    }

    /// Assigns an exchange to a connection that has room for it.
    mutating func occupy(
        _ slot: Int, exchange: ExchangeID, _ use: ConnectionUse, isExclusive: Bool, actions: inout [Action]
    ) {
        actions.append(.assign(exchange, connection: id(of: slot), isReused: connections[slot].uses > 0))
        if connections[slot].inFlight > 0, !blockedOrigins.isEmpty {
            assignmentsWhileBlocked += 1
            if assignmentsWhileBlocked >= Self.assignmentsBeforeDraining {
                assignmentsWhileBlocked = 0
                drain(slot)
            }
        }
        connections[slot].inFlight += 1
        connections[slot].uses += 1
        if connections[slot].uses >= limits.uses { drain(slot) }
        connections[slot].isReserved = isExclusive
        if use != .ordinary { beginUse(use, of: slot) }
        updateLists(slot)
    }

    mutating func open(for exchange: Int, actions: inout [Action]) {
        let key = waiting[exchange].key
        let origin = table.keys[key].origin
        if table.origins[origin].connections >= room(of: origin), let oldest = table.origins[origin].idle.first {
            close(oldest, actions: &actions)
        }
        // The one that was closed for the origin can have been the only idle one.
        if connectionCount >= max(1, limits.connections), let oldest = idle.first { close(oldest, actions: &actions) }
        let isDelayed = !hasRoomNow(origin)
        let slot: Int
        if let free = freeConnections.popLast() {
            slot = free
        } else {
            slot = connections.count
            connections.append(PooledConnection())
            keyLinks.addSlot()
            originLinks.addSlot()
            idleLinks.addSlot()
        }
        connections[slot].state = .connecting
        connections[slot].key = key
        connections[slot].origin = origin
        connectionCount += 1
        table.keys[key].connections += 1
        table.origins[origin].connections += 1
        claim(slot, for: exchange)
        if isDelayed {
            connections[slot].isDelayed = true
            table.origins[origin].delayed += 1
            delayed.append(slot)
        } else {
            actions.append(.open(id(of: slot), key: table.id(of: key), exchange: waiting[exchange].id))
        }
    }

    /// Returns whether the limits allow another connection beside those that are open or being closed.
    private func hasRoomNow(_ origin: Int) -> Bool {
        let record = table.origins[origin]
        return connectionCount - delayed.count + closingCount < max(1, limits.connections)
            && record.connections - record.delayed + record.closing < room(of: origin)
    }

    /// Opens the connections that have waited for room, as far as there is some. One that no exchange needs any more is
    /// forgotten.
    mutating func openDelayed(actions: inout [Action]) {
        var index = 0
        while index < delayed.count {
            let slot = delayed[index]
            let origin = connections[slot].origin
            guard let claimant = connections[slot].claimant else {
                remove(slot)
                continue
            }
            if hasRoomNow(origin) {
                delayed.remove(at: index)
                connections[slot].isDelayed = false
                table.origins[origin].delayed -= 1
                let key = table.id(of: connections[slot].key)
                actions.append(.open(id(of: slot), key: key, exchange: waiting[claimant].id))
            } else {
                index += 1
            }
        }
    }

    /// Lets a connection take no more exchanges.
    mutating func drain(_ slot: Int) {
        stopServing(slot)
        if connections[slot].state != .draining { table.origins[connections[slot].origin].draining += 1 }
        connections[slot].state = .draining
    }

    /// Counts a draining connection out, which is closed or has ended.
    private mutating func stopDraining(_ slot: Int) {
        if connections[slot].state == .draining { table.origins[connections[slot].origin].draining -= 1 }
    }

    /// Counts an open connection out of those of its key that take exchanges. Its state changes afterwards.
    private mutating func stopServing(_ slot: Int) {
        guard connections[slot].state == .open else { return }
        if connections[slot].awaitsLimit {
            table.keys[connections[slot].key].awaitingLimit -= 1
        } else {
            table.keys[connections[slot].key].settled -= 1
        }
    }

    /// Closes a connection that no waiting exchange has claimed. One that was not opened yet is forgotten.
    mutating func close(_ slot: Int, actions: inout [Action]) {
        if connections[slot].isDelayed { return remove(slot) }
        actions.append(.close(id(of: slot)))
        leaveLists(slot)
        stopServing(slot)
        stopDraining(slot)
        endUse(of: slot)
        connections[slot].state = .closing
        connectionCount -= 1
        closingCount += 1
        table.origins[connections[slot].origin].connections -= 1
        table.origins[connections[slot].origin].closing += 1
    }

    /// Forgets a connection that no waiting exchange has claimed.
    mutating func remove(_ slot: Int) {
        leaveLists(slot)
        stopServing(slot)
        stopDraining(slot)
        endUse(of: slot)
        let origin = connections[slot].origin
        if connections[slot].state == .closing {
            closingCount -= 1
            table.origins[origin].closing -= 1
        } else {
            connectionCount -= 1
            table.origins[origin].connections -= 1
        }
        if connections[slot].isDelayed {
            delayed.removeAll { $0 == slot }
            table.origins[origin].delayed -= 1
        }
        table.keys[connections[slot].key].connections -= 1
        connections[slot] = PooledConnection(generation: connections[slot].generation &+ 1)
        freeConnections.append(slot)
    }

    /// Returns the slot of a connection that the caller knows: one that it was told to open.
    func slot(of connection: ConnectionID) -> Int? {
        let slot = Int(connection.slot)
        guard slot < connections.count, connections[slot].state != .unused, !connections[slot].isDelayed,
            connections[slot].generation == connection.generation
        else { return nil }
        return slot
    }

    func id(of slot: Int) -> ConnectionID {
        ConnectionID(slot: UInt32(truncatingIfNeeded: slot), generation: connections[slot].generation)
    }

    /// Returns a connection of a key that can take an exchange; nil if there is none.
    func freeConnection(of key: Int, isShared: Bool) -> Int? {
        if isShared, let partial = table.keys[key].partial.last { return partial }
        return table.keys[key].idle.last
    }

    /// Records the number of exchanges that a connection carries at a time.
    mutating func learn(_ capacity: Int, of slot: Int) {
        let capacity = Self.clampedCapacity(capacity)
        connections[slot].capacity = capacity
        if capacity > 1 { endUse(of: slot) }
        let key = connections[slot].key
        if capacity > 1 { table.keys[key].form = .multiplexed }
        if table.keys[key].form == .multiplexed { table.keys[key].expectedCapacity = capacity }
    }

    /// Returns a capacity that is at least 1 and small enough for arithmetic.
    static func clampedCapacity(_ capacity: Int) -> Int { min(max(1, capacity), 1 << 20) }

    // MARK: Lists

    /// Moves a connection to the lists in which it belongs after a change.
    mutating func updateLists(_ slot: Int) {
        let connection = connections[slot]
        let keyList = connection.properKeyList
        if keyList != connection.keyList { setKeyList(keyList, of: slot) }
        let isIdle = connection.isIdle
        guard isIdle != connection.isInIdleLists else { return }
        connections[slot].isInIdleLists = isIdle
        if isIdle {
            connections[slot].idleSince = now
            originLinks.append(slot, to: &table.origins[connection.origin].idle)
            idleLinks.append(slot, to: &idle)
            idleCount += 1
        } else {
            originLinks.remove(slot, from: &table.origins[connection.origin].idle)
            idleLinks.remove(slot, from: &idle)
            idleCount -= 1
        }
    }

    private mutating func setKeyList(_ keyList: PooledConnection.KeyList, of slot: Int) {
        let key = connections[slot].key
        switch connections[slot].keyList {
        case .none: break
        case .idle: keyLinks.remove(slot, from: &table.keys[key].idle)
        case .partial: keyLinks.remove(slot, from: &table.keys[key].partial)
        case .unclaimed: keyLinks.remove(slot, from: &table.keys[key].unclaimed)
        }
        switch keyList {
        case .none: break
        case .idle: keyLinks.append(slot, to: &table.keys[key].idle)
        case .partial: keyLinks.append(slot, to: &table.keys[key].partial)
        case .unclaimed: keyLinks.append(slot, to: &table.keys[key].unclaimed)
        }
        connections[slot].keyList = keyList
    }

    /// Removes a connection from all lists.
    mutating func leaveLists(_ slot: Int) {
        if connections[slot].keyList != .none { setKeyList(.none, of: slot) }
        guard connections[slot].isInIdleLists else { return }
        connections[slot].isInIdleLists = false
        originLinks.remove(slot, from: &table.origins[connections[slot].origin].idle)
        idleLinks.remove(slot, from: &idle)
        idleCount -= 1
    }
}
