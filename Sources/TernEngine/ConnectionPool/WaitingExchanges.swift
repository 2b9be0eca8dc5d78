/// The order of waiting exchanges: the most urgent first, and among equals by age.
struct Urgency: Comparable, Sendable {
    /// The priority with all bits inverted, so that the most urgent comes first.
    var inverted: Int
    /// The number of the submission, inverted where the newest comes first.
    let age: UInt64

    init(priority: Int, age: UInt64) {
        inverted = ~priority
        self.age = age
    }

    static func < (left: Urgency, right: Urgency) -> Bool {
        left.inverted != right.inverted ? left.inverted < right.inverted : left.age < right.age
    }
}

/// A set of kinds of waiting exchanges. Each kind is one of the queues of a key: an exchange shares its connection or
/// does not, accepts a pooled connection or does not, and has claimed a connecting connection or has not. These eight
/// queues exist for each `ConnectionUse`.
struct WaitingKinds: OptionSet, Sendable {
    /// The number of queues for one use.
    static let queuesPerUse = 8

    /// One bit for each queue. In the number of a queue, bit 0 stands for exclusive, bit 1 for fresh, bit 2 for
    /// claimed; the bits above are the use.
    let rawValue: UInt32

    init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The kinds of some queues for every use.
    private init(ofEachUse bits: UInt32) { rawValue = bits | bits << 8 | bits << 16 }

    static let sharingPooled = WaitingKinds(ofEachUse: 0b0001_0001)
    static let pooled = WaitingKinds(ofEachUse: 0b0011_0011)
    static let sharing = WaitingKinds(ofEachUse: 0b0101_0101)
    static let all = WaitingKinds(ofEachUse: 0b1111_1111)
    static let claimed = WaitingKinds(ofEachUse: 0b1111_0000)
    static let unclaimed = WaitingKinds(ofEachUse: 0b0000_1111)
    static let unclaimedSharing = WaitingKinds(ofEachUse: 0b0000_0101)
    static let unclaimedExclusive = WaitingKinds(ofEachUse: 0b0000_1010)
    static let claimedSharing = WaitingKinds(ofEachUse: 0b0101_0000)

    /// Returns the kinds of one use among these.
    func of(_ use: ConnectionUse) -> WaitingKinds {
        intersection(WaitingKinds(rawValue: 0b1111_1111 << UInt32(use.rawValue * Self.queuesPerUse)))
    }
}

/// An exchange that waits for a connection.
struct WaitingExchange: Sendable {
    let id: ConnectionPool.ExchangeID
    let key: Int
    var urgency: Urgency
    /// The number of the queue, as described at `WaitingKinds`.
    var queue: Int
    /// The connecting connection that this exchange has claimed; -1 without one.
    var connection = -1

    init(
        id: ConnectionPool.ExchangeID, key: Int, urgency: Urgency, use: ConnectionUse, isExclusive: Bool, isFresh: Bool
    ) {
        self.id = id
        self.key = key
        self.urgency = urgency
        queue = use.rawValue * WaitingKinds.queuesPerUse | (isExclusive ? 1 : 0) | (isFresh ? 2 : 0)
    }

    var isExclusive: Bool { queue & 1 != 0 }

    /// Whether the exchange has claimed a connecting connection.
    var isClaimed: Bool {
        get { queue & 4 != 0 }
        set { queue = newValue ? queue | 4 : queue & ~4 }
    }

    /// The kind of the exchange.
    var use: ConnectionUse {
        get { ConnectionUse(rawValue: queue / WaitingKinds.queuesPerUse) ?? .ordinary }
        set { queue = queue % WaitingKinds.queuesPerUse | newValue.rawValue * WaitingKinds.queuesPerUse }
    }
}

/// The exchanges that wait for a connection, in the queues of each key.
struct WaitingExchanges: Sendable {
    private static let queuesPerKey = 3 * WaitingKinds.queuesPerUse
    /// The number of slots up to which the table keeps its memory when the last exchange leaves.
    private static let keptSlots = 1_000

    private var records: [WaitingExchange] = []
    private var positions: [Int] = []
    private var free: [Int] = []
    private var slots: [ConnectionPool.ExchangeID: Int] = [:]
    private var queues: [PositionedHeap<Urgency>] = []

    var count: Int { slots.count }

    subscript(slot: Int) -> WaitingExchange { records[slot] }

    func slot(of id: ConnectionPool.ExchangeID) -> Int? { slots[id] }

    /// Adds an exchange, which must not be waiting already.
    mutating func add(_ exchange: WaitingExchange) {
        while queues.count < (exchange.key + 1) * Self.queuesPerKey { queues.append(PositionedHeap()) }
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            records[slot] = exchange
        } else {
            slot = records.count
            records.append(exchange)
            positions.append(-1)
        }
        let previous = slots.updateValue(slot, forKey: exchange.id)
        precondition(previous == nil, "the exchange waits already")
        insert(slot)
    }

    /// Removes an exchange and returns it.
    mutating func remove(_ slot: Int) -> WaitingExchange {
        let record = records[slot]
        takeOut(slot)
        slots[record.id] = nil
        free.append(slot)
        if slots.isEmpty, records.count > Self.keptSlots { forgetSlots() }
        return record
    }

    mutating func removeAll() {
        for index in queues.indices { queues[index].removeAll() }
        forgetSlots()
    }

    private mutating func forgetSlots() {
        slots.removeAll()
        records.removeAll()
        positions.removeAll()
        free.removeAll()
    }

    /// Records the connecting connection that an exchange has claimed; -1 for none.
    mutating func setConnection(_ connection: Int, of slot: Int) {
        takeOut(slot)
        records[slot].connection = connection
        records[slot].isClaimed = connection >= 0
        insert(slot)
    }

    mutating func setPriority(_ priority: Int, use: ConnectionUse, of slot: Int) {
        takeOut(slot)
        records[slot].urgency = Urgency(priority: priority, age: records[slot].urgency.age)
        records[slot].use = use
        insert(slot)
    }

    /// Returns the most urgent exchange of a key among some kinds; -1 if none waits.
    func first(_ kinds: WaitingKinds, key: Int) -> Int {
        let start = key * Self.queuesPerKey
        guard start < queues.count else { return -1 }
        var best: PositionedHeap<Urgency>.Entry?
        var bits = kinds.rawValue
        while bits != 0 {
            let queue = bits.trailingZeroBitCount
            bits &= bits - 1
            guard let entry = queues[start + queue].first else { continue }
            if let found = best, !(entry.rank < found.rank) { continue }
            best = entry
        }
        return best?.slot ?? -1
    }

    /// Returns the number of exchanges of a key among some kinds.
    func count(_ kinds: WaitingKinds, key: Int) -> Int {
        let start = key * Self.queuesPerKey
        guard start < queues.count else { return 0 }
        var count = 0
        var bits = kinds.rawValue
        while bits != 0 {
            count += queues[start + bits.trailingZeroBitCount].count
            bits &= bits - 1
        }
        return count
    }

    private func index(of slot: Int) -> Int { records[slot].key * Self.queuesPerKey + records[slot].queue }

    private mutating func insert(_ slot: Int) {
        queues[index(of: slot)].insert(slot, rank: records[slot].urgency, positions: &positions)
    }

    private mutating func takeOut(_ slot: Int) {
        queues[index(of: slot)].remove(at: positions[slot], positions: &positions)
    }
}
