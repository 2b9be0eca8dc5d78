/// Decides which exchange uses which connection, when connections are opened and when they are closed. Pure: the caller
/// performs the actions in their order, and reports each event.
///
/// The rules:
/// - The number of connections is limited per origin and in total. Connections that connect, that carry exchanges, that
///   are idle and that drain are all counted. An idle connection is closed where its room is needed. It is counted
///   until the caller has confirmed that it is closed: the connection that takes its room is opened after that.
/// - A free connection of the same key is used, the one that was used last first. Otherwise a new one is opened, and
///   the exchange takes it or a connection that becomes free before, whichever comes first.
/// - Exchanges wait by priority, and then by age. Within an origin, the most urgent goes first, over all its keys.
///   Where the total limit is reached, origins take turns: a connection that becomes idle is closed if another origin
///   is next and has fewer connections, or has been passed over many times.
/// - A connecting connection whose exchange has left serves the next waiting one. If no exchange waits, it may finish
///   and become idle. Until then it counts as idle: it is closed on time, by `closeIdle`, and where room is needed.
/// - An HTTP/2 connection is filled up to its capacity before another is opened. Until its server has stated its limit,
///   it carries one exchange. A connection that carries exchanges is never closed for room. While another origin waits
///   for the total limit, a busy connection takes a bounded number of further exchanges, and then drains.
/// - Exchanges that last long do not count for the limits, and have one of their own. Exchanges of low priority leave
///   one of eight connections to an origin to the others. Both rules are for connections that carry one exchange at a
///   time.
///
/// Where the pools of several loops share the limits, the extension in `ConnectionPool+Room.swift` and `RoomLedger` take
/// the place of the rules on the total limit.
///
/// An operation takes logarithmic time in the number of waiting exchanges and origins, and linear time in the number of
/// keys of one origin for which exchanges wait (in general one). Operations that find a free connection, or for which
/// no exchange waits, take constant time and neither allocate nor hash.
package struct ConnectionPool: Sendable {
    /// The number of an exchange, which the caller chooses.
    package typealias ExchangeID = UInt64

    /// The identifier of a connection. One of a closed connection is refused, and not used again.
    package struct ConnectionID: Hashable, Sendable {
        let slot: UInt32
        /// The number of connections that have had the slot before.
        let generation: UInt32
    }

    /// The identifier of a key, as `index(of:)` returns it.
    package struct KeyID: Hashable, Sendable {
        let slot: UInt32
        /// The number of keys that have had the slot before.
        let generation: UInt32
    }

    package struct Limits: Sendable, Equatable {
        /// The number of connections to one origin; at least 1.
        package var connectionsPerOrigin: Int
        /// The number of connections to all origins; at least 1.
        package var connections: Int
        /// The time in nanoseconds after which an idle connection is closed; `UInt64.max` for never.
        package var idleLifetime: UInt64
        /// The time in nanoseconds after which an open connection takes no further exchange; `UInt64.max` for never.
        package var age = UInt64.max
        /// The number of exchanges that a connection takes in all; at least 1.
        package var uses = Int.max
        /// Whether exchanges wait for a connection that carries several, although it is full, and no other is opened.
        package var waitsForStreams = false
        /// The number of exchanges that a multiplexed connection is expected to carry until one of its key has a limit.
        package var streams: Int
        /// The number of connections to one origin that carry an exchange that lasts long, such as a stream of events,
        /// beside the others; at least 1. They do not count for the limits above. A connection that carries several
        /// exchanges at a time counts for those above alone.
        package var liveConnectionsPerOrigin = Int.max
        /// The highest of the low priorities. Exchanges of these leave a share of the connections to others.
        package var lowPriority = Int.min
        /// The number of keys that are remembered although they have neither connections nor waiting exchanges.
        package var keptKeys = 1_000
        /// Whether other pools share the limits of the numbers of connections. The pool then asks for the room of each
        /// connection (`Action.ask`), and gives back what it does not use. `connectionsPerOrigin` is the part of the
        /// limit that it has if all pools need it.
        package var sharesRoom = false

        package init(connectionsPerOrigin: Int, connections: Int, idleLifetime: UInt64, streams: Int = 100) {
            self.streams = streams
            self.connectionsPerOrigin = connectionsPerOrigin
            self.connections = connections
            self.idleLifetime = idleLifetime
        }
    }

    /// The order of waiting exchanges of the same priority.
    package enum Order: Sendable {
        case firstInFirstOut, lastInFirstOut
    }

    /// An exchange that needs a connection.
    package struct Submission: Sendable {
        package var exchange: ExchangeID
        package var key: KeyID
        /// The priority; higher values go first.
        package var priority: Int
        /// Whether the exchange lasts long.
        package var isLive = false
        /// Whether the exchange takes only a connection that has just been opened.
        package var needsFresh = false
        /// Whether other exchanges may use the connection at the same time.
        package var mayShare = true
        /// Whether exchanges wait for a connecting connection instead of opening one each, because it is likely to be
        /// multiplexed. The last submission decides for all exchanges of the key, until a connection of the key has
        /// been opened; then its capacity decides.
        package var waitsForShared = false

        package init(exchange: ExchangeID, key: KeyID, priority: Int) {
            self.exchange = exchange
            self.key = key
            self.priority = priority
        }
    }

    package enum Action: Sendable, Equatable {
        /// Starts an exchange on a connection. A connection is reused if another exchange has been assigned to it
        /// before.
        case assign(ExchangeID, connection: ConnectionID, isReused: Bool)
        /// Opens a connection. The exchange is the one that needs it at this moment; another may get it.
        case open(ConnectionID, key: KeyID, exchange: ExchangeID)
        /// Closes a connection, which may still be connecting. The caller confirms it by `closed(_:actions:)`.
        case close(ConnectionID)
        /// Asks for the room of one more connection to an origin, which `granted(_:actions:)` gives.
        case ask(origin: String)
        /// Takes back what was asked for an origin, because no exchange needs it any more.
        case stopAsking(origin: String)
        /// Gives the room of connections to an origin back.
        case giveBack(origin: String, count: Int)
    }

    /// A change of the exchange that a connecting connection is for.
    package struct ClaimChange: Sendable, Equatable {
        package let exchange: ExchangeID
        /// Whether a connection connects for the exchange from now on.
        package let hasConnection: Bool
    }

    /// The numbers of open connections to one origin. One that connects or that is being closed is not open.
    package struct OpenCount: Sendable, Equatable {
        /// The number of connections that carry an exchange or another protocol.
        package var active = 0
        /// The number of connections that carry nothing.
        package var idle = 0

        package init(active: Int = 0, idle: Int = 0) { (self.active, self.idle) = (active, idle) }
    }

    let limits: Limits
    private let order: Order
    var table: PoolKeyTable
    var waiting = WaitingExchanges()
    var connections: [PooledConnection] = []
    var freeConnections: [Int] = []
    /// The connections that wait for the room of those that are being closed, in their order.
    var delayed: [Int] = []
    var keyLinks = SlotLinks()
    var originLinks = SlotLinks()
    var idleLinks = SlotLinks()
    /// The idle connections of all origins, the oldest first.
    var idle = SlotList()
    /// The origins that wait for room in the total limit alone, by their turn.
    var blockedOrigins = PositionedHeap<UInt64>()
    /// The positions of blocked origins in `blockedOrigins`.
    var blockedPositions: [Int] = []
    var nextTurn: UInt64 = 0
    /// The number of exchanges assigned to busy connections since a blocked origin was served last.
    var assignmentsWhileBlocked = 0
    private var nextAge: UInt64 = 0
    /// The number of times that origins have kept a connection since a blocked origin was served last.
    var passedOver = 0
    /// The latest time that the caller has passed.
    var now: UInt64 = 0
    /// The time at which an open connection reaches its age; `UInt64.max` without one. It can have ended by then.
    var nextAgeEnd = UInt64.max

    /// The changes since the caller removed them, in their order. A change can concern an exchange that no longer
    /// waits.
    package var claimChanges: [ClaimChange] = []

    /// The number of connections, including those that connect or wait for room, without those that are being closed.
    package internal(set) var connectionCount = 0
    /// The number of connections that are being closed.
    package internal(set) var closingCount = 0
    /// The number of connections that no exchange uses or waits for.
    package internal(set) var idleCount = 0

    package init(limits: Limits, order: Order = .firstInFirstOut) {
        self.limits = limits
        self.order = order
        table = PoolKeyTable(
            expectedCapacity: Self.clampedCapacity(limits.streams), keptKeys: max(1, limits.keptKeys))
    }

    /// The number of exchanges that wait.
    package var waitingCount: Int { waiting.count }

    /// The number of keys that the pool remembers.
    package var keyCount: Int { table.count }

    // MARK: Keys

    /// Returns the number of a key, which the caller can keep. Keys without connections and waiting exchanges are
    /// forgotten from time to time; their numbers are then refused by `submit`.
    package mutating func index(of key: PoolKey) -> KeyID { table.intern(key) }

    /// Returns the key of a number; nil if it has been forgotten.
    package func key(_ id: KeyID) -> PoolKey? { table.slot(of: id).map { table.keys[$0].key } }

    /// Returns the number of connections of a key that connect or are open.
    package func connectionCount(of key: KeyID) -> Int { table.slot(of: key).map { table.keys[$0].connections } ?? 0 }

    // MARK: Exchanges

    /// Returns the waiting exchange for which a connecting connection is meant at this moment; nil if there is none.
    package func claimant(of connection: ConnectionID) -> ExchangeID? {
        slot(of: connection).flatMap { connections[$0].claimant }.map { waiting[$0].id }
    }

    /// Returns the connecting connection that is meant for a waiting exchange; nil if there is none.
    package func connection(for exchange: ExchangeID) -> ConnectionID? {
        waiting.slot(of: exchange).flatMap { waiting[$0].connection }.map { id(of: $0) }
    }

    /// Returns whether a waiting exchange waits to share a connection that connects for another one, or whose server
    /// has not allowed an exchange yet.
    package func waitsToShare(_ exchange: ExchangeID) -> Bool {
        guard let slot = waiting.slot(of: exchange) else { return false }
        return awaitsSharedConnection(waiting[slot].key)
    }

    /// Returns whether the exchanges of a key wait for its first connection that they can share.
    package func awaitsSharedConnection(_ key: KeyID) -> Bool {
        table.slot(of: key).map { awaitsSharedConnection($0) } ?? false
    }

    private func awaitsSharedConnection(_ key: Int) -> Bool {
        let record = table.keys[key]
        guard record.settled == 0, record.expectsShared else { return false }
        return record.awaitingLimit > 0 || waiting.count(.claimedSharing, key: key) > 0
    }

    /// Returns whether an exchange that is submitted now, and may share its connection, is assigned at once.
    package func hasFreeConnection(_ key: KeyID) -> Bool {
        table.slot(of: key).flatMap { freeConnection(of: $0, isShared: true) } != nil
    }

    /// Submits an exchange: it is assigned to a connection, or waits. Returns false, and does nothing, if its key has
    /// been forgotten. A waiting exchange must not be submitted again.
    package mutating func submit(_ submission: Submission, actions: inout [Action]) -> Bool {
        guard let key = table.slot(of: submission.key) else { return false }
        table.keys[key].waitsForShared = submission.waitsForShared
        let use = use(priority: submission.priority, isLive: submission.isLive)
        if !submission.needsFresh, let free = freeConnection(of: key, isShared: submission.mayShare),
            use == .ordinary || !allowedKinds(on: free).isDisjoint(with: .all.of(use))
        {
            occupy(free, exchange: submission.exchange, use, isExclusive: !submission.mayShare, actions: &actions)
            return true
        }
        let age = order == .firstInFirstOut ? nextAge : ~nextAge
        nextAge += 1
        let exchange = WaitingExchange(
            id: submission.exchange, key: key, urgency: Urgency(priority: submission.priority, age: age),
            use: use, isExclusive: !submission.mayShare, isFresh: submission.needsFresh)
        addWaiting(exchange)
        settle(table.keys[key].origin, actions: &actions)
        return true
    }

    /// Removes an exchange that waits. Returns false if it does not wait.
    package mutating func withdraw(_ exchange: ExchangeID, now: UInt64, actions: inout [Action]) -> Bool {
        guard let slot = waiting.slot(of: exchange) else { return false }
        self.now = max(self.now, now)
        let origin = table.keys[waiting[slot].key].origin
        _ = removeWaiting(slot)
        settle(origin, actions: &actions)
        return true
    }

    /// Changes the priority of an exchange that waits. Its age stays. Returns false if it does not wait.
    @discardableResult
    package mutating func prioritize(_ exchange: ExchangeID, priority: Int) -> Bool {
        guard let slot = waiting.slot(of: exchange) else { return false }
        waiting.setPriority(priority, use: use(priority: priority, isLive: waiting[slot].use == .live), of: slot)
        return true
    }

    /// Reports that an exchange has left its connection: its response or its stream has ended. A connection that is not
    /// reusable takes no more exchanges, and is closed when its last one has ended. Unknown connections are ignored.
    package mutating func finished(
        on connection: ConnectionID, isReusable: Bool, now: UInt64, actions: inout [Action]
    ) {
        guard let slot = slot(of: connection), connections[slot].inFlight > 0 else { return }
        self.now = max(self.now, now)
        connections[slot].inFlight -= 1
        connections[slot].isReserved = false
        let wasLive = connections[slot].use == .live
        if connections[slot].inFlight == 0 { endUse(of: slot) }
        if !isReusable {
            drain(slot)
        } else if connections[slot].state == .open, wasLive || limits.sharesRoom,
            hasTooMany(connections[slot].origin)
        {
            let next = wasLive ? waiting.first(.pooled.of(.live), key: connections[slot].key) : nil
            if let next { assign(next, to: slot, actions: &actions) } else { drain(slot) }
        }
        settle(connection: slot, actions: &actions)
    }

    // MARK: Connections

    /// Reports that a connection has been opened, and the number of exchanges that it carries at a time: 1 for HTTP/1,
    /// more for HTTP/2. It takes the most urgent exchanges of its key.
    ///
    /// - Parameter awaitsLimit: Whether the number is provisional, because the server has not stated its limit. Until
    ///   `capacityChanged` reports one above 0, the other exchanges wait for it, and no further connection is opened
    ///   for those that are expected to fit.
    package mutating func opened(
        _ connection: ConnectionID, capacity: Int, awaitsLimit: Bool = false, now: UInt64, actions: inout [Action]
    ) {
        guard let slot = slot(of: connection), connections[slot].state == .connecting else { return }
        self.now = max(self.now, now)
        leaveLists(slot)
        releaseClaim(slot)
        connections[slot].state = .open
        connections[slot].ageEnd = sum(self.now, limits.age)
        nextAgeEnd = min(nextAgeEnd, connections[slot].ageEnd)
        let key = connections[slot].key
        if awaitsLimit {
            table.keys[key].form = .multiplexed
            table.keys[key].awaitingLimit += 1
            connections[slot].awaitsLimit = true
            connections[slot].capacity = Self.clampedCapacity(capacity)
        } else {
            table.keys[key].form = .single
            table.keys[key].settled += 1
            learn(capacity, of: slot)
        }
        fill(slot, with: .all, actions: &actions)
        settle(connection: slot, actions: &actions)
    }

    /// Assigns the most urgent waiting exchanges, also those that take only a new connection, to one that has just
    /// become ready.
    private mutating func fill(_ slot: Int, with first: WaitingKinds, actions: inout [Action]) {
        var kinds = first
        while connections[slot].takesExchanges {
            let allowed = kinds.intersection(allowedKinds(on: slot))
            guard let next = waiting.first(allowed, key: connections[slot].key) else { break }
            assign(next, to: slot, actions: &actions)
            kinds = .sharing
        }
    }

    /// Reports that a connection could not be opened. Returns the exchange that gets the error: the one for which it
    /// was opened, or the one that took its place when that one left; nil if no exchange needs the connection. The
    /// returned exchange no longer waits. For the others, new connections are opened.
    package mutating func openFailed(_ connection: ConnectionID, actions: inout [Action]) -> ExchangeID? {
        guard let slot = slot(of: connection) else { return nil }
        if connections[slot].state == .closing {
            closed(connection, actions: &actions)
            return nil
        }
        guard connections[slot].state == .connecting else { return nil }
        let origin = connections[slot].origin
        let claimant = connections[slot].claimant
        releaseClaim(slot)
        remove(slot)
        openDelayed(actions: &actions)
        let failed = claimant.map { removeWaiting($0).id }
        settle(origin, actions: &actions)
        return failed
    }

    /// Reports the number of exchanges that an open connection carries at a time. It may fall below the number of those
    /// in flight, which go on. With 0, the connection takes no exchange until the server allows one (RFC 9113 §5.1.2).
    package mutating func capacityChanged(
        _ connection: ConnectionID, capacity: Int, now: UInt64, actions: inout [Action]
    ) {
        guard let slot = slot(of: connection), connections[slot].state == .open else { return }
        self.now = max(self.now, now)
        if capacity <= 0 {
            connections[slot].capacity = 0
        } else {
            learn(capacity, of: slot)
            if connections[slot].awaitsLimit {
                let key = connections[slot].key
                connections[slot].awaitsLimit = false
                table.keys[key].awaitingLimit -= 1
                table.keys[key].settled += 1
                fill(slot, with: .sharing, actions: &actions)
            }
        }
        settle(connection: slot, actions: &actions)
    }

    /// Reports that a connection takes no new exchange. It is closed when its last one has ended.
    package mutating func draining(_ connection: ConnectionID, actions: inout [Action]) {
        guard let slot = slot(of: connection), connections[slot].state != .closing else { return }
        releaseClaim(slot)
        claimConnecting(connections[slot].key)
        drain(slot)
        settle(connection: slot, actions: &actions)
    }

    /// Closes a connection that takes too long to connect. Exchanges that waited for it get another.
    package mutating func giveUp(_ connection: ConnectionID, actions: inout [Action]) {
        guard let slot = slot(of: connection), connections[slot].state == .connecting else { return }
        let (key, origin) = (connections[slot].key, connections[slot].origin)
        releaseClaim(slot)
        close(slot, actions: &actions)
        claimConnecting(key)
        settle(origin, actions: &actions)
    }

    /// Reports that a connection is closed: after the action `close`, or by the peer. In the second case, the caller
    /// has failed its exchanges. Exchanges that waited for it while it was connecting get another.
    package mutating func closed(_ connection: ConnectionID, actions: inout [Action]) {
        guard let slot = slot(of: connection) else { return }
        let (key, origin) = (connections[slot].key, connections[slot].origin)
        releaseClaim(slot)
        remove(slot)
        openDelayed(actions: &actions)
        claimConnecting(key)
        settle(origin, actions: &actions)
    }

    /// The numbers of open connections by origin. Takes linear time in the number of connections.
    package var openCounts: [String: OpenCount] {
        var counts: [String: OpenCount] = [:]
        for connection in connections where connection.isOpen {
            let origin = table.origins[connection.origin].name
            if connection.inFlight > 0 {
                counts[origin, default: OpenCount()].active += 1
            } else {
                counts[origin, default: OpenCount()].idle += 1
            }
        }
        return counts
    }

    // MARK: Idle connections

    /// The time at which the next connection has been idle for too long, or has reached its age; nil without one.
    package var nextExpiry: UInt64? {
        let idleEnd = limits.idleLifetime < .max ? idle.first.map { deadline(of: $0) } : nil
        return nextAgeEnd < .max ? min(nextAgeEnd, idleEnd ?? .max) : idleEnd
    }

    /// Closes the connections that have been idle for too long. Those that have reached their age take no further
    /// exchange.
    package mutating func expire(now: UInt64, actions: inout [Action]) {
        self.now = max(self.now, now)
        endAge(actions: &actions)
        guard limits.idleLifetime < .max else { return }
        while let oldest = idle.first, deadline(of: oldest) <= now { close(oldest, actions: &actions) }
    }

    /// The time since when the oldest idle connection is unused; `UInt64.max` without one.
    package var oldestIdleTime: UInt64 { idle.first.map { connections[$0].idleSince } ?? .max }

    /// Closes the connection that has been idle for the longest time.
    package mutating func closeOldestIdle(actions: inout [Action]) {
        if let oldest = idle.first { close(oldest, actions: &actions) }
    }

    /// Closes all idle connections.
    package mutating func closeIdle(actions: inout [Action]) {
        while let oldest = idle.first { close(oldest, actions: &actions) }
    }

    /// Closes all connections and forgets all waiting exchanges, which the caller has failed.
    package mutating func closeAll(actions: inout [Action]) {
        for key in table.keys.indices {
            table.keys[key].waiting = 0
            table.keys[key].waitingIndex = nil
        }
        for origin in table.origins.indices {
            table.origins[origin].waitingKeys.removeAll()
            unblock(origin)
        }
        waiting.removeAll()
        for slot in connections.indices where connections[slot].state != .unused && connections[slot].state != .closing
        {
            connections[slot].claimant = nil
            close(slot, actions: &actions)
        }
    }

    private mutating func endAge(actions: inout [Action]) {
        guard limits.age < .max, nextAgeEnd <= now else { return }
        nextAgeEnd = .max
        for slot in connections.indices where connections[slot].state == .open {
            if connections[slot].ageEnd > now {
                nextAgeEnd = min(nextAgeEnd, connections[slot].ageEnd)
            } else if connections[slot].inFlight == 0 {
                close(slot, actions: &actions)
            } else {
                drain(slot)
                settle(connection: slot, actions: &actions)
            }
        }
    }

    private func deadline(of slot: Int) -> UInt64 { sum(connections[slot].idleSince, limits.idleLifetime) }

    private func sum(_ time: UInt64, _ duration: UInt64) -> UInt64 {
        let (deadline, overflows) = time.addingReportingOverflow(duration)
        return overflows ? .max : deadline
    }
}
