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

/// A set of kinds of waiting exchanges. Each kind is one of eight queues of a key: an exchange shares its connection or
/// does not, accepts a pooled connection or does not, and has claimed a connecting connection or has not.
struct WaitingKinds: Sendable {
    /// One bit for each queue. In the number of a queue, bit 0 stands for exclusive, bit 1 for fresh, bit 2 for claimed.
    let bits: UInt8

    static let sharingPooled = WaitingKinds(bits: 0b0001_0001)
    static let pooled = WaitingKinds(bits: 0b0011_0011)
    static let sharing = WaitingKinds(bits: 0b0101_0101)
    static let all = WaitingKinds(bits: 0b1111_1111)
    static let unclaimed = WaitingKinds(bits: 0b0000_1111)
    static let unclaimedSharing = WaitingKinds(bits: 0b0000_0101)
    static let unclaimedExclusive = WaitingKinds(bits: 0b0000_1010)
    static let claimedSharing = WaitingKinds(bits: 0b0101_0000)
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

    var isExclusive: Bool { queue & 1 != 0 }
}

/// The exchanges that wait for a connection, in eight queues for each key.
struct WaitingExchanges: Sendable {
    private static let queuesPerKey = 8
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

    /// Adds an exchange, which must not be waiting already, and returns its slot.
    mutating func add(_ exchange: WaitingExchange) -> Int {
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
        return slot
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
        records[slot].queue = connection < 0 ? records[slot].queue & 0b011 : records[slot].queue | 0b100
        insert(slot)
    }

    mutating func setPriority(_ priority: Int, of slot: Int) {
        let urgency = Urgency(priority: priority, age: records[slot].urgency.age)
        records[slot].urgency = urgency
        queues[index(of: slot)].update(at: positions[slot], rank: urgency, positions: &positions)
    }

    /// Returns the most urgent exchange of a key among some kinds; -1 if none waits.
    func first(_ kinds: WaitingKinds, key: Int) -> Int {
        let start = key * Self.queuesPerKey
        guard start < queues.count else { return -1 }
        var best: PositionedHeap<Urgency>.Entry?
        var bits = kinds.bits
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
        var bits = kinds.bits
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
