/// Whether loads that wait for scrolling to end may begin. Pure: it says when to look again.
struct ScrollGate: Sendable {
    /// What a change of the scrolling came to.
    enum Action: Equatable {
        case none
        /// Look again after the settling time, and then say `settled` with this turn.
        case settle(turn: Int)
        /// These loads may begin.
        case open([Int])
    }

    private(set) var isOpen = true
    private var turn = 0
    private var waiting: [Int] = []

    /// The view reports that it scrolls, or does not any more.
    mutating func report(isScrolling: Bool) -> Action {
        turn += 1
        if isScrolling {
            isOpen = false
            return .none
        }
        return isOpen ? .none : .settle(turn: turn)
    }

    /// The settling time of a turn is over; without effect if something was reported meanwhile.
    mutating func settled(turn: Int) -> Action {
        guard turn == self.turn, !isOpen else { return .none }
        isOpen = true
        defer { waiting = [] }
        return .open(waiting)
    }

    /// Whether the load may begin; else it waits.
    mutating func enter(_ load: Int) -> Bool {
        if !isOpen { waiting.append(load) }
        return isOpen
    }

    mutating func remove(_ load: Int) { waiting.removeAll { $0 == load } }
}
