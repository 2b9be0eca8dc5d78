@testable import TernEngine

/// A pool whose actions are returned as short texts: `open 1 for 7`, `assign 7 to 1`, `assign 8 to 1 again`, `close 1`.
/// Connections are numbered in the order in which they are opened.
struct PoolHarness {
    /// The properties of a submission that are not the default ones.
    enum Trait {
        case fresh, exclusive, waitsForShared, live
    }

    var pool: ConnectionPool
    /// The identifiers of the connections, by number.
    private var identifiers: [ConnectionPool.ConnectionID] = []
    private var actions: [ConnectionPool.Action] = []
    var now: UInt64 = 0
    /// Confirms each close at once, as the pool's own loop does.
    var confirmsCloses = true

    init(
        perOrigin: Int = 100, total: Int = 100, idleLifetime: UInt64 = 1_000, streams: Int = 100,
        order: ConnectionPool.Order = .firstInFirstOut, live: Int = .max, lowPriority: Int = .min,
        sharesRoom: Bool = false, age: UInt64 = .max, uses: Int = .max, waitsForStreams: Bool = false
    ) {
        var limits = ConnectionPool.Limits(
            connectionsPerOrigin: perOrigin, connections: total, idleLifetime: idleLifetime)
        limits.streams = streams
        limits.liveConnectionsPerOrigin = live
        limits.lowPriority = lowPriority
        limits.sharesRoom = sharesRoom
        (limits.age, limits.uses) = (age, uses)
        limits.waitsForStreams = waitsForStreams
        pool = ConnectionPool(limits: limits, order: order)
    }

    /// Returns the key of a name: an origin, or an origin and a policy as in `a/1`.
    static func key(_ name: String) -> PoolKey {
        let parts = name.split(separator: "/", maxSplits: 1)
        var key = PoolKey(origin: String(parts[0]))
        if parts.count > 1 { key.policy = UInt64(parts[1]) ?? 0 }
        return key
    }

    mutating func submit(
        _ exchange: UInt64, to name: String = "a", priority: Int = 0, _ traits: Trait...
    ) -> [String] {
        var submission = ConnectionPool.Submission(
            exchange: exchange, key: pool.index(of: Self.key(name)), priority: priority)
        submission.isLive = traits.contains(.live)
        submission.needsFresh = traits.contains(.fresh)
        submission.mayShare = !traits.contains(.exclusive)
        submission.waitsForShared = traits.contains(.waitsForShared)
        let isKnown = pool.submit(submission, actions: &actions)
        return isKnown ? takeActions() : ["forgotten"]
    }

    mutating func submit(
        _ exchanges: ClosedRange<UInt64>, to name: String = "a", _ traits: Trait...
    ) -> [String] {
        exchanges.flatMap { exchange in
            switch (traits.first, traits.count) {
            case (let trait?, 1): submit(exchange, to: name, trait)
            default: submit(exchange, to: name)
            }
        }
    }

    mutating func open(_ connection: Int, capacity: Int = 1, awaitsLimit: Bool = false) -> [String] {
        pool.opened(
            identifier(connection), capacity: capacity, awaitsLimit: awaitsLimit, now: now, actions: &actions)
        return takeActions()
    }

    /// Submits an exchange for which a connection is opened, and opens it.
    mutating func start(_ exchange: UInt64, to name: String = "a", capacity: Int = 1) -> [String] {
        let texts = submit(exchange, to: name)
        return texts + open(identifiers.count, capacity: capacity)
    }

    mutating func finish(_ connection: Int, isReusable: Bool = true) -> [String] {
        pool.finished(on: identifier(connection), isReusable: isReusable, now: now, actions: &actions)
        return takeActions()
    }

    mutating func fail(_ connection: Int) -> (exchange: UInt64?, actions: [String]) {
        let exchange = pool.openFailed(identifier(connection), actions: &actions)
        return (exchange, takeActions())
    }

    mutating func withdraw(_ exchange: UInt64) -> [String] {
        pool.withdraw(exchange, now: now, actions: &actions) ? takeActions() : ["not waiting"]
    }

    mutating func change(_ connection: Int, capacity: Int) -> [String] {
        pool.capacityChanged(identifier(connection), capacity: capacity, now: now, actions: &actions)
        return takeActions()
    }

    mutating func prioritize(_ exchange: UInt64, priority: Int) -> [String] {
        pool.prioritize(exchange, priority: priority)
        pool.serve(exchange, actions: &actions)
        return takeActions()
    }

    mutating func becomeLive(_ connection: Int) -> [String] {
        pool.becameLive(on: identifier(connection), actions: &actions)
        return takeActions()
    }

    mutating func drain(_ connection: Int) -> [String] {
        pool.draining(identifier(connection), actions: &actions)
        return takeActions()
    }

    mutating func lose(_ connection: Int) -> [String] {
        pool.closed(identifier(connection), actions: &actions)
        return takeActions()
    }

    mutating func giveUp(_ connection: Int) -> [String] {
        pool.giveUp(identifier(connection), actions: &actions)
        return takeActions()
    }

    mutating func expire(at time: UInt64) -> [String] {
        now = time
        pool.expire(now: time, actions: &actions)
        return takeActions()
    }

    mutating func grant(_ origin: String = "a") -> [String] {
        pool.granted(origin, actions: &actions)
        return takeActions()
    }

    mutating func giveRoom(of origin: String = "a", isOwed: Bool = false) -> [String] {
        pool.giveRoom(of: origin, isOwed: isOwed, actions: &actions)
        return takeActions()
    }

    mutating func closeIdle() -> [String] {
        pool.closeIdle(actions: &actions)
        return takeActions()
    }

    mutating func closeAll() -> [String] {
        pool.closeAll(actions: &actions)
        return takeActions()
    }

    /// Returns the identifier of a connection; one that the pool does not know for a number that was not used.
    func identifier(_ connection: Int) -> ConnectionPool.ConnectionID {
        identifiers.indices.contains(connection - 1) ? identifiers[connection - 1] : .unknown
    }

    private func number(_ connection: ConnectionPool.ConnectionID) -> Int {
        (identifiers.lastIndex(of: connection) ?? -1) + 1
    }

    private mutating func takeActions() -> [String] {
        var texts: [String] = []
        while !actions.isEmpty {
            let batch = actions
            actions.removeAll()
            for action in batch {
                switch action {
                case .assign(let exchange, let connection, let isReused):
                    texts.append("assign \(exchange) to \(number(connection))" + (isReused ? " again" : ""))
                case .open(let connection, _, let exchange):
                    identifiers.append(connection)
                    texts.append("open \(identifiers.count) for \(exchange)")
                case .close(let connection):
                    texts.append("close \(number(connection))")
                    if confirmsCloses { pool.closed(connection, actions: &actions) }
                case .ask(let origin): texts.append("ask for \(origin)")
                case .stopAsking(let origin): texts.append("stop asking for \(origin)")
                case .giveBack(let origin, let count): texts.append("give \(count) of \(origin) back")
                }
            }
        }
        return texts
    }
}

/// A generator that gives the same numbers in every run.
struct PoolRandom: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    mutating func below(_ limit: Int) -> Int { Int(next() >> 16) % limit }
}

extension ConnectionPool.ConnectionID {
    /// The identifier of no connection.
    static let unknown = Self(slot: .max, generation: .max)
}

extension Sequence<ConnectionPool.ConnectionID> {
    /// Returns the identifiers in an order that is the same in every run.
    func sorted() -> [ConnectionPool.ConnectionID] {
        sorted { ($0.generation, $0.slot) < ($1.generation, $1.slot) }
    }
}
