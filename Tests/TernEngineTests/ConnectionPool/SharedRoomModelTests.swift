import Testing

@testable import TernEngine

/// Runs several pools that share their room in random orders: the limits hold after each step, and every exchange ends.
@Suite("Connection pool: random operations of several pools", .timeLimit(.minutes(1)))
struct SharedRoomModelTests {
    private struct Connection {
        let origin: String
        var capacity: Int?
        var inFlight = 0
        var isDraining = false
    }

    /// A pool on a loop, with the messages that have not arrived there.
    private struct Loop {
        var pool: ConnectionPool
        var messages: [RoomLedger.Message.Content] = []
        var connections: [ConnectionPool.ConnectionID: Connection] = [:]
        var waiting: Set<UInt64> = []
        var startsWhileWanted = 0
    }

    private struct Model {
        static let origins = ["a", "b", "c", "d"]
        let limitPerOrigin: Int
        let limit: Int
        var loops: [Loop]
        var ledger: RoomLedger
        var random: PoolRandom
        var nextExchange: UInt64 = 0
        var ended = 0
        var now: UInt64 = 0

        init(seed: UInt64) {
            random = PoolRandom(seed)
            let count = 2 + random.below(3)
            limitPerOrigin = count + random.below(6)
            limit = count + random.below(12)
            ledger = RoomLedger(loops: count, limitPerOrigin: limitPerOrigin, limit: limit)
            var limits = ConnectionPool.Limits(
                connectionsPerOrigin: limitPerOrigin / count, connections: .max, idleLifetime: 1_000)
            limits.sharesRoom = true
            limits.keptKeys = 2
            let pool = ConnectionPool(limits: limits)
            loops = Array(repeating: Loop(pool: pool), count: count)
        }

        /// The number of connections, also of those that connect.
        func open(_ origin: String? = nil) -> Int {
            loops.reduce(0) { $0 + $1.connections.values.count { origin == nil || $0.origin == origin } }
        }

        mutating func send(_ messages: [RoomLedger.Message]) {
            for message in messages { loops[message.loop].messages.append(message.content) }
        }

        mutating func perform(
            _ loop: Int, _ body: (inout ConnectionPool, inout [ConnectionPool.Action]) -> Void
        ) throws {
            var actions: [ConnectionPool.Action] = []
            var started = 0
            body(&loops[loop].pool, &actions)
            while !actions.isEmpty {
                let batch = actions
                actions.removeAll()
                for action in batch {
                    switch action {
                    case .open(let id, let key, _):
                        let origin = try #require(loops[loop].pool.key(key)?.origin)
                        loops[loop].connections[id] = Connection(origin: origin)
                        #expect(open(origin) <= limitPerOrigin && open() <= limit)
                    case .assign(let exchange, let id, _):
                        #expect(loops[loop].waiting.remove(exchange) != nil)
                        loops[loop].connections[id]?.inFlight += 1
                        started += 1
                    case .close(let id):
                        loops[loop].connections[id] = nil
                        loops[loop].pool.closed(id, actions: &actions)
                    case .ask(let origin):
                        let pool = loops[loop].pool
                        send(
                            ledger.ask(
                                .init(origin: origin, loop: loop), hasIdleOfOrigin: pool.hasIdle(origin),
                                hasIdle: pool.idleCount > 0))
                    case .stopAsking(let origin): ledger.stopAsking(.init(origin: origin, loop: loop))
                    case .giveBack(let origin, let count):
                        send(ledger.giveBack(.init(origin: origin, loop: loop), count: count))
                    }
                }
            }
            guard !ledger.needs.isEmpty else { return }
            if loops[loop].pool.idleCount > 0 { send(ledger.requests(to: loop)) }
            loops[loop].startsWhileWanted += started
            if loops[loop].startsWhileWanted >= 32 {
                loops[loop].startsWhileWanted = 0
                let pool = loops[loop].pool
                if let message = ledger.turn(of: loop, richest: { pool.richestOrigin(except: $0) }) { send([message]) }
            }
        }

        mutating func submit(_ loop: Int, to name: String? = nil, policy given: UInt64? = nil) throws {
            let exchange = nextExchange
            nextExchange += 1
            loops[loop].waiting.insert(exchange)
            let origin = name ?? Self.origins[random.below(Self.origins.count)]
            let priority = random.below(3)
            let policy = given ?? UInt64(random.below(2))
            try perform(loop) { pool, actions in
                var poolKey = PoolKey(origin: origin)
                poolKey.policy = policy
                let key = pool.index(of: poolKey)
                let submission = ConnectionPool.Submission(exchange: exchange, key: key, priority: priority)
                let isKnown = pool.submit(submission, actions: &actions)
                #expect(isKnown)
            }
        }

        /// Delivers a message, opens a connection or ends an exchange. Returns false if there is nothing to do.
        mutating func proceed(_ loop: Int) throws -> Bool {
            if !loops[loop].messages.isEmpty, random.below(2) == 0 {
                let message = loops[loop].messages.removeFirst()
                try perform(loop) { pool, actions in
                    switch message {
                    case .granted(let origin): pool.granted(origin, actions: &actions)
                    case .giveRoom(let origin, let isOwed):
                        pool.giveRoom(of: origin, isOwed: isOwed, actions: &actions)
                    case .closeOldestIdle: pool.closeOldestIdle(actions: &actions)
                    }
                }
                return true
            }
            let ids = loops[loop].connections.filter { $0.value.capacity == nil || $0.value.inFlight > 0 }.keys.sorted()
            guard !ids.isEmpty else { return !loops[loop].messages.isEmpty }
            let id = ids[random.below(ids.count)]
            now += 1
            if loops[loop].connections[id]?.capacity == nil {
                let capacity = random.below(3) == 0 ? 3 : 1
                loops[loop].connections[id]?.capacity = capacity
                try perform(loop) { [now] in $0.opened(id, capacity: capacity, now: now, actions: &$1) }
            } else {
                ended += 1
                loops[loop].connections[id]?.inFlight -= 1
                let isReusable = random.below(4) > 0
                try perform(loop) { [now] in $0.finished(on: id, isReusable: isReusable, now: now, actions: &$1) }
            }
            return true
        }

        mutating func withdrawOne(_ loop: Int) throws {
            guard let exchange = loops[loop].waiting.min() else { return }
            loops[loop].waiting.remove(exchange)
            ended += 1
            try perform(loop) { [now] pool, actions in
                let wasWaiting = pool.withdraw(exchange, now: now, actions: &actions)
                #expect(wasWaiting)
            }
        }
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func everyExchangeEndsWithinTheLimits(seed: UInt64) throws {
        var model = Model(seed: seed)
        for _ in 0..<2_000 {
            let loop = model.random.below(model.loops.count)
            switch model.random.below(10) {
            case 0...4: try model.submit(loop)
            case 5: try model.withdrawOne(loop)
            default: _ = try model.proceed(loop)
            }
        }
        var rounds = 0
        while model.loops.contains(where: { !$0.waiting.isEmpty || $0.connections.values.contains { $0.inFlight > 0 } }
        ),
            rounds < 200_000
        {
            rounds += 1
            _ = try model.proceed(model.random.below(model.loops.count))
        }
        let waiting = model.loops.reduce(0) { $0 + $1.waiting.count }
        #expect(waiting == 0)
        #expect(UInt64(model.ended) == model.nextExchange)
        // The room of each connection is counted, and no other.
        for _ in 0..<10_000 { _ = try model.proceed(model.random.below(model.loops.count)) }
        #expect(model.ledger.free == model.limit - model.open() && model.ledger.needs.isEmpty)
    }

    /// An exchange of another key, or of another origin, has its turn although one key always has exchanges that wait.
    @Test(arguments: [("a", 1, 0), ("b", 0, 0), ("a", 1, 1), ("b", 0, 1)] as [(String, UInt64, Int)])
    func everyKeyHasItsTurn(origin: String, policy: UInt64, loop: Int) throws {
        var model = Model(seed: 11)
        for busy in model.loops.indices {
            for _ in 0..<100 { try model.submit(busy, to: "a", policy: 0) }
        }
        for _ in 0..<300 { for busy in model.loops.indices { _ = try model.proceed(busy) } }
        let exchange = model.nextExchange
        try model.submit(loop, to: origin, policy: policy)
        var rounds = 0
        while model.loops[loop].waiting.contains(exchange), rounds < 3_000 {
            rounds += 1
            for busy in model.loops.indices {
                // More come than end.
                try model.submit(busy, to: "a", policy: 0)
                _ = try model.proceed(busy)
            }
        }
        #expect(rounds < 3_000)
    }

    /// A loop whose exchanges never end for long does not keep another one from its part.
    @Test func aPoolGetsItsPartFromOneThatIsNeverIdle() throws {
        var model = Model(seed: 7)
        for _ in 0..<500 { try model.submit(0) }
        for _ in 0..<200 { _ = try model.proceed(0) }
        let before = model.loops[1].connections.count
        for _ in 0..<20 { try model.submit(1) }
        for _ in 0..<2_000 {
            _ = try model.proceed(0)
            while !model.loops[1].messages.isEmpty { _ = try model.proceed(1) }
            if model.loops[1].waiting.isEmpty { break }
            _ = try model.proceed(1)
            try model.submit(0)
        }
        #expect(before == 0 && model.loops[1].waiting.isEmpty && !model.loops[0].waiting.isEmpty)
    }
}
