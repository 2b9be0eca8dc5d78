/// The numbers of a pool's connections on its loops, and the choice of the loop for the next one. Loops have the
/// numbers from 0, the home loop first.
struct LoopLoads: Sendable {
    private(set) var counts: [Int]
    /// The number of connections on the home loop from which on others are used.
    private let connectionsBeforeSpread: Int

    init(loops: Int, connectionsBeforeSpread: Int) {
        counts = Array(repeating: 0, count: loops)
        self.connectionsBeforeSpread = connectionsBeforeSpread
    }

    /// Returns the work of one connection on a loop. A connection on the home loop counts twice, because every request
    /// of the pool begins and ends there.
    static func work(on loop: Int) -> Int { loop == 0 ? 2 : 1 }

    /// Adds a connection. Returns its loop: the home loop at first, and then the available one with the least work. The
    /// home loop is always available.
    ///
    /// - Parameter work: Returns the work of the connections of all pools on a loop.
    mutating func add(work: (Int) -> Int, isAvailable: (Int) -> Bool) -> Int {
        var loop = 0
        if counts[0] >= connectionsBeforeSpread {
            var least = work(0)
            for other in 1..<counts.count {
                let own = work(other)
                if own < least, isAvailable(other) { (loop, least) = (other, own) }
            }
        }
        counts[loop] += 1
        return loop
    }

    mutating func remove(from loop: Int) { counts[loop] -= 1 }
}
