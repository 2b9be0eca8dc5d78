/// Who leads each request that several wait for, and who waits. Pure.
struct Flights<Key: Hashable, Leader, Waiter> {
    private struct Flight {
        var leader: Leader
        var waiters: [Waiter] = []
    }

    private var flights: [Key: Flight] = [:]

    enum Arrival {
        /// Nobody asks for this yet: the caller does.
        case lead
        /// Somebody does, and the caller waits.
        case wait(leader: Leader)
    }

    /// For tests and nobody else.
    var isEmpty: Bool { flights.isEmpty }

    mutating func join(_ key: Key, as leader: Leader, _ waiter: Waiter) -> Arrival {
        guard let flight = flights[key] else {
            flights[key] = Flight(leader: leader)
            return .lead
        }
        flights[key]?.waiters.append(waiter)
        return .wait(leader: flight.leader)
    }

    mutating func leave(_ key: Key, where isLeaver: (Waiter) -> Bool) {
        flights[key]?.waiters.removeAll(where: isLeaver)
    }

    /// The leader has an answer: those that it is for.
    mutating func land(_ key: Key) -> [Waiter] { flights.removeValue(forKey: key)?.waiters ?? [] }

    /// The leader has gone without one: who is asked to lead next; nil when nobody waits, and the flight is over.
    mutating func successor(_ key: Key) -> Waiter? {
        guard var flight = flights[key] else { return nil }
        guard !flight.waiters.isEmpty else {
            flights[key] = nil
            return nil
        }
        let successor = flight.waiters.removeFirst()
        flights[key] = flight
        return successor
    }

    mutating func lead(_ key: Key, by leader: Leader) { flights[key]?.leader = leader }
}
