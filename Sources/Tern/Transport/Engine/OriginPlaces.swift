#if os(Linux)
/// The choice of the loop for each attempt of a session that uses several loops. Pure; loops have the numbers from 0,
/// the session's home loop first.
///
/// Each origin has a home: one of the loops. Its attempts go there while they are few, and then to the loop that
/// carries the fewest of them. Over HTTP/2 they go elsewhere only when a connection is full, because one connection
/// carries them all. While it is not known which version of HTTP a server speaks, they stay at home.
struct OriginPlaces: Sendable {
    /// The number of attempts to one origin from which on they go to other loops, too: one loop does that much with
    /// the least work, and more finds it busy.
    static let attemptsAtHome = 8
    /// The number of origins at which those without attempts are forgotten.
    static let keptOrigins = 1_000

    /// The way in which an attempt is bound to a loop.
    enum Binding: Sendable {
        /// Any loop can carry it.
        case none
        /// The home of its origin carries it, such as a stream of events, of which few others last as long.
        case origin
        /// The session's home loop carries it.
        case session
    }

    /// The place of an attempt: the loop that carries it, and the number of the origin.
    struct Place: Sendable, Equatable {
        let loop: Int
        let origin: Int
        /// Whether the loop is the home of the origin.
        let isHome: Bool
    }

    private struct Origin: Sendable {
        let name: String
        let home: Int
        /// The numbers of attempts, by loop.
        var counts: [Int]
        /// The number of attempts that one connection carries; nil while it is not known.
        var streams: Int?

        var isUnused: Bool { counts.allSatisfy { $0 == 0 } }
    }

    private let loops: Int
    private let attemptsAtHome: Int
    /// Whether homes take turns, so that tests use every loop.
    private let spreadsHomes: Bool
    private var origins: [Origin?] = []
    private var free: [Int] = []
    private var indexes: [String: Int] = [:]
    private var sweepCount = keptOrigins
    /// The number of origins that are remembered.
    var originCount: Int { indexes.count }
    /// The numbers of attempts to all origins, by loop.
    private(set) var counts: [Int]

    init(loops: Int, attemptsAtHome: Int = attemptsAtHome, spreadsHomes: Bool = false) {
        self.loops = loops
        self.attemptsAtHome = attemptsAtHome
        self.spreadsHomes = spreadsHomes
        counts = Array(repeating: 0, count: loops)
    }

    /// Chooses the loop of an attempt, and counts it there until `ended(_:)`.
    ///
    /// - Parameters:
    ///   - mayShare: Whether the server may speak HTTP/2.
    ///   - isAvailable: Returns whether a loop can serve connections. The session's home loop always can.
    mutating func place(
        _ name: String, mayShare: Bool, binding: Binding, isAvailable: (Int) -> Bool = { _ in true }
    ) -> Place {
        let index = index(of: name, isAvailable)
        var loop = 0
        if let origin = origins[index], binding != .session || origin.streams ?? 1 > 1 {
            loop = binding == .none ? choice(of: origin, mayShare: mayShare, isAvailable) : origin.home
        }
        origins[index]?.counts[loop] += 1
        counts[loop] += 1
        return Place(loop: loop, origin: index, isHome: loop == origins[index]?.home)
    }

    private func choice(of origin: Origin, mayShare: Bool, _ isAvailable: (Int) -> Bool) -> Int {
        let streams = origin.streams ?? (mayShare ? .max : 1)
        let limit = streams > 1 ? streams : attemptsAtHome
        guard origin.counts[origin.home] >= limit else { return origin.home }
        let candidates = (0..<loops).filter { $0 == origin.home || isAvailable($0) }
        return candidates.min { rank(of: $0, for: origin) < rank(of: $1, for: origin) } ?? origin.home
    }

    /// Returns the order in which loops are chosen, the lowest first: those whose connections over HTTP/2 have room, then
    /// those that carry the fewest attempts, and the home among equals.
    private func rank(of loop: Int, for origin: Origin) -> (Int, Int, Int, Int) {
        let count = origin.counts[loop]
        let needsConnection = origin.streams.map { count % $0 == 0 } ?? true
        return (needsConnection ? 1 : 0, count, loop == origin.home ? 0 : 1, counts[loop])
    }

    /// Returns the index of an origin, which gets a home if it is new.
    private mutating func index(of name: String, _ isAvailable: (Int) -> Bool) -> Int {
        if let index = indexes[name] { return index }
        if indexes.count >= sweepCount { forgetUnused() }
        var home = 0
        if spreadsHomes {
            home = (indexes.count + 1) % loops
        } else if counts[0] >= attemptsAtHome {
            home = (0..<loops).min { counts[$0] < counts[$1] } ?? 0
        }
        if !isAvailable(home) { home = 0 }
        let origin = Origin(name: name, home: home, counts: Array(repeating: 0, count: loops))
        let index: Int
        if let reused = free.popLast() {
            index = reused
            origins[index] = origin
        } else {
            index = origins.count
            origins.append(origin)
        }
        indexes[name] = index
        return index
    }

    private mutating func forgetUnused() {
        for (index, origin) in origins.enumerated() {
            guard let origin, origin.isUnused else { continue }
            origins[index] = nil
            indexes[origin.name] = nil
            free.append(index)
        }
        sweepCount = max(Self.keptOrigins, 2 * indexes.count)
    }

    /// Records the end of an attempt.
    mutating func ended(_ place: Place) {
        origins[place.origin]?.counts[place.loop] -= 1
        counts[place.loop] -= 1
    }

    /// Records the number of attempts that one connection to an origin carries: 1 over HTTP/1.
    mutating func learn(_ streams: Int, of name: String) {
        if let index = indexes[name] { origins[index]?.streams = max(1, streams) }
    }
}
#endif
