/// A connection as the pool sees it.
struct PooledConnection: Sendable {
    enum State: Sendable {
        /// The slot is free.
        case unused
        case connecting
        case open
        /// The connection takes no new exchange, and is closed when its last one ends.
        case draining
        /// The connection is being closed. It keeps its room until the caller has confirmed that.
        case closing
    }

    /// The lists of connections that a key has.
    enum KeyList: Sendable {
        case none, idle, partial, unclaimed
    }

    var generation: UInt32 = 0
    var state = State.unused
    /// The slots of the key and the origin; without meaning in an unused slot.
    var key = 0
    var origin = 0
    /// The number of exchanges that the connection can carry at a time.
    var capacity = 0
    /// The number of exchanges that the connection carries.
    var inFlight = 0
    /// Whether the server has not allowed an exchange yet: its first limit is not known, or is 0.
    var awaitsLimit = false
    /// Whether the connection carries an exchange that does not share it.
    var isReserved = false
    /// The kind of the exchange that the connection carries, if it carries one at a time.
    var use = ConnectionUse.ordinary
    /// Whether that exchange lasts long, whatever it counts for.
    var isLive = false
    /// Whether the connection waits for the room of one that is being closed.
    var isDelayed = false
    /// The slot of the waiting exchange that has claimed this connecting connection; nil without one.
    var claimant: Int?
    var keyList = KeyList.none
    /// Whether the connection is in the lists of those that can be closed for room.
    var isInIdleLists = false
    var idleSince: UInt64 = 0
    /// The number of exchanges that have been assigned.
    var uses = 0
    /// The time from which the connection takes no further exchange.
    var ageEnd = UInt64.max

    /// The list of the key in which the connection belongs.
    var properKeyList: KeyList {
        switch state {
        case .unused, .draining, .closing: .none
        case .connecting: claimant == nil ? .unclaimed : .none
        case .open: takesExchanges ? (inFlight == 0 ? .idle : .partial) : .none
        }
    }

    /// A Boolean value that indicates whether the connection is made and not being closed. A connection drains only
    /// while it carries exchanges, for which it has been opened.
    var isOpen: Bool { state == .open || state == .draining }

    /// A Boolean value that indicates whether the connection has room for another exchange.
    var takesExchanges: Bool { state == .open && !isReserved && inFlight < capacity }

    /// Whether no exchange uses the connection or waits for it.
    var isIdle: Bool {
        switch state {
        case .unused, .draining, .closing: false
        case .connecting: claimant == nil
        case .open: inFlight == 0
        }
    }
}
