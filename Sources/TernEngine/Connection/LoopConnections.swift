#if os(Linux)
import TernConcurrency

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

/// The connections of one session on one loop. Confined to the loop's thread.
package final class LoopConnections {
    private enum Entry {
        case connecting(ConnectAttempt)
        case connectingOverHTTP3(HTTP3Attempt)
        case racing(RacingAttempt)
        case open(any PooledCarrier)
    }

    /// The settings of connections.
    package struct Settings: Sendable {
        /// The number of bytes of a head, which servers over HTTP/2 are told. At least the largest limit of an
        /// exchange.
        package var headLimit = HTTP2Session.Settings().headLimit
        /// The tickets of TLS. All loops of a session share them.
        let resumption = TLSResumption()
        let http3Resumption = HTTP3Resumption()
        /// The alternatives over HTTP/3. All loops of a session share them.
        let alternatives = Alternatives()
        /// The time in nanoseconds after which TCP starts, while an alternative has not answered.
        package var http3HeadStart: UInt64 = 200_000_000
        /// The limits for the silence of connections over HTTP/2.
        var liveness = HTTP2Liveness.Limits()
        /// The limits for the silence of connections over HTTP/1 that owe an answer.
        var path = HTTP1Liveness.Limits()

        package init() {}

        /// Sets the silences, in nanoseconds, after which a connection over HTTP/2 sends PING, and the time for an
        /// answer.
        package mutating func setLiveness(silences: [UInt64], answer: UInt64) {
            liveness.silences = silences
            liveness.answer = answer
        }
    }

    let settings: Settings
    private let context: LoopContext
    private let entries = Confined(ConnectionTable<Entry>())
    /// The connections that another protocol uses. The pool can use their numbers' slots again.
    private var detached: [ConnectionPool.ConnectionID: HTTP1Carrier] = [:]
    /// The pool, which owns the connections.
    private unowned let pool: ExchangePool

    init(_ settings: Settings, context: LoopContext, pool: ExchangePool) {
        self.settings = settings
        self.context = context
        self.pool = pool
    }

    // MARK: The carriers' calls

    func finished(_ carrier: any PooledCarrier, isReusable: Bool) {
        // The carrier has closed its socket.
        if !isReusable, carrier is HTTP1Carrier { return closed(carrier) }
        pool.finished(on: carrier.id, isReusable: isReusable)
    }

    /// Removes a connection that has ended. The caller ends its exchanges.
    func closed(_ carrier: any PooledCarrier) {
        if entries.value.remove(carrier.id) == nil { detached[carrier.id] = nil }
        pool.closed(carrier.id)
    }

    /// Removes a connection from the pool that another protocol uses from now on.
    func detached(_ carrier: HTTP1Carrier) {
        guard entries.value.remove(carrier.id) != nil else { return }
        detached[carrier.id] = carrier
        pool.detached(carrier.id)
    }

    /// Closes the connections that other protocols use.
    func closeDetached() {
        let carriers = detached.values
        detached = [:]
        for carrier in carriers { carrier.close() }
    }

    func capacityChanged(_ carrier: any PooledCarrier, to capacity: Int) {
        pool.capacityChanged(carrier.id, to: capacity)
    }

    func becameLive(_ carrier: any PooledCarrier) { pool.becameLive(on: carrier.id) }

    func extendedConnectChanged(_ carrier: any PooledCarrier, isAllowed: Bool) {
        pool.extendedConnectChanged(carrier.id, isAllowed: isAllowed)
    }

    /// Takes account of the alternatives that a response names.
    func received(_ head: ReceivedHead, for exchange: HTTPExchange, over alternative: AlternativeService? = nil) {
        guard exchange.destination.takesAlternatives else { return }
        settings.alternatives.learn(from: head, of: exchange.destination, over: alternative, now: context.now)
    }

    func draining(_ carrier: any PooledCarrier) { pool.draining(carrier.id) }

    func requiresHTTP1(_ carrier: any PooledCarrier) { pool.requiresHTTP1(carrier.id) }

    /// Gives an exchange back of which nothing was sent.
    func returned(_ exchange: HTTPExchange) { pool.returned(exchange) }
}

/// The calls of `ExchangePool`.
extension LoopConnections {
    /// Whether the next connection to a destination tries HTTP/3.
    func hasAlternative(for destination: Destination) -> Bool {
        settings.alternatives.best(for: destination, now: context.now) != nil
    }

    /// Opens a connection. `isBeside` tells whether others to the same destination are open.
    func open(
        _ connection: ConnectionPool.ConnectionID, to destination: Destination, isBeside: () -> Bool,
        authorize: @escaping ProxyTunnel.Authorize
    ) {
        if destination.usesHTTP3 {
            let attempt = HTTP3Attempt(
                connection, to: destination, context: context, connections: self, owner: self)
            entries.value[connection] = .connectingOverHTTP3(attempt)
            return attempt.start()
        }
        if let alternative = settings.alternatives.best(for: destination, now: context.now) {
            let attempt = RacingAttempt(
                connection, to: destination, at: alternative, isBeside: isBeside(), context: context,
                authorize: authorize, owner: self)
            entries.value[connection] = .racing(attempt)
            pool.mayBeHTTP3(connection)
            return attempt.start()
        }
        let attempt = ConnectAttempt(
            connection, to: destination, context: context, resumption: settings.resumption, authorize: authorize,
            owner: self)
        entries.value[connection] = .connecting(attempt)
        attempt.start()
    }

    /// Starts an exchange on an open connection.
    func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) {
        if case .open(let carrier) = entries.value[connection] {
            if exchange.usesExtendedConnect, (carrier as? HTTP2Carrier)?.allowsExtendedConnect != true {
                // A new connection, whose SETTINGS have not arrived or do not allow it. The exchange gets one of its
                // own.
                exchange.refusesExtendedConnect = true
                finished(carrier, isReusable: carrier.takesExchanges)
                return pool.returned(exchange)
            }
            guard exchange.upgrade == nil || exchange.usesExtendedConnect || carrier is HTTP1Carrier else {
                finished(carrier, isReusable: true)
                let reason = "an HTTP/2 connection cannot switch to another protocol (RFC 9113 §8.6)"
                return exchange.handler.didEnd(EngineError(.invalidRequest, reason), isDeadConnection: false)
            }
            if carrier.takesExchanges { return carrier.start(exchange) }
            pool.finished(on: connection, isReusable: false)
        }
        // The peer has begun to close it, which the pool learns with the next event of its socket.
        pool.returned(exchange)
    }

    /// Tells a connection that an exchange waits for it.
    func becameNeeded(_ connection: ConnectionPool.ConnectionID) {
        if case .racing(let attempt) = entries.value[connection] { attempt.becameNeeded() }
    }

    /// Closes a connection, which may still be connecting. No exchange is left on it.
    func close(_ connection: ConnectionPool.ConnectionID) {
        end(connection)
        pool.closed(connection)
    }

    private func end(_ connection: ConnectionPool.ConnectionID) {
        switch entries.value.remove(connection) {
        case .connecting(let attempt): attempt.cancel()
        case .connectingOverHTTP3(let attempt): attempt.cancel()
        case .racing(let attempt): attempt.cancel()
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
            return pool.connected(attempt.id, capacity: 1, isShared: false)
        }
        do {
            let carrier = try HTTP2Carrier(attempt.id, over: stream, opening: opening, pool: self, context: context)
            entries.value[attempt.id] = .open(carrier)
            pool.connected(attempt.id, capacity: 1, isShared: true)
        } catch {
            failed(attempt.id, error)
        }
    }

    func attempt(_ attempt: ConnectAttempt, didFail error: EngineError) { failed(attempt.id, error) }

    private func failed(_ connection: ConnectionPool.ConnectionID, _ error: EngineError) {
        entries.value[connection] = nil
        pool.connectFailed(connection, error)
    }
}

extension LoopConnections: HTTP3AttemptOwner {
    func attemptStartsHandshakes(_ attempt: HTTP3Attempt) {}

    func attempt(_ attempt: HTTP3Attempt, didConnect carrier: HTTP3Carrier) { connected(carrier) }

    func attempt(_ attempt: HTTP3Attempt, didFail error: EngineError) { failed(attempt.id, error) }

    private func connected(_ carrier: HTTP3Carrier) {
        entries.value[carrier.id] = .open(carrier)
        pool.connected(carrier.id, capacity: 1, isShared: true)
        carrier.reportCapacity()
    }
}

/// The calls of `RacingAttempt`.
extension LoopConnections {
    /// Whether an exchange waits for a connection that connects.
    func isClaimed(_ connection: ConnectionPool.ConnectionID) -> Bool { pool.isClaimed(connection) }

    func race(_ race: RacingAttempt, didConnect carrier: HTTP3Carrier) {
        connected(carrier)
        pool.movesToHTTP3(carrier.id)
    }

    func race(
        _ race: RacingAttempt, didConnect attempt: ConnectAttempt, over stream: ByteStream,
        opening: ConnectionInfo.Opening
    ) {
        pool.isNotHTTP3(race.id)
        self.attempt(attempt, didConnect: stream, opening: opening)
    }

    func race(_ race: RacingAttempt, didFail error: EngineError) { failed(race.id, error) }
}
#endif
