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

/// The queue of a key in which an exchange waits: exchanges that any connection serves alike wait in one.
struct WaitingQueue: Sendable {
    static let count = 3 * 8

    var use: ConnectionUse
    /// Whether the exchange shares its connection with no other one.
    var isExclusive: Bool
    /// Whether it takes only a connection that has just been opened.
    var isFresh: Bool
    /// Whether it has claimed a connecting connection.
    var isClaimed = false

    /// The number of the queue, from 0.
    var number: Int { use.rawValue * 8 + (isExclusive ? 1 : 0) + (isFresh ? 2 : 0) + (isClaimed ? 4 : 0) }

    static let all: [WaitingQueue] = ConnectionUse.allCases.flatMap { use in
        (0..<8).map { bits in
            WaitingQueue(use: use, isExclusive: bits & 1 != 0, isFresh: bits & 2 != 0, isClaimed: bits & 4 != 0)
        }
    }
}

/// A set of queues of waiting exchanges.
struct WaitingKinds: OptionSet, Sendable {
    /// One bit for each queue, by its number.
    let rawValue: UInt32

    init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The queues for which a condition holds.
    private init(where isMember: (WaitingQueue) -> Bool) {
        rawValue = WaitingQueue.all.filter(isMember).reduce(0) { $0 | 1 << UInt32($1.number) }
    }

    static let all = WaitingKinds { _ in true }
    static let pooled = WaitingKinds { !$0.isFresh }
    static let sharing = WaitingKinds { !$0.isExclusive }
    static let sharingPooled = pooled.intersection(sharing)
    static let claimed = WaitingKinds { $0.isClaimed }
    static let unclaimed = WaitingKinds { !$0.isClaimed }
    static let unclaimedSharing = unclaimed.intersection(sharing)
    static let unclaimedExclusive = unclaimed.subtracting(sharing)
    static let claimedSharing = claimed.intersection(sharing)
    private static let byUse = ConnectionUse.allCases.map { use in WaitingKinds { $0.use == use } }

    /// Returns the kinds of one use among these.
    func of(_ use: ConnectionUse) -> WaitingKinds { intersection(Self.byUse[use.rawValue]) }
}

/// An exchange that waits for a connection.
struct WaitingExchange: Sendable {
    let id: ConnectionPool.ExchangeID
    let key: Int
    var urgency: Urgency
    var queue: WaitingQueue
    /// The connecting connection that this exchange has claimed; nil without one.
    var connection: Int?

    init(
        id: ConnectionPool.ExchangeID, key: Int, urgency: Urgency, use: ConnectionUse, isExclusive: Bool, isFresh: Bool
    ) {
        self.id = id
        self.key = key
        self.urgency = urgency
        queue = WaitingQueue(use: use, isExclusive: isExclusive, isFresh: isFresh)
    }

    var isExclusive: Bool { queue.isExclusive }

    /// The kind of the exchange.
    var use: ConnectionUse {
        get { queue.use }
        set { queue.use = newValue }
    }
}

/// The exchanges that wait for a connection, in the queues of each key.
struct WaitingExchanges: Sendable {
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
        while queues.count < (exchange.key + 1) * WaitingQueue.count { queues.append(PositionedHeap()) }
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            records[slot] = exchange
        } else {
            slot = records.count
            records.append(exchange)
            // `insert` sets it.
            positions.append(0)
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

    /// Records the connecting connection that an exchange has claimed; nil for none.
    mutating func setConnection(_ connection: Int?, of slot: Int) {
        takeOut(slot)
        records[slot].connection = connection
        records[slot].queue.isClaimed = connection != nil
        insert(slot)
    }

    mutating func setPriority(_ priority: Int, use: ConnectionUse, of slot: Int) {
        takeOut(slot)
        records[slot].urgency = Urgency(priority: priority, age: records[slot].urgency.age)
        records[slot].use = use
        insert(slot)
    }

    /// Returns the most urgent exchange of a key among some kinds; nil if none waits.
    func first(_ kinds: WaitingKinds, key: Int) -> Int? {
        let start = key * WaitingQueue.count
        guard start < queues.count else { return nil }
        var best: PositionedHeap<Urgency>.Entry?
        var bits = kinds.rawValue
        while bits != 0 {
            let queue = bits.trailingZeroBitCount
            bits &= bits - 1
            guard let entry = queues[start + queue].first else { continue }
            if let found = best, !(entry.rank < found.rank) { continue }
            best = entry
        }
        return best?.slot
    }

    /// Returns the number of exchanges of a key among some kinds.
    func count(_ kinds: WaitingKinds, key: Int) -> Int {
        let start = key * WaitingQueue.count
        guard start < queues.count else { return 0 }
        var count = 0
        var bits = kinds.rawValue
        while bits != 0 {
            count += queues[start + bits.trailingZeroBitCount].count
            bits &= bits - 1
        }
        return count
    }

    private func index(of slot: Int) -> Int { records[slot].key * WaitingQueue.count + records[slot].queue.number }

    private mutating func insert(_ slot: Int) {
        queues[index(of: slot)].insert(slot, rank: records[slot].urgency, positions: &positions)
    }

    private mutating func takeOut(_ slot: Int) {
        queues[index(of: slot)].remove(at: positions[slot], positions: &positions)
    }
}
