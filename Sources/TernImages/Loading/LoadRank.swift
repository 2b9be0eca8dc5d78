import Tern

/// The place of a load among those that wait: its priority, and before its equals what is on the screen.
struct LoadRank: Sendable, Hashable, Comparable {
    /// How many ranks there are.
    static let count = Request.Priority.allCases.count * 2

    /// From 0, the last, to `count` - 1.
    let level: Int

    init(_ priority: Request.Priority, isVisible: Bool) {
        level = priority.rawValue * 2 + (isVisible ? 1 : 0)
    }

    private init(level: Int) { self.level = level }

    /// The rank of nobody.
    static let lowest = LoadRank(level: 0)

    var priority: Request.Priority { Request.Priority(rawValue: level / 2) ?? .normal }

    var isVisible: Bool { level % 2 == 1 }

    static func < (left: LoadRank, right: LoadRank) -> Bool { left.level < right.level }

    /// The highest rank of which there is one or more.
    static func highest(_ counts: [Int]) -> LoadRank {
        counts.lastIndex { $0 > 0 }.map(LoadRank.init(level:)) ?? .lowest
    }
}
