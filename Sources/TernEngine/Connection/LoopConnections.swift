#if os(Linux)
import TernConcurrency

/// A loop that opens and holds connections for a pool. Confined to the thread of the pool's loop.
package protocol ConnectionLoop: AnyObject {
    /// Whether the loop can serve connections.
    var isAvailable: Bool { get }
    /// The work of the connections of all pools on the loop, as the sum of `LoopLoads.work(on:)`.
    var work: Int { get }
    /// Adds to the work of the loop, or subtracts from it. Can be called on any thread.
    func addWork(_ change: Int)
    /// Opens a connection.
    func open(
        _ connection: ConnectionPool.ConnectionID, to destination: Destination,
        authorize: @escaping ProxyTunnel.Authorize)
    /// Starts an exchange on an open connection.
    func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID)
    /// Closes a connection, which may still be connecting. No exchange is left on it. The observer's `closed(_:)` is
    /// called when that is done, also for a connection that had ended before.
    func close(_ connection: ConnectionPool.ConnectionID)
}

/// The pool, or the object that reports to it from another loop. Confined to the thread of the connections' loop.
package protocol ConnectionObserver: AnyObject {
    /// Called when a connection is open for so many exchanges at a time. Over HTTP/2, it `isShared`: it carries so many
    /// until `capacityChanged(_:to:)` reports the limit of the server.
    func connected(_ connection: ConnectionPool.ConnectionID, capacity: Int, isShared: Bool)
    /// Called when a connection cannot be opened.
    func connectFailed(_ connection: ConnectionPool.ConnectionID, _ error: EngineError)
    /// Called when an exchange has left its connection. One that is not reusable takes no further exchange.
    func finished(on connection: ConnectionPool.ConnectionID, isReusable: Bool)
    /// Called when the server has switched a connection to another protocol. It no longer belongs to the pool, but
    /// stays on its loop until `closed(_:)`.
    func detached(_ connection: ConnectionPool.ConnectionID)
    /// Called when a connection is closed, by the peer or by `ConnectionLoop.close(_:)`.
    func closed(_ connection: ConnectionPool.ConnectionID)
    /// Called when the number of exchanges that a connection carries at a time has changed.
    func capacityChanged(_ connection: ConnectionPool.ConnectionID, to capacity: Int)
    /// Called when the exchange of a connection that carries one at a time has turned out to last long.
    func becameLive(on connection: ConnectionPool.ConnectionID)
    /// Called when the server of a connection over HTTP/2 allows extended CONNECT on it (RFC 8441 §3), or no longer
    /// does.
    func extendedConnectChanged(_ connection: ConnectionPool.ConnectionID, isAllowed: Bool)
    /// Called when a connection takes no further exchange.
    func draining(_ connection: ConnectionPool.ConnectionID)
    /// Called when the server of a connection over HTTP/2 requires HTTP/1.1 (RFC 9113 §7).
    func requiresHTTP1(_ connection: ConnectionPool.ConnectionID)
    /// Called when a connection has turned out unusable before anything of the exchange was sent on it.
    func returned(_ exchange: HTTPExchange)
}

/// A connection that is open.
protocol PooledCarrier: ExchangeCarrier {
    var id: ConnectionPool.ConnectionID { get }
    /// Whether the peer takes a further exchange.
    var takesExchanges: Bool { get }
    /// Carries an exchange, for which the pool has found room.
    func start(_ exchange: HTTPExchange)
    func close()
}

extension HTTP1Carrier: PooledCarrier {
    func becomesLive() { pool.becameLive(self) }
}

extension HTTP2Carrier: PooledCarrier {}

/// The connections of one session that live on one loop. Confined to the loop's thread.
package final class LoopConnections {
    private enum Entry {
        case connecting(ConnectAttempt)
        case open(any PooledCarrier)
    }

    /// The settings of connections.
    package struct Settings: Sendable {
        /// The number of bytes of a head, which servers over HTTP/2 are told. At least the largest limit of an
        /// exchange.
        package var headLimit = HTTP2Session.Settings().headLimit
        /// The tickets of TLS. All loops of a session share them.
        let resumption = TLSResumption()
        /// The limits for the silence of connections over HTTP/2.
        var liveness = HTTP2Liveness.Limits()
        /// The limits for the silence of connections over HTTP/1 that owe an answer.
        var path = HTTP1Liveness.Limits()

        package init() {}
    }

    let settings: Settings
    private let context: LoopContext
    private let entries = Confined(ConnectionTable<Entry>())
    /// The connections that another protocol uses. The pool can use their numbers' slots again.
    private var detached: [ConnectionPool.ConnectionID: HTTP1Carrier] = [:]
    /// The pool, or the object that reports to it. It outlives the connections.
    private unowned let observer: any ConnectionObserver

    package init(_ settings: Settings, context: LoopContext, observer: any ConnectionObserver) {
        self.settings = settings
        self.context = context
        self.observer = observer
    }

    // MARK: The carriers' calls

    func finished(_ carrier: any PooledCarrier, isReusable: Bool) {
        // The carrier has closed its socket.
        if !isReusable, carrier is HTTP1Carrier { return closed(carrier) }
        observer.finished(on: carrier.id, isReusable: isReusable)
    }

    /// Removes a connection that has ended. The caller ends its exchanges.
    func closed(_ carrier: any PooledCarrier) {
        if entries.value.remove(carrier.id) == nil { detached[carrier.id] = nil }
        observer.closed(carrier.id)
    }

    /// Removes a connection from the pool that another protocol uses from now on.
    func detached(_ carrier: HTTP1Carrier) {
        guard entries.value.remove(carrier.id) != nil else { return }
        detached[carrier.id] = carrier
        observer.detached(carrier.id)
    }

    /// Closes the connections that other protocols use.
    func closeDetached() {
        let carriers = detached.values
        detached = [:]
        for carrier in carriers { carrier.close() }
    }

    func capacityChanged(_ carrier: any PooledCarrier, to capacity: Int) {
        observer.capacityChanged(carrier.id, to: capacity)
    }

    func becameLive(_ carrier: any PooledCarrier) { observer.becameLive(on: carrier.id) }

    func extendedConnectChanged(_ carrier: any PooledCarrier, isAllowed: Bool) {
        observer.extendedConnectChanged(carrier.id, isAllowed: isAllowed)
    }

    func draining(_ carrier: any PooledCarrier) { observer.draining(carrier.id) }

    func requiresHTTP1(_ carrier: any PooledCarrier) { observer.requiresHTTP1(carrier.id) }

    /// Gives an exchange back of which nothing was sent.
    func returned(_ exchange: HTTPExchange) { observer.returned(exchange) }
}

extension LoopConnections: ConnectionLoop {
    package var isAvailable: Bool { true }

    package var work: Int { context.loop.work }

    package func addWork(_ change: Int) { context.loop.addWork(change) }

    package func open(
        _ connection: ConnectionPool.ConnectionID, to destination: Destination,
        authorize: @escaping ProxyTunnel.Authorize
    ) {
        let attempt = ConnectAttempt(
            connection, to: destination, context: context, resumption: settings.resumption, authorize: authorize,
            owner: self)
        entries.value[connection] = .connecting(attempt)
        attempt.start()
    }

    package func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) {
        if case .open(let carrier) = entries.value[connection] {
            if exchange.usesExtendedConnect, (carrier as? HTTP2Carrier)?.allowsExtendedConnect != true {
                // A new connection, whose SETTINGS have not arrived or do not allow it. The exchange gets one of its
                // own.
                exchange.refusesExtendedConnect = true
                finished(carrier, isReusable: carrier.takesExchanges)
                return observer.returned(exchange)
            }
            guard exchange.upgrade == nil || exchange.usesExtendedConnect || carrier is HTTP1Carrier else {
                finished(carrier, isReusable: true)
                let reason = "an HTTP/2 connection cannot switch to another protocol (RFC 9113 §8.6)"
                return exchange.handler.didEnd(EngineError(.invalidRequest, reason), isDeadConnection: false)
            }
            if carrier.takesExchanges { return carrier.start(exchange) }
            observer.finished(on: connection, isReusable: false)
        }
        // The connection was closed, or the peer began to close it, while the pool on another loop chose it.
        observer.returned(exchange)
    }

    package func close(_ connection: ConnectionPool.ConnectionID) {
        end(connection)
        observer.closed(connection)
    }

    /// Closes all connections, without a call to the observer.
    package func closeAll() {
        for connection in entries.value.connections { end(connection) }
        closeDetached()
    }

    private func end(_ connection: ConnectionPool.ConnectionID) {
        switch entries.value.remove(connection) {
        case .connecting(let attempt): attempt.cancel()
        case .open(let carrier): carrier.close()
        case nil: break
        }
    }
}

extension LoopConnections: ConnectAttemptOwner {
    func attempt(_ attempt: ConnectAttempt, didConnect stream: ByteStream, opening: ConnectionInfo.Opening) {
        guard stream.negotiatedProtocol == "h2" || attempt.destination.assumesHTTP2 else {
            let carrier = HTTP1Carrier(attempt.id, over: stream, opening: opening, pool: self, context: context)
            entries.value[attempt.id] = .open(carrier)
            return observer.connected(attempt.id, capacity: 1, isShared: false)
        }
        do {
            let carrier = try HTTP2Carrier(attempt.id, over: stream, opening: opening, pool: self, context: context)
            entries.value[attempt.id] = .open(carrier)
            observer.connected(attempt.id, capacity: 1, isShared: true)
        } catch {
            self.attempt(attempt, didFail: error)
        }
    }

    func attempt(_ attempt: ConnectAttempt, didFail error: EngineError) {
        entries.value[attempt.id] = nil
        observer.connectFailed(attempt.id, error)
    }
}
#endif
