#if os(Linux)
/// A connection that is open.
protocol PooledCarrier: ExchangeCarrier {
    var id: ConnectionPool.ConnectionID { get }
    /// Carries an exchange, for which the pool has found room.
    func start(_ exchange: HTTPExchange)
    func close()
}

extension HTTP1Carrier: PooledCarrier {}
extension HTTP2Carrier: PooledCarrier {}

/// The connections of one session, and the exchanges that use them or wait for one. Confined to the loop's thread.
///
/// `ConnectionPool` decides; this class opens and closes the connections and starts the exchanges.
package final class ExchangePool {
    /// The settings of a pool.
    package struct Settings {
        package var connectionsPerOrigin: Int
        package var connections: Int
        /// Nanoseconds.
        package var idleLifetime: UInt64
        /// A Boolean value that indicates whether the newest of equally urgent exchanges goes first.
        package var isNewestFirst: Bool
        /// The limits for the silence of connections over HTTP/2.
        var liveness = HTTP2Liveness.Limits()
        /// Answers the challenges of a proxy for a tunnel.
        package var authorizeProxy: @Sendable (_ proxy: ProxyAddress, _ target: String) -> ProxyTunnel.Authorize

        package init(
            connectionsPerOrigin: Int, connections: Int, idleLifetime: UInt64, isNewestFirst: Bool,
            authorizeProxy: @escaping @Sendable (_ proxy: ProxyAddress, _ target: String) -> ProxyTunnel.Authorize
        ) {
            self.connectionsPerOrigin = connectionsPerOrigin
            self.connections = connections
            self.idleLifetime = idleLifetime
            self.isNewestFirst = isNewestFirst
            self.authorizeProxy = authorizeProxy
        }
    }

    private enum Entry {
        case connecting(ConnectAttempt)
        case open(any PooledCarrier)
    }

    private static let keptDestinations = 2_048

    private let settings: Settings
    private let context: LoopContext
    private let resumption = TLSResumption()
    private var pool: ConnectionPool
    private var entries: [ConnectionPool.ConnectionID: Entry] = [:]
    /// The exchanges that wait for a connection.
    private var waiting: [UInt64: HTTPExchange] = [:]
    /// The exchange that is being submitted. It most often gets a connection at once.
    private var submitted: HTTPExchange?
    private var lastID: UInt64 = 0
    /// The destinations by the number of their key in the pool, for the connections that the pool opens.
    private var destinations: [ConnectionPool.KeyID: Destination] = [:]
    /// The number of destinations at which those that the pool has forgotten are removed.
    private var destinationLimit = keptDestinations
    /// The number of destinations that are remembered.
    var destinationCount: Int { destinations.count }
    private var actions: [ConnectionPool.Action] = []
    private var isPerforming = false
    private lazy var idleTimer = LoopTimer(self)

    package init(_ settings: Settings, context: LoopContext) {
        self.settings = settings
        self.context = context
        pool = ConnectionPool(
            limits: ConnectionPool.Limits(
                connectionsPerOrigin: settings.connectionsPerOrigin, connections: settings.connections,
                idleLifetime: settings.idleLifetime),
            order: settings.isNewestFirst ? .lastInFirstOut : .firstInFirstOut)
    }

    /// The limits for the silence of connections over HTTP/2.
    var livenessLimits: HTTP2Liveness.Limits { settings.liveness }

    // MARK: Exchanges

    /// Submits an exchange. It starts at once or waits for a connection.
    package func submit(_ exchange: HTTPExchange) {
        lastID += 1
        exchange.id = lastID
        exchange.connection = nil
        submitted = exchange
        let waitsForShared = exchange.destination.allowsHTTP2 && !exchange.destination.speaksHTTP1
        if !submit(exchange, waitsForShared) {
            // The pool has forgotten the key.
            exchange.destination.key = nil
            _ = submit(exchange, waitsForShared)
        }
        if let waits = submitted {
            submitted = nil
            waiting[waits.id] = waits
            perform()
            // An exchange with a connection of its own was told with the changes of the pool.
            if waitsForShared, pool.connection(for: waits.id) == nil, pool.waitsToShare(waits.id) {
                waits.handler.didStartConnecting()
            }
        } else {
            perform()
        }
    }

    private func submit(_ exchange: HTTPExchange, _ waitsForShared: Bool) -> Bool {
        var submission = ConnectionPool.Submission(
            exchange: exchange.id, key: key(of: exchange.destination), priority: exchange.priority)
        submission.needsFresh = exchange.needsFreshConnection
        submission.waitsForShared = waitsForShared
        let isKnown = pool.submit(submission, actions: &actions)
        // The usual case needs no table: the exchange starts on a free connection.
        if actions.count == 1, case .assign(exchange.id, let connection, _) = actions[0] {
            actions.removeAll(keepingCapacity: true)
            submitted = nil
            start(exchange, on: connection)
        }
        return isKnown
    }

    private func key(of destination: Destination) -> ConnectionPool.KeyID {
        if let key = destination.key { return key }
        var key = PoolKey(origin: destination.origin)
        key.policy = destination.trust?.identifier ?? 0
        // A destination never changes its proxy, which the configuration of the session determines.
        let number = pool.index(of: key)
        destination.key = number
        destinations[number] = destination
        if destinations.count >= destinationLimit {
            destinations = destinations.filter { pool.key($0.key) != nil }
            destinationLimit = max(Self.keptDestinations, 2 * destinations.count)
        }
        return number
    }

    /// Ends an exchange without a call to its handler.
    package func cancel(_ exchange: HTTPExchange) {
        if let connection = exchange.connection { return connection.cancel(exchange) }
        guard waiting.removeValue(forKey: exchange.id) != nil else { return }
        _ = pool.withdraw(exchange.id, now: context.now, actions: &actions)
        perform()
    }

    /// Ends an exchange whose time limit for connecting has run out, without a call to its handler. The attempt to connect
    /// ends, too, so that no later exchange waits for a peer that does not answer.
    package func giveUpConnecting(_ exchange: HTTPExchange) {
        let connection = pool.connection(for: exchange.id)
        cancel(exchange)
        guard let connection, case .connecting(let attempt)? = entries[connection] else { return }
        attempt.cancel()
        entries[connection] = nil
        pool.closed(connection, actions: &actions)
        perform()
    }

    /// Lets the connection of an exchange take no other exchange, because the peer does not answer.
    package func avoidConnection(of exchange: HTTPExchange) {
        guard let carrier = exchange.connection as? HTTP2Carrier else { return }
        draining(carrier)
    }

    /// Applies the changed priority of an exchange: among those that wait for a connection, or at the server.
    package func prioritize(_ exchange: HTTPExchange) {
        if let carrier = exchange.connection as? HTTP2Carrier { return carrier.prioritize(exchange) }
        pool.prioritize(exchange.id, priority: exchange.priority)
    }

    /// Closes all connections. No exchange is left.
    package func close() {
        pool.closeAll(actions: &actions)
        perform()
        context.cancel(idleTimer)
    }

    // MARK: Connections

    func finished(_ carrier: any PooledCarrier, isReusable: Bool) {
        if !isReusable, carrier is HTTP1Carrier { entries[carrier.id] = nil }
        pool.finished(on: carrier.id, isReusable: isReusable, now: context.now, actions: &actions)
        perform()
    }

    /// Handles the end of a connection whose exchanges have ended or are told by the caller.
    func closed(_ carrier: any PooledCarrier) {
        entries[carrier.id] = nil
        pool.closed(carrier.id, actions: &actions)
        perform()
    }

    func capacityChanged(_ carrier: any PooledCarrier, to capacity: Int) {
        pool.capacityChanged(carrier.id, capacity: capacity, now: context.now, actions: &actions)
        perform()
    }

    func draining(_ carrier: any PooledCarrier) {
        pool.draining(carrier.id, actions: &actions)
        perform()
    }

    /// Performs the actions of the pool, also those that the performed ones cause.
    private func perform() {
        if isPerforming { return }
        isPerforming = true
        while !actions.isEmpty {
            let batch = actions
            actions.removeAll(keepingCapacity: true)
            for action in batch { perform(action) }
        }
        isPerforming = false
        if !pool.claimChanges.isEmpty { tellClaims() }
        scheduleIdleTimer()
    }

    /// Starts and stops the time limits for connecting.
    private func tellClaims() {
        let changes = pool.claimChanges
        pool.claimChanges.removeAll(keepingCapacity: true)
        for change in changes {
            guard let exchange = waiting[change.exchange] else { continue }
            if change.hasConnection {
                exchange.handler.didStartConnecting()
            } else {
                exchange.handler.didStopConnecting()
            }
        }
    }

    /// Wakes the pool when the next idle connection expires. The timer is not moved back when the deadline is: it then
    /// fires in vain, which costs less than to move it with each exchange.
    private func scheduleIdleTimer() {
        guard let deadline = pool.nextIdleDeadline else { return }
        if deadline < idleTimer.deadline { context.schedule(idleTimer, at: deadline) }
    }

    private func perform(_ action: ConnectionPool.Action) {
        switch action {
        case .assign(let id, let connection, _):
            if let exchange = waiting.removeValue(forKey: id) {
                start(exchange, on: connection)
            } else if let exchange = submitted, exchange.id == id {
                submitted = nil
                start(exchange, on: connection)
            }
        case .open(let connection, let key, _): open(connection, key)
        case .close(let connection):
            switch entries.removeValue(forKey: connection) {
            case .connecting(let attempt): attempt.cancel()
            case .open(let carrier): carrier.close()
            case nil: break
            }
        }
    }

    private func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) {
        guard case .open(let carrier) = entries[connection] else { return }
        carrier.start(exchange)
    }

    private func open(_ connection: ConnectionPool.ConnectionID, _ key: ConnectionPool.KeyID) {
        guard let destination = destinations[key] else { return }
        var authorize: ProxyTunnel.Authorize = { _, _ in nil }
        if let proxy = destination.proxy {
            authorize = settings.authorizeProxy(
                proxy, ProxyAddress.authority(destination.host, port: destination.port))
        }
        let attempt = ConnectAttempt(
            connection, to: destination, context: context, resumption: resumption, authorize: authorize, owner: self)
        entries[connection] = .connecting(attempt)
        attempt.start()
    }
}

extension ExchangePool: ConnectAttemptOwner, TimerHandler {
    func attempt(_ attempt: ConnectAttempt, didConnect stream: ByteStream, info: ConnectionInfo) {
        do {
            if stream.negotiatedProtocol == "h2" || attempt.destination.assumesHTTP2 {
                let carrier = try HTTP2Carrier(attempt.id, over: stream, info: info, pool: self, context: context)
                entries[attempt.id] = .open(carrier)
                pool.opened(attempt.id, capacity: carrier.capacity, now: context.now, actions: &actions)
            } else {
                let carrier = HTTP1Carrier(attempt.id, over: stream, info: info, pool: self, context: context)
                entries[attempt.id] = .open(carrier)
                attempt.destination.speaksHTTP1 = true
                pool.opened(attempt.id, capacity: 1, now: context.now, actions: &actions)
            }
        } catch {
            return self.attempt(attempt, didFail: error)
        }
        perform()
        // Exchanges that waited to share the connection wait in the queue again, unless it took them or one is opened for
        // them.
        guard attempt.destination.allowsHTTP2 else { return }
        for exchange in waiting.values
        where exchange.destination.key == attempt.destination.key && pool.connection(for: exchange.id) == nil {
            exchange.handler.didStopConnecting()
        }
    }

    func attempt(_ attempt: ConnectAttempt, didFail error: EngineError) {
        entries[attempt.id] = nil
        let failed = pool.openFailed(attempt.id, actions: &actions).flatMap { waiting.removeValue(forKey: $0) }
        perform()
        failed?.handler.didEnd(error, isDeadConnection: false)
    }

    package func timerFired(_ timer: LoopTimer) {
        pool.expireIdle(now: context.now, actions: &actions)
        perform()
        scheduleIdleTimer()
    }
}
#endif
