/// Who may be on the wire: at most so many transfers per origin and in all; the rest waits, by priority and then by age.
/// Pure.
struct AdmissionQueue {
    typealias ID = UInt64

    private struct Waiting {
        let id: ID
        var priority: Int
        let age: UInt64
    }

    private struct Origin {
        var active = 0
        /// How many one connection carries at a time, as far as known.
        var streamsPerConnection = 1
        var waiting: [Waiting] = []
    }

    private let limitPerOrigin: Int
    private let limit: Int
    private var origins: [String: Origin] = [:]
    private var active = 0
    private var nextAge: UInt64 = 0
    /// Origins with waiting transfers, in the order in which they get their turn.
    private var waitingOrigins: [String] = []

    private(set) var waitingCount = 0

    init(limitPerOrigin: Int, limit: Int) {
        self.limitPerOrigin = max(1, limitPerOrigin)
        self.limit = max(1, limit)
    }

    private func hasRoom(_ origin: Origin) -> Bool {
        origin.active < limitPerOrigin * origin.streamsPerConnection && (active < limit || origin.streamsPerConnection > 1)
    }

    /// Whether the transfer may start now; otherwise it waits.
    mutating func submit(_ id: ID, _ origin: String, priority: Int) -> Bool {
        var entry = origins[origin] ?? Origin()
        defer { origins[origin] = entry }
        if entry.waiting.isEmpty, hasRoom(entry) {
            entry.active += 1
            active += 1
            return true
        }
        if entry.waiting.isEmpty { waitingOrigins.append(origin) }
        Self.insert(Waiting(id: id, priority: priority, age: nextAge), into: &entry.waiting)
        nextAge += 1
        waitingCount += 1
        return false
    }

    /// An active transfer has ended: those that may start instead, in order.
    mutating func release(_ origin: String) -> [ID] {
        active -= 1
        if let index = origins.index(forKey: origin) {
            origins.values[index].active -= 1
            if origins.count > 1_000, origins.values[index].active == 0, origins.values[index].waiting.isEmpty {
                origins.remove(at: index)
            }
        }
        return waitingCount == 0 ? [] : admit()
    }

    /// The origin's connections carry several transfers at a time: those that may start now.
    mutating func learn(_ origin: String, streamsPerConnection: Int) -> [ID] {
        guard var entry = origins[origin], entry.streamsPerConnection != streamsPerConnection else { return [] }
        entry.streamsPerConnection = streamsPerConnection
        origins[origin] = entry
        return waitingCount == 0 ? [] : admit()
    }

    /// A waiting transfer gives up; false when it was not waiting.
    mutating func withdraw(_ id: ID, _ origin: String) -> Bool {
        guard var entry = origins[origin], let index = entry.waiting.firstIndex(where: { $0.id == id }) else { return false }
        entry.waiting.remove(at: index)
        if entry.waiting.isEmpty { waitingOrigins.removeAll { $0 == origin } }
        waitingCount -= 1
        origins[origin] = entry
        return true
    }

    /// Moves a waiting transfer; one that runs is left alone.
    mutating func prioritize(_ id: ID, _ origin: String, priority: Int) {
        guard var entry = origins[origin], let index = entry.waiting.firstIndex(where: { $0.id == id }) else { return }
        var moved = entry.waiting.remove(at: index)
        moved.priority = priority
        Self.insert(moved, into: &entry.waiting)
        origins[origin] = entry
    }

    private mutating func admit() -> [ID] {
        var admitted: [ID] = []
        var blocked: [String] = []
        while !waitingOrigins.isEmpty {
            let name = waitingOrigins.removeFirst()
            guard var entry = origins[name], let first = entry.waiting.first else { continue }
            guard hasRoom(entry) else {
                blocked.append(name)
                continue
            }
            entry.waiting.removeFirst()
            entry.active += 1
            active += 1
            waitingCount -= 1
            admitted.append(first.id)
            if !entry.waiting.isEmpty { waitingOrigins.append(name) }
            origins[name] = entry
        }
        waitingOrigins = blocked
        return admitted
    }

    /// Sorted: the most urgent first, the oldest among equals first.
    private static func insert(_ new: Waiting, into waiting: inout [Waiting]) {
        var (low, high) = (0, waiting.count)
        while low < high {
            let middle = (low + high) / 2
            let other = waiting[middle]
            if other.priority > new.priority || other.priority == new.priority && other.age < new.age {
                low = middle + 1
            } else {
                high = middle
            }
        }
        waiting.insert(new, at: low)
    }
}
