#if os(Linux)
package import TernConcurrency

/// The exchanges of one session on one loop that use a connection or wait for one. Confined to the loop's thread.
///
/// `ConnectionPool` decides; this class lets `LoopConnections` open and close the connections and start the exchanges.
package final class ExchangePool {
    /// The settings of a pool.
    package struct Settings {
        package var connectionsPerOrigin: Int
        package var connections: Int
        /// Nanoseconds.
        package var idleLifetime: UInt64
        /// The number of connections to one origin whose exchanges last long, beside the others.
        package var liveConnectionsPerOrigin = Int.max
        /// The time in nanoseconds after which a connection takes no further exchange; `UInt64.max` for never.
        package var age = UInt64.max
        /// The number of exchanges that a connection takes in all; at least 1.
        package var uses = Int.max
        /// Whether exchanges wait for the streams of a full connection, and no other is opened.
        package var waitsForStreams = false
        /// The highest of the low priorities, whose exchanges leave a share of the connections to others.
        package var lowPriority = Int.min
        /// Whether the newest of equally urgent exchanges goes first.
        package var isNewestFirst: Bool
        /// The room for connections that pools on other loops share with this one; nil for a pool with limits of its
        /// own.
        package var room: SharedRoom.Part?
        /// Called with the number of exchanges that a connection to an origin carries at a time: 1 over HTTP/1.
        package var learn: (@Sendable (_ origin: String, _ capacity: Int) -> Void)?
        /// The settings of connections.
        package var connection = LoopConnections.Settings()
        /// Answers the challenges of a proxy for a tunnel.
        package var authorizeProxy: @Sendable (_ proxy: ProxyAddress, _ target: String) -> ProxyTunnel.Authorize
        /// Sends the pool `closeOldestIdle`, for others in the process that lack a descriptor; nil for nobody.
        package var spares: SpareDescriptors.Holder?

        /// The greatest time that others wait for one handshake, from its request on, in nanoseconds. 10 seconds by
        /// default.
        var handshakeTurn: UInt64 = 10_000_000_000

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

    /// A connection of the pool.
    struct ConnectionRecord {
        let key: ConnectionPool.KeyID
        var isOpen = false
        /// Whether an exchange was started on the connection.
        var isUsed = false
    }

    /// The number of times that an exchange goes to another new connection after a new one ended before the request was
    /// sent.
    static let newConnectionsPerExchange = 2
    private static let keptDestinations = 2_048
    private static let startsBeforeTurn = 32

    let settings: Settings
    let context: LoopContext
    private let poolPlace: Confined<ConnectionPool>
    var pool: ConnectionPool {
        @inline(__always) _read { yield poolPlace.value }
        @inline(__always) _modify { yield &poolPlace.value }
    }
    /// The connections that open at this moment, while the pool gives them their first exchanges.
    var justOpened: [ConnectionPool.ConnectionID] = []
    /// Whether an exchange starts outside of `perform()`.
    private var isStartingDirectly = false
    private lazy var connections = LoopConnections(settings.connection, context: context, pool: self)
    let records = Confined(ConnectionTable<ConnectionRecord>())
    /// The origins of the connections that another protocol uses, which the pool no longer counts.
    var detached: [ConnectionPool.ConnectionID: String] = [:]
    /// The connections over HTTP/2 whose servers allow extended CONNECT.
    var extendedConnections = KeyedConnections()
    /// The connections to alternatives over HTTP/3, and those that race with TCP for one.
    var alternativeConnections = KeyedConnections()
    /// The exchanges that wait for a connection.
    var waiting: [UInt64: HTTPExchange] = [:]
    /// The keys whose exchanges wait to share a first connection, so that their time limits for connecting run.
    private var keysWithSharers: Set<ConnectionPool.KeyID> = []
    /// The exchange that is being submitted. It most often gets a connection at once.
    private var submitted: HTTPExchange?
    private var lastID: UInt64 = 0
    /// The destinations by the number of their key in the pool, for the connections that the pool opens.
    var destinations: [ConnectionPool.KeyID: Destination] = [:]
    /// The number of destinations at which those that the pool has forgotten are removed.
    private var destinationLimit = keptDestinations
    /// The number of destinations that are remembered.
    var destinationCount: Int { destinations.count }
    let actions = Confined<[ConnectionPool.Action]>([])
    private var isPerforming = false
    private var isGivingRoom = false
    /// The number of exchanges that were started while others waited for room, since the pool has given some.
    private var startsWhileWanted = 0
    private let expiryTimer = LoopTimer()
    /// The exchanges for which no descriptor was free. They are submitted again when the timer fires.
    var lacking: [UInt64: HTTPExchange] = [:]
    let lackTimer = LoopTimer()
    /// The exchanges that ask for another protocol.
    var handshakes: HandshakeTurns {
        if let turns { return turns }
        let turns = HandshakeTurns(context: context, turnLength: settings.handshakeTurn, owner: self)
        self.turns = turns
        return turns
    }
    /// nil until an exchange asks for another protocol.
    var turns: HandshakeTurns?

    /// Creates a pool on a loop.
    package init(_ settings: Settings, context: LoopContext) {
        self.settings = settings
        self.context = context
        var limits = ConnectionPool.Limits(
            connectionsPerOrigin: settings.room?.connectionsPerOrigin ?? settings.connectionsPerOrigin,
            connections: settings.room == nil ? settings.connections : .max, idleLifetime: settings.idleLifetime,
            streams: .max)
        limits.liveConnectionsPerOrigin = max(1, settings.liveConnectionsPerOrigin)
        limits.lowPriority = settings.lowPriority
        limits.age = settings.age
        limits.uses = max(1, settings.uses)
        limits.waitsForStreams = settings.waitsForStreams
        limits.sharesRoom = settings.room != nil
        let pool = ConnectionPool(
            limits: limits, order: settings.isNewestFirst ? .lastInFirstOut : .firstInFirstOut)
        poolPlace = Confined(pool)
        expiryTimer.setHandler(self)
        lackTimer.setHandler(self)
    }

    // MARK: Exchanges

    /// Submits an exchange. It starts at once or waits for a connection.
    package func submit(_ exchange: HTTPExchange) {
        lastID += 1
        exchange.id = lastID
        exchange.connection = nil
        // A paused transfer submits its exchange again.
        exchange.isConnecting = false
        exchange.usesExtendedConnect = exchange.upgrade != nil && canShareStream(exchange)
        // A stream needs no connection, and therefore no turn.
        if exchange.upgrade == nil || exchange.usesExtendedConnect {
            enqueue(exchange)
        } else {
            handshakes.enter(exchange)
        }
    }

    /// Returns whether a connection over HTTP/2 can carry the other protocol of an exchange on a stream (RFC 8441). It
    /// must have room now: streams that carry other protocols can last for ever, and a connection over HTTP/1.1 takes
    /// their place.
    private func canShareStream(_ exchange: HTTPExchange) -> Bool {
        guard let key = exchange.sharedDestination?.key, !exchange.refusesExtendedConnect,
            !exchange.needsFreshConnection, pool.hasFreeConnection(key)
        else { return false }
        return extendedConnections.hasOne(of: key)
    }

    /// Lets an exchange start at once or wait for a connection.
    private func enqueue(_ exchange: HTTPExchange) {
        submitted = exchange
        let destination = exchange.route
        if destination.takesAlternatives { destination.triesHTTP3 = connections.hasAlternative(for: destination) }
        let waitsForShared = destination.canShareConnections
        if !submit(exchange, waitsForShared) {
            // The pool has forgotten the key.
            destination.key = nil
            _ = submit(exchange, waitsForShared)
        }
        if let waits = submitted {
            submitted = nil
            waiting[waits.id] = waits
            perform()
            // An exchange with a connection of its own was told with the changes of the pool.
            if waitsForShared, pool.connection(for: waits.id) == nil, pool.waitsToShare(waits.id) {
                if let key = destination.key { keysWithSharers.insert(key) }
                waits.startsConnecting()
            } else if waiting[waits.id] != nil, pool.connection(for: waits.id) == nil {
                waits.handler.didStartWaiting()
            }
        } else {
            perform()
        }
        if destination.triesHTTP3 { openBeside(destination) }
    }

    /// Opens connections to a destination until there are `count` of them, as far as the limits allow. Exchanges that
    /// share a connection need one.
    package func connect(to destination: Destination, count: Int) {
        let isShared = destination.canShareConnections
        // The pool can have forgotten the key.
        if let known = destination.key, pool.key(known) == nil { destination.key = nil }
        let key = key(of: destination)
        let wanted = min(count, isShared ? 1 : min(settings.connectionsPerOrigin, settings.connections))
        let missing = wanted - pool.connectionCount(of: key)
        if missing > 0 { open(missing, of: key) }
    }

    /// Opens a connection to an alternative over HTTP/3 beside those over TCP, which serve the exchanges until it is
    /// open, and take no further ones afterwards. A limit that leaves no room for it keeps them in use.
    private func openBeside(_ destination: Destination) {
        guard let key = destination.key, destinations[key]?.takesAlternatives == true,
            !alternativeConnections.hasOne(of: key), hasOpenConnection(key),
            pool.connectionCount(of: key) < settings.connectionsPerOrigin
        else { return }
        open(1, of: key)
    }

    private func hasOpenConnection(_ key: ConnectionPool.KeyID) -> Bool {
        records.value.connections.contains { connection in
            records.value[connection].map { $0.isOpen && $0.key == key } ?? false
        }
    }

    private func open(_ missing: Int, of key: ConnectionPool.KeyID) {
        // A connection stays that connects for an exchange which is withdrawn.
        let exchanges = lastID + 1...lastID + UInt64(missing)
        lastID = exchanges.upperBound
        for exchange in exchanges {
            var submission = ConnectionPool.Submission(exchange: exchange, key: key, priority: settings.lowPriority + 1)
            submission.needsFresh = true
            _ = pool.submit(submission, actions: &actions.value)
        }
        perform()
        for exchange in exchanges { _ = pool.withdraw(exchange, now: context.now, actions: &actions.value) }
        perform()
    }

    private func submit(_ exchange: HTTPExchange, _ waitsForShared: Bool) -> Bool {
        var submission = ConnectionPool.Submission(
            exchange: exchange.id, key: key(of: exchange.route), priority: exchange.priority)
        submission.isLive = exchange.isLive
        submission.needsFresh = exchange.needsFreshConnection
        submission.waitsForShared = waitsForShared
        let isKnown = pool.submit(submission, actions: &actions.value)
        // The usual case needs no table: the exchange starts on a free connection. An exchange that is submitted again
        // because its connection has ended does not take this way: a series of ended connections would recurse.
        if !isStartingDirectly, actions.value.count == 1,
            case .assign(exchange.id, let connection, _) = actions.value[0]
        {
            actions.value.removeAll(keepingCapacity: true)
            submitted = nil
            isStartingDirectly = true
            start(exchange, on: connection)
            isStartingDirectly = false
        }
        return isKnown
    }

    private func key(of destination: Destination) -> ConnectionPool.KeyID {
        if let key = destination.key { return key }
        var key = PoolKey(origin: destination.origin)
        key.policy = destination.trust?.identifier ?? 0
        key.versions = destination.isForUpgrade ? 2 : destination.usesHTTP3 ? 3 : destination.allowsHTTP2 ? 1 : 0
        if destination.takesAlternatives { key.versions += 4 }
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

    /// Ends an exchange that waits or has a connection, without a call to its handler.
    package func cancel(_ exchange: HTTPExchange) {
        if exchange.cancelOnConnection() { return }
        if waiting.removeValue(forKey: exchange.id) != nil {
            _ = pool.withdraw(exchange.id, now: context.now, actions: &actions.value)
            perform()
        }
        lacking[exchange.id] = nil
        if exchange.upgrade != nil { handshakes.leave(exchange.id) }
    }

    /// Ends an exchange whose time limit for connecting has run out, without a call to its handler. The attempt to
    /// connect ends, too, so that no later exchange waits for a peer that does not answer.
    package func giveUpConnecting(_ exchange: HTTPExchange) {
        let connection = pool.connection(for: exchange.id)
        cancel(exchange)
        guard let connection, let record = records.value[connection], !record.isOpen else { return }
        pool.giveUp(connection, actions: &actions.value)
        perform()
    }

    /// Returns the number of connections that carry exchanges with the server of an exchange that waits, and whether
    /// exchanges that last long hold all that it could get.
    package func connectionsInUse(for exchange: HTTPExchange) -> (count: Int, areAllLive: Bool) {
        var inUse = pool.connectionsInUse(for: exchange.id)
        if inUse.areAllLive, settings.room?.isUsedElsewhere(exchange.route.origin) == true { inUse.areAllLive = false }
        return inUse
    }

    /// Applies the priority of an exchange that waits.
    package func prioritize(_ exchange: HTTPExchange) {
        if let carrier = exchange.connection as? any StreamCarrier { return carrier.prioritize(exchange) }
        guard pool.prioritize(exchange.id, priority: exchange.priority) else { return }
        pool.serve(exchange.id, actions: &actions.value)
        perform()
    }

    /// Closes all connections. No exchange is left.
    package func close() {
        connections.closeDetached()
        pool.closeAll(actions: &actions.value)
        perform()
        context.cancel(expiryTimer)
        context.cancel(lackTimer)
        turns?.close()
        settings.room?.leave()
    }

    /// The numbers of open connections by origin. Those that another protocol uses are active.
    package var openCounts: [String: ConnectionPool.OpenCount] {
        var counts = pool.openCounts
        for origin in detached.values { counts[origin, default: ConnectionPool.OpenCount()].active += 1 }
        return counts
    }

    /// Closes the connections that carry no exchange, and each other one when its last exchange has ended.
    package func drain() {
        for connection in records.value.connections { draining(connection) }
    }

    // MARK: Connections

    /// Performs the actions of the pool, also those that the performed ones cause.
    func perform() {
        if isPerforming { return }
        isPerforming = true
        while !actions.value.isEmpty {
            let batch = actions.value
            actions.value.removeAll(keepingCapacity: true)
            for action in batch { perform(action) }
        }
        isPerforming = false
        if !justOpened.isEmpty { justOpened = [] }
        if !pool.claimChanges.isEmpty { tellClaims() }
        if let room = settings.room, room.isWanted, !isGivingRoom { giveRoom(room) }
        scheduleExpiry()
    }

    // MARK: Room that pools on other loops share

    /// Receives a message of another pool of the session, or of others in the process that lack a descriptor.
    package func receive(_ message: SharedRoom.Message) {
        switch message {
        case .granted(let origin): pool.granted(origin, actions: &actions.value)
        case .giveRoom(let origin, let isOwed):
            pool.giveRoom(of: origin, isOwed: isOwed, actions: &actions.value)
        case .closeOldestIdle: pool.closeOldestIdle(actions: &actions.value)
        }
        perform()
    }

    /// Closes idle connections whose room others wait for. A pool that is always busy gives the room of one connection
    /// after a number of exchanges, so that no one waits for ever.
    private func giveRoom(_ room: SharedRoom.Part) {
        var messages: [SharedRoom.Message] = []
        if pool.idleCount > 0 { messages = room.requests() }
        if startsWhileWanted >= Self.startsBeforeTurn {
            startsWhileWanted = 0
            messages += room.turn { pool.richestOrigin(except: $0) }
        }
        isGivingRoom = true
        receive(messages)
        isGivingRoom = false
    }

    private func receive(_ messages: [SharedRoom.Message]) {
        for message in messages { receive(message) }
    }

    /// Starts and stops the time limits for connecting. An exchange that has lost one connection to another one
    /// meanwhile goes on with the time that it has left.
    private func tellClaims() {
        let changes = pool.claimChanges
        pool.claimChanges.removeAll(keepingCapacity: true)
        for change in changes {
            guard let exchange = waiting[change.exchange] else { continue }
            if pool.connection(for: change.exchange) != nil {
                exchange.startsConnecting()
                if let connection = pool.connection(for: change.exchange) { connections.becameNeeded(connection) }
            } else if !pool.waitsToShare(change.exchange) {
                exchange.stopsConnecting()
            }
        }
    }

    /// Stops the time limits for connecting of exchanges that waited to share a connection, and wait in the queue
    /// again. All that wait are looked at once for each first connection of a key.
    func stopSharers(of key: ConnectionPool.KeyID?) {
        guard let key, keysWithSharers.contains(key), !pool.awaitsSharedConnection(key) else { return }
        keysWithSharers.remove(key)
        for exchange in waiting.values
        where exchange.route.key == key && pool.connection(for: exchange.id) == nil {
            exchange.stopsConnecting()
        }
    }

    /// Wakes the pool when the next connection expires. The timer is not moved back when the deadline is: it then
    /// fires in vain, which costs less than to move it with each exchange.
    private func scheduleExpiry() {
        settings.spares?.oldestIsUnused(since: pool.oldestIdleTime)
        guard let deadline = pool.nextExpiry else { return }
        if deadline < expiryTimer.deadline { context.schedule(expiryTimer, at: deadline) }
    }

    private func perform(_ action: ConnectionPool.Action) {
        switch action {
        case .assign(let id, let connection, _):
            if let exchange = waiting.removeValue(forKey: id) {
                start(exchange, on: connection)
            } else if let exchange = submitted, exchange.id == id {
                submitted = nil
                start(exchange, on: connection)
            } else {
                // Of `connect(to:count:)`, on a connection that was open at once.
                pool.finished(on: connection, isReusable: true, now: context.now, actions: &actions.value)
            }
        case .open(let connection, let key, _): open(connection, key)
        case .close(let connection): close(connection)
        case .ask(let origin):
            receive(
                settings.room?.ask(origin, hasIdleOfOrigin: pool.hasIdle(origin), hasIdle: pool.idleCount > 0) ?? [])
        case .stopAsking(let origin): settings.room?.stopAsking(origin)
        case .giveBack(let origin, let count):
            receive(settings.room?.giveBack(origin, count: count) ?? [])
        }
    }

    private func start(_ exchange: HTTPExchange, on connection: ConnectionPool.ConnectionID) {
        guard var record = records.value[connection] else { return }
        if let room = settings.room, room.isWanted { startsWhileWanted += 1 }
        exchange.isFirstOnConnection = !record.isUsed
        exchange.startsAtOpening = !justOpened.isEmpty && justOpened.contains(connection)
        if !record.isUsed {
            record.isUsed = true
            records.value[connection] = record
        }
        if exchange.upgrade != nil, !exchange.usesExtendedConnect { handshakes.started(exchange.id, on: connection) }
        connections.start(exchange, on: connection)
    }

    /// Closes a connection, which `closed(_:)` confirms.
    private func close(_ connection: ConnectionPool.ConnectionID) {
        guard records.value[connection] != nil else { return pool.closed(connection, actions: &actions.value) }
        connections.close(connection)
    }

    /// Forgets a connection that no longer exists. Returns false if it is forgotten already.
    @discardableResult
    func forget(_ connection: ConnectionPool.ConnectionID) -> Bool {
        guard let record = records.value.remove(connection) else { return false }
        extendedConnections.remove(connection, record.key)
        alternativeConnections.remove(connection, record.key)
        return true
    }

    private func open(_ connection: ConnectionPool.ConnectionID, _ key: ConnectionPool.KeyID) {
        guard let destination = destinations[key] else { return }
        var authorize: ProxyTunnel.Authorize = { _, _ in nil }
        if let proxy = destination.proxy {
            authorize = settings.authorizeProxy(
                proxy, ProxyAddress.authority(destination.host, port: destination.port))
        }
        records.value[connection] = ConnectionRecord(key: key)
        connections.open(
            connection, to: destination, isBeside: { hasOpenConnection(key) }, authorize: authorize)
    }
}

extension ExchangePool: HandshakeTurnsOwner {
    func handshakeMayStart(_ exchange: HTTPExchange) {
        let id = exchange.id
        enqueue(exchange)
        // One that waits for room is not connecting.
        if waiting[id] != nil, pool.connection(for: id) == nil { exchange.stopsConnecting() }
    }
}

extension ExchangePool: TimerHandler {
    package func timerFired(_ timer: LoopTimer) {
        if timer === lackTimer {
            let exchanges = lacking.values.sorted { $0.id < $1.id }
            lacking = [:]
            for exchange in exchanges { submit(exchange) }
            return
        }
        pool.expire(now: context.now, actions: &actions.value)
        perform()
        scheduleExpiry()
    }
}
#endif
