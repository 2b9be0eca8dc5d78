/// Decides which transfers may be on the wire. The number of connections is limited per origin and in total. The other
/// transfers wait, by priority and then by age. Origins take turns, so that one with many waiting transfers does not
/// hold up another with few. Pure.
struct AdmissionQueue {
    typealias ID = UInt64

    private struct Waiting {
        let id: ID
        var priority: Int
        let age: UInt64
        let isExclusive: Bool
    }

    private struct Origin {
        let name: String
        /// The number of transfers on the wire that share connections, and of those that have their own.
        var sharing = 0
        var exclusive = 0
        /// The number of transfers that one connection carries at a time, as far as known.
        var streamsPerConnection = 1
        var waiting: [Waiting] = []

        var isIdle: Bool { sharing == 0 && exclusive == 0 && waiting.isEmpty }

        /// The minimum number of connections that these transfers take.
        var connections: Int {
            streamsPerConnection == 1
                ? exclusive + sharing : exclusive + (sharing + streamsPerConnection - 1) / streamsPerConnection
        }

        mutating func count(_ change: Int, isExclusive: Bool) {
            if isExclusive { exclusive += change } else { sharing += change }
        }
    }

    /// The number of origins that are kept although no transfer is under way.
    private static let keptOrigins = 1_000

    private let limitPerOrigin: Int
    private let limit: Int
    private let order: Session.Configuration.QueueOrder
    private var origins: [Origin] = []
    private var indexes: [String: Int] = [:]
    /// The places in `origins` that are free.
    private var free: [Int] = []
    /// The origin of the last call. Most calls are for the same origin, and hashing its name costs more than everything
    /// else.
    private var last: (name: String, index: Int)?
    /// The number of connections of all origins.
    private var connections = 0
    private var nextAge: UInt64 = 0
    /// Origins with waiting transfers, in the order in which they get their turn.
    private var waitingOrigins: [Int] = []

    private(set) var waitingCount = 0

    init(
        limitPerOrigin: Int, limit: Int, order: Session.Configuration.QueueOrder = .firstInFirstOut
    ) {
        self.order = order
        self.limitPerOrigin = max(1, limitPerOrigin)
        self.limit = max(1, limit)
    }

    private mutating func index(of name: String) -> Int? {
        if let last, last.name == name { return last.index }
        guard let index = indexes[name] else { return nil }
        last = (name, index)
        return index
    }

    private mutating func indexMaking(_ name: String) -> Int {
        if let index = index(of: name) { return index }
        let index: Int
        if let reused = free.popLast() {
            origins[reused] = Origin(name: name)
            index = reused
        } else {
            origins.append(Origin(name: name))
            index = origins.count - 1
        }
        indexes[name] = index
        last = (name, index)
        return index
    }

    /// Counts one more transfer if there is room for it. Returns whether there is.
    private mutating func enter(_ index: Int, isExclusive: Bool) -> Bool {
        let before = origins[index].connections
        origins[index].count(1, isExclusive: isExclusive)
        let added = origins[index].connections - before
        if added == 0 || (before < limitPerOrigin && connections < limit) {
            connections += added
            return true
        }
        origins[index].count(-1, isExclusive: isExclusive)
        return false
    }

    /// Submits a transfer. Returns whether it may start now; otherwise it waits. An exclusive transfer does not share
    /// its connection.
    mutating func submit(_ id: ID, _ origin: String, priority: Int, isExclusive: Bool = false) -> Bool {
        let index = indexMaking(origin)
        let isFirst = origins[index].waiting.isEmpty
        if isFirst, enter(index, isExclusive: isExclusive) { return true }
        if isFirst { waitingOrigins.append(index) }
        let waiting = Waiting(id: id, priority: priority, age: nextAge, isExclusive: isExclusive)
        insert(waiting, into: &origins[index].waiting)
        nextAge += 1
        waitingCount += 1
        return false
    }

    /// Removes an active transfer that has ended. Returns those that may start instead, in order.
    mutating func release(_ origin: String, isExclusive: Bool = false) -> [ID] {
        guard let index = index(of: origin) else { return [] }
        connections -= origins[index].connections
        origins[index].count(-1, isExclusive: isExclusive)
        connections += origins[index].connections
        if indexes.count > Self.keptOrigins, origins[index].isIdle {
            indexes[origin] = nil
            free.append(index)
            last = nil
        }
        return waitingCount == 0 ? [] : admit()
    }

    /// Sets the number of transfers that the origin's connections carry at a time. Returns the transfers that may start
    /// now.
    mutating func learn(_ origin: String, streamsPerConnection: Int) -> [ID] {
        guard let index = index(of: origin), origins[index].streamsPerConnection != streamsPerConnection else {
            return []
        }
        connections -= origins[index].connections
        origins[index].streamsPerConnection = streamsPerConnection
        connections += origins[index].connections
        return waitingCount == 0 ? [] : admit()
    }

    /// Returns whether a connection to the origin is known to carry several transfers at a time.
    mutating func isMultiplexed(_ origin: String) -> Bool {
        index(of: origin).map { origins[$0].streamsPerConnection > 1 } ?? false
    }

    /// Removes a waiting transfer. Returns false if it was not waiting.
    mutating func withdraw(_ id: ID, _ origin: String) -> Bool {
        guard let index = index(of: origin), let place = origins[index].waiting.firstIndex(where: { $0.id == id })
        else {
            return false
        }
        origins[index].waiting.remove(at: place)
        if origins[index].waiting.isEmpty { waitingOrigins.removeAll { $0 == index } }
        waitingCount -= 1
        return true
    }

    /// Moves a waiting transfer. Does nothing for one that runs.
    mutating func prioritize(_ id: ID, _ origin: String, priority: Int) {
        guard let index = index(of: origin), let place = origins[index].waiting.firstIndex(where: { $0.id == id })
        else {
            return
        }
        var moved = origins[index].waiting.remove(at: place)
        moved.priority = priority
        insert(moved, into: &origins[index].waiting)
    }

    private mutating func admit() -> [ID] {
        var admitted: [ID] = []
        var blocked: [Int] = []
        while !waitingOrigins.isEmpty {
            let index = waitingOrigins.removeFirst()
            guard let first = origins[index].waiting.first, enter(index, isExclusive: first.isExclusive) else {
                blocked.append(index)
                continue
            }
            origins[index].waiting.removeFirst()
            admitted.append(first.id)
            waitingCount -= 1
            if !origins[index].waiting.isEmpty { waitingOrigins.append(index) }
        }
        waitingOrigins = blocked
        return admitted
    }

    /// Inserts a transfer. The most urgent comes first, and among equals the oldest or the newest.
    private func insert(_ new: Waiting, into waiting: inout [Waiting]) {
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            let other = waiting[middle]
            let isBefore = order == .firstInFirstOut ? other.age < new.age : other.age > new.age
            if other.priority > new.priority || other.priority == new.priority && isBefore {
                low = middle + 1
            } else {
                high = middle
            }
        }
        waiting.insert(new, at: low)
    }
}
