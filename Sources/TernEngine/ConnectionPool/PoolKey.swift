/// The properties of a connection that an exchange requires. An exchange uses connections of its own key alone.
package struct PoolKey: Hashable, Sendable {
    /// The scheme, the host and the port, or the path of a Unix socket. The limit per origin counts the connections of
    /// all keys with the same origin.
    package var origin: String
    /// The number of the trust policy; 0 without one.
    package var policy: UInt64 = 0
    /// The number of the proxy; 0 without one.
    package var proxy: UInt64 = 0
    /// The number of the client identity; 0 without one.
    package var identity: UInt64 = 0
    /// The number of the local endpoint; 0 without one.
    package var localEndpoint: UInt64 = 0
    /// The number of the set of versions of HTTP that the connection may speak.
    package var versions: UInt64 = 0

    package init(origin: String) { self.origin = origin }
}

/// A key of the pool with its connections and the exchanges that wait for one.
struct PoolKeyRecord: Sendable {
    /// The form of the connections, as far as known.
    enum Form: Sendable {
        case unknown
        /// Each connection carries one exchange at a time (HTTP/1).
        case single
        /// Connections carry several exchanges at a time (HTTP/2).
        case multiplexed
    }

    var key: PoolKey
    var generation: UInt32
    let origin: Int
    /// The number of connections, including those that connect and those that are being closed.
    var connections = 0
    var waiting = 0
    /// The number of open connections whose server has not allowed an exchange yet.
    var awaitingLimit = 0
    /// The number of other open connections that take exchanges.
    var settled = 0
    /// The index in the waiting keys of the origin; nil if no exchange waits.
    var waitingIndex: Int?
    /// Connections without an exchange that can take one, the one that was used last at the end.
    var idle = SlotList()
    /// Connections with exchanges that can take more.
    var partial = SlotList()
    /// Connecting connections that no exchange waits for.
    var unclaimed = SlotList()
    var form = Form.unknown
    /// Whether exchanges wait for a connecting connection while the form is unknown.
    var waitsForShared = false
    /// The number of exchanges that a new multiplexed connection is expected to carry.
    var expectedCapacity: Int

    /// Whether a connecting connection is expected to carry several exchanges.
    var expectsShared: Bool {
        switch form {
        case .unknown: waitsForShared
        case .single: false
        case .multiplexed: true
        }
    }

    var isUnused: Bool { connections == 0 && waiting == 0 }
}

/// An origin with the connections of all its keys.
struct PoolOrigin: Sendable {
    let name: String
    var keys = 0
    /// The number of connections, including those that connect or wait for room, without those that are being closed
    /// and the `live` ones.
    var connections = 0
    /// The number of connections that carry an exchange of low priority alone.
    var low = 0
    /// The number of connections that carry an exchange that lasts long, and do not count for the limits of the others.
    var live = 0
    /// The number of connections that carry an exchange that lasts long.
    var allLive = 0
    /// The number of connections that take no new exchange and carry others still.
    var draining = 0
    /// The number of connections that are being closed.
    var closing = 0
    /// The number of connections that wait for the room of those.
    var delayed = 0
    /// The number of connections for which there is room, if other pools share the limits.
    var room = 0
    /// The number of connections whose room is given back as soon as they carry nothing.
    var owed = 0
    /// Whether the pool has asked for room.
    var isAsking = false
    /// Connections that can be closed to make room, the oldest first.
    var idle = SlotList()
    /// The slots of the keys for which exchanges wait.
    var waitingKeys: [Int] = []
    /// Whether the origin waits for room in the total limit alone.
    var isBlocked = false
    /// The order in which waiting origins get room. An origin gets a new number each time it has been served.
    var turn: UInt64 = 0
}

/// The keys and origins that are in use, and a bounded number of others.
struct PoolKeyTable: Sendable {
    private let expectedCapacity: Int
    private let keptKeys: Int
    var keys: [PoolKeyRecord] = []
    var origins: [PoolOrigin] = []
    private var indexes: [PoolKey: Int] = [:]
    private var originIndexes: [String: Int] = [:]
    private var freeKeys: [Int] = []
    private var freeOrigins: [Int] = []
    /// The number of keys at which unused ones are forgotten.
    private var sweepCount: Int

    init(expectedCapacity: Int, keptKeys: Int) {
        self.expectedCapacity = expectedCapacity
        self.keptKeys = keptKeys
        sweepCount = keptKeys
    }

    /// The number of keys in the table.
    var count: Int { indexes.count }

    /// Returns the slot of a key that has not been forgotten.
    func slot(of id: ConnectionPool.KeyID) -> Int? {
        let slot = Int(id.slot)
        guard slot < keys.count, keys[slot].generation == id.generation else { return nil }
        return slot
    }

    func id(of slot: Int) -> ConnectionPool.KeyID {
        ConnectionPool.KeyID(slot: UInt32(truncatingIfNeeded: slot), generation: keys[slot].generation)
    }

    /// Returns the slot of an origin; nil if no key of it is known.
    func originSlot(of name: String) -> Int? { originIndexes[name] }

    /// Returns the identifier of a key, which is added if it is new. Takes constant time on average.
    mutating func intern(_ key: PoolKey) -> ConnectionPool.KeyID {
        if let slot = indexes[key] { return id(of: slot) }
        if indexes.count >= sweepCount {
            forgetUnusedKeys()
            sweepCount = max(keptKeys, 2 * indexes.count)
        }
        let origin = internOrigin(key.origin)
        origins[origin].keys += 1
        let slot: Int
        if let free = freeKeys.popLast() {
            slot = free
            keys[slot] = PoolKeyRecord(
                key: key, generation: keys[slot].generation, origin: origin, expectedCapacity: expectedCapacity)
        } else {
            slot = keys.count
            keys.append(PoolKeyRecord(key: key, generation: 0, origin: origin, expectedCapacity: expectedCapacity))
        }
        indexes[key] = slot
        return id(of: slot)
    }

    private mutating func internOrigin(_ name: String) -> Int {
        if let slot = originIndexes[name] { return slot }
        let slot: Int
        if let free = freeOrigins.popLast() {
            slot = free
            origins[slot] = PoolOrigin(name: name)
        } else {
            slot = origins.count
            origins.append(PoolOrigin(name: name))
        }
        originIndexes[name] = slot
        return slot
    }

    private mutating func forgetUnusedKeys() {
        for (key, slot) in indexes where keys[slot].isUnused {
            indexes[key] = nil
            keys[slot].generation &+= 1
            freeKeys.append(slot)
            let origin = keys[slot].origin
            origins[origin].keys -= 1
            if origins[origin].keys == 0 {
                originIndexes[origins[origin].name] = nil
                freeOrigins.append(origin)
            }
        }
    }
}
