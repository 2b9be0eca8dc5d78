/// The numbers of connections on the loops of a pool, and the choice of the loop for the next one. Loops have the numbers
/// from 0, the home loop first.
struct LoopLoads: Sendable {
    private(set) var counts: [Int]
    /// The number of connections on the home loop from which on others are used.
    private let connectionsBeforeSpread: Int

    init(loops: Int, connectionsBeforeSpread: Int) {
        counts = Array(repeating: 0, count: loops)
        self.connectionsBeforeSpread = connectionsBeforeSpread
    }

    /// Adds a connection. Returns its loop: the home loop at first, and then the available one with the fewest connections.
    /// The home loop is always available.
    mutating func add(isAvailable: (Int) -> Bool) -> Int {
        var loop = 0
        if counts[0] >= connectionsBeforeSpread {
            for other in 1..<counts.count where counts[other] < counts[loop] && isAvailable(other) { loop = other }
        }
        counts[loop] += 1
        return loop
    }

    mutating func remove(from loop: Int) { counts[loop] -= 1 }
}
