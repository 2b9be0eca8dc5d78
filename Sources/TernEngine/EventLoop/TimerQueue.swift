/// Holds deadlines in the order in which they pass. Pure: the caller passes the time. Adding, moving and cancelling a
/// timer takes logarithmic time and does not hash; moving one does not allocate.
package struct TimerQueue: Sendable {
    /// A timer of the queue. After the timer has expired or was cancelled, its token is refused.
    package struct Token: Sendable, Hashable {
        fileprivate let slot: Int
        fileprivate let generation: UInt32
    }

    private struct Timer: Sendable {
        var id: UInt64
        var generation: UInt32
    }

    private var heap = PositionedHeap<UInt64>()
    private var timers: [Timer] = []
    /// The positions of timers in the heap; -1 for free slots.
    private var positions: [Int] = []
    private var free: [Int] = []

    package init() {}

    /// The number of timers.
    package var count: Int { heap.count }

    /// The earliest deadline in nanoseconds; nil without a timer.
    package var nextDeadline: UInt64? { heap.first?.rank }

    /// Adds a timer. Several timers can have the same identifier.
    package mutating func schedule(_ id: UInt64, at deadline: UInt64) -> Token {
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            timers[slot].id = id
        } else {
            slot = timers.count
            timers.append(Timer(id: id, generation: 0))
            positions.append(-1)
        }
        heap.insert(slot, rank: deadline, positions: &positions)
        return Token(slot: slot, generation: timers[slot].generation)
    }

    /// Changes the deadline of a timer. Returns false if the timer has expired or was cancelled.
    @discardableResult
    package mutating func reschedule(_ token: Token, at deadline: UInt64) -> Bool {
        guard contains(token) else { return false }
        heap.update(at: positions[token.slot], rank: deadline, positions: &positions)
        return true
    }

    /// Removes a timer. Returns false if it has expired or was cancelled.
    @discardableResult
    package mutating func cancel(_ token: Token) -> Bool {
        guard contains(token) else { return false }
        remove(token.slot)
        return true
    }

    /// Removes the timers whose deadlines are not after `now`, and appends their identifiers in the order of the
    /// deadlines.
    package mutating func takeExpired(now: UInt64, into expired: inout [UInt64]) {
        while let first = heap.first, first.rank <= now {
            expired.append(timers[first.slot].id)
            remove(first.slot)
        }
    }

    private func contains(_ token: Token) -> Bool {
        token.slot < timers.count && timers[token.slot].generation == token.generation && positions[token.slot] >= 0
    }

    private mutating func remove(_ slot: Int) {
        heap.remove(at: positions[slot], positions: &positions)
        positions[slot] = -1
        timers[slot].generation &+= 1
        free.append(slot)
    }
}
