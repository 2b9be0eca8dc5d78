#if os(Linux)
import TernConcurrency

/// The calls of `LoopConnections`.
extension ExchangePool {
    /// Called when a connection is open for so many exchanges at a time. Over HTTP/2, it `isShared`: it carries so many
    /// until `capacityChanged(_:to:)` reports the limit of the server.
    func connected(_ connection: ConnectionPool.ConnectionID, capacity: Int, isShared: Bool) {
        guard var record = records.value[connection] else { return }
        record.isOpen = true
        records.value[connection] = record
        if !isShared {
            destinations[record.key]?.speaksHTTP1 = true
            // A destination that never speaks HTTP/2 says nothing about the others of its origin.
            if destinations[record.key]?.allowsHTTP2 == true { learn(1, of: record.key) }
        }
        // A connection over a Unix socket opens within `perform()`, which then starts its first exchange.
        justOpened.append(connection)
        // The first SETTINGS of a server over HTTP/2 state its limit.
        pool.opened(
            connection, capacity: capacity, awaitsLimit: isShared, now: context.now, actions: &actions.value)
        perform()
        stopSharers(of: record.key)
    }

    /// Called when a connection cannot be opened.
    func connectFailed(_ connection: ConnectionPool.ConnectionID, _ error: EngineError) {
        let key = records.value[connection]?.key
        guard forget(connection) else { return }
        let failed = pool.openFailed(connection, actions: &actions.value).flatMap { waiting.removeValue(forKey: $0) }
        perform()
        stopSharers(of: key)
        guard let failed else { return }
        if failed.upgrade != nil { handshakes.leave(failed.id) }
        if waitsForDescriptor(failed, after: error) { return }
        failed.handler.didEnd(error, isDeadConnection: false)
    }

    /// Lets an exchange wait that failed for want of a descriptor while an idle connection of the process is closed for
    /// it. Returns false for other errors, without such a connection, and after too many tries.
    private func waitsForDescriptor(_ exchange: HTTPExchange, after error: EngineError) -> Bool {
        guard error.kind == .outOfDescriptors, exchange.descriptorsLacked < SpareDescriptors.tries,
            SpareDescriptors.closeOldest()
        else { return false }
        exchange.descriptorsLacked += 1
        exchange.stopsConnecting()
        lacking[exchange.id] = exchange
        if lacking.count == 1 { context.schedule(lackTimer, at: context.now + SpareDescriptors.pause) }
        return true
    }

    /// Called when an exchange has left its connection. One that is not reusable takes no further exchange.
    func finished(on connection: ConnectionPool.ConnectionID, isReusable: Bool) {
        pool.finished(on: connection, isReusable: isReusable, now: context.now, actions: &actions.value)
        perform()
        turns?.ended(on: connection)
    }

    /// Called when the server has switched a connection to another protocol. It no longer belongs to the pool, but
    /// stays open until `closed(_:)`.
    func detached(_ connection: ConnectionPool.ConnectionID) {
        guard let record = records.value.remove(connection) else { return }
        // The pool remembers a key as long as it has a connection.
        detached[connection] = pool.key(record.key)?.origin ?? ""
        pool.closed(connection, actions: &actions.value)
        perform()
        turns?.ended(on: connection)
    }

    /// Called when a connection is closed, by the peer or by `LoopConnections.close(_:)`.
    func closed(_ connection: ConnectionPool.ConnectionID) {
        if detached.removeValue(forKey: connection) != nil { return }
        let key = records.value[connection]?.key
        forget(connection)
        pool.closed(connection, actions: &actions.value)
        perform()
        stopSharers(of: key)
        turns?.ended(on: connection)
    }

    private func learn(_ capacity: Int, of key: ConnectionPool.KeyID) {
        if let learn = settings.learn, let origin = pool.key(key)?.origin { learn(origin, capacity) }
    }

    /// Called when the number of exchanges that a connection carries at a time has changed.
    func capacityChanged(_ connection: ConnectionPool.ConnectionID, to capacity: Int) {
        if capacity > 0, let key = records.value[connection]?.key { learn(capacity, of: key) }
        pool.capacityChanged(connection, capacity: capacity, now: context.now, actions: &actions.value)
        perform()
        stopSharers(of: records.value[connection]?.key)
    }

    /// Called when the exchange of a connection that carries one at a time has turned out to last long.
    func becameLive(on connection: ConnectionPool.ConnectionID) {
        pool.becameLive(on: connection, actions: &actions.value)
        perform()
    }

    /// Called when the server of a connection over HTTP/2 allows extended CONNECT on it (RFC 8441 §3), or no longer
    /// does.
    func extendedConnectChanged(_ connection: ConnectionPool.ConnectionID, isAllowed: Bool) {
        guard let record = records.value[connection] else { return }
        if isAllowed {
            extendedConnections.insert(connection, record.key)
        } else {
            extendedConnections.remove(connection, record.key)
        }
    }

    // MARK: Alternatives over HTTP/3

    /// Returns whether an exchange waits for a connection that connects.
    func isClaimed(_ connection: ConnectionPool.ConnectionID) -> Bool { pool.claimant(of: connection) != nil }

    /// Called when a connection begins to race for an alternative.
    func mayBeHTTP3(_ connection: ConnectionPool.ConnectionID) {
        if let key = records.value[connection]?.key { alternativeConnections.insert(connection, key) }
    }

    /// Called when a connection turns out to be one over TCP, or takes no further exchange.
    func isNotHTTP3(_ connection: ConnectionPool.ConnectionID) {
        if let key = records.value[connection]?.key { alternativeConnections.remove(connection, key) }
    }

    /// Called when a connection to an alternative is open: those over TCP take no further exchange.
    func movesToHTTP3(_ connection: ConnectionPool.ConnectionID) {
        guard let key = records.value[connection]?.key else { return }
        for other in records.value.connections
        where records.value[other]?.key == key && !alternativeConnections.contains(other, key) {
            draining(other)
        }
    }

    /// Called when a connection takes no further exchange.
    func draining(_ connection: ConnectionPool.ConnectionID) {
        extendedConnectChanged(connection, isAllowed: false)
        isNotHTTP3(connection)
        pool.draining(connection, actions: &actions.value)
        perform()
        stopSharers(of: records.value[connection]?.key)
    }

    /// Called when the server of a connection over HTTP/2 requires HTTP/1.1 (RFC 9113 §7).
    func requiresHTTP1(_ connection: ConnectionPool.ConnectionID) {
        guard let key = records.value[connection]?.key, let destination = destinations[key], destination.allowsHTTP2
        else { return }
        destination.speaksHTTP1 = true
        learn(1, of: key)
        destinations[key] = Destination(overHTTP1: destination)
        // Those that still connect have offered HTTP/2. They are closed, and opened again for the exchanges that wait.
        for other in records.value.connections where records.value[other]?.key == key {
            pool.draining(other, actions: &actions.value)
        }
        perform()
    }

    /// Called when a connection has turned out unusable before anything of the exchange was sent on it.
    func returned(_ exchange: HTTPExchange) {
        exchange.connection = nil
        if exchange.upgrade != nil { handshakes.leave(exchange.id) }
        if exchange.isFirstOnConnection { exchange.newConnectionsLost += 1 }
        guard exchange.newConnectionsLost <= Self.newConnectionsPerExchange else {
            let reason = "the server ended each new connection before the request was sent"
            return exchange.handler.didEnd(EngineError(.connectionFailed, reason), isDeadConnection: false)
        }
        exchange.stopsConnecting()
        submit(exchange)
    }
}
#endif
