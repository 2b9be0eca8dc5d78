import Testing

@testable import TernEngine

/// Runs random operations against a model that knows connections and exchanges from the actions alone.
@Suite("Connection pool: random operations", .timeLimit(.minutes(1)))
struct PoolModelTests {
    private struct Connection {
        let key: String
        var isConnecting = true
        var isDraining = false
        var isReserved = false
        var capacity = 0
        var inFlight: [UInt64] = []
        var isUsed = false

        var isUnused: Bool { isConnecting || inFlight.isEmpty }
    }

    private struct Exchange {
        let key: String
        let isFresh: Bool
        let isExclusive: Bool
    }

    private struct Model {
        /// The keys, most of which are forgotten again and again.
        static let names = ["a", "a/1", "a/2", "b", "b/1", "c", "d", "e", "f", "f/1", "g", "h"]
        var pool: ConnectionPool
        let limits: ConnectionPool.Limits
        let keyCount: Int
        var connections: [ConnectionPool.ConnectionID: Connection] = [:]
        /// The keys of connections whose close is not confirmed.
        var closing: [ConnectionPool.ConnectionID: String] = [:]
        var waiting: [UInt64: Exchange] = [:]
        var assigned: Set<UInt64> = []
        /// Keys of which the pool knows whether their connections are multiplexed, and how many exchanges it expects
        /// on a new one.
        var expected: [String: Int] = [:]
        var isMultiplexed: Set<String> = []
        var keys: [String: ConnectionPool.KeyID] = [:]
        var mostKeysInUse = 0
        /// The number of slots that connections have had.
        var slotCount: UInt32 = 0
        var forgottenKeys = 0
        var random: PoolRandom
        var now: UInt64 = 0
        var nextExchange: UInt64 = 0
        var actions: [ConnectionPool.Action] = []
        /// The connection that has just been opened.
        var opening: ConnectionPool.ConnectionID?
        var waits: [String: Bool] = [:]

        init(seed: UInt64) {
            random = PoolRandom(seed)
            var limits = ConnectionPool.Limits(
                connectionsPerOrigin: 1 + random.below(4), connections: 1 + random.below(8), idleLifetime: 50)
            limits.streams = 1 + random.below(4)
            limits.keptKeys = 1 + random.below(6)
            keyCount = 2 + random.below(Self.names.count - 1)
            self.limits = limits
            pool = ConnectionPool(limits: limits, order: random.below(2) == 0 ? .firstInFirstOut : .lastInFirstOut)
        }

        static func origin(_ key: String) -> Substring { key.prefix(1) }

        func connections(of origin: Substring) -> Int {
            connections.values.count { Self.origin($0.key) == origin }
                + closing.values.count { Self.origin($0) == origin }
        }

        mutating func perform() throws {
            for action in actions {
                switch action {
                case .open(let id, let key, let exchange):
                    let name = try #require(waiting[exchange]?.key)
                    #expect(pool.key(key) == PoolHarness.key(name))
                    #expect(connections.updateValue(Connection(key: name), forKey: id) == nil)
                    slotCount = max(slotCount, id.slot + 1)
                case .close(let id):
                    let closed = try #require(connections[id])
                    connections[id] = nil
                    closing[id] = closed.key
                    #expect(closed.isConnecting || closed.inFlight.isEmpty)
                case .assign(let exchange, let id, let isReused):
                    let found = try #require(waiting[exchange])
                    waiting[exchange] = nil
                    var connection = try #require(connections[id])
                    #expect(assigned.insert(exchange).inserted == true)
                    #expect(found.key == connection.key && isReused == connection.isUsed)
                    #expect(!connection.isConnecting && !connection.isDraining && !connection.isReserved)
                    #expect(connection.inFlight.count < connection.capacity)
                    #expect(!found.isFresh || id == opening)
                    #expect(!found.isExclusive || connection.inFlight.isEmpty)
                    connection.inFlight.append(exchange)
                    connection.isReserved = found.isExclusive
                    connection.isUsed = true
                    connections[id] = connection
                case .ask, .stopAsking, .giveBack: Issue.record("the pool has limits of its own")
                }
                // Connections that are being closed count, too.
                #expect(connections.count + closing.count <= limits.connections)
                for name in Self.names { #expect(connections(of: Self.origin(name)) <= limits.connectionsPerOrigin) }
            }
            actions.removeAll()
            opening = nil
        }

        /// Checks that no exchange waits although it could go on. While connections are being closed, those for which
        /// they are closed are not known here.
        func check() {
            #expect(pool.closingCount == closing.count && pool.waitingCount == waiting.count)
            var open: [String: ConnectionPool.OpenCount] = [:]
            for connection in connections.values where !connection.isConnecting {
                let key = String(Self.origin(connection.key))
                open[key, default: .init()].active += connection.inFlight.isEmpty ? 0 : 1
                open[key, default: .init()].idle += connection.inFlight.isEmpty ? 1 : 0
            }
            #expect(pool.openCounts == open)
            guard closing.isEmpty else { return }
            #expect(pool.connectionCount == connections.count)
            var perOrigin: [Substring: (count: Int, idle: Int)] = [:]
            var idle = 0
            for (id, connection) in connections {
                let isIdle = connection.isConnecting ? pool.claimant(of: id) == nil : connection.inFlight.isEmpty
                perOrigin[Self.origin(connection.key), default: (0, 0)].count += 1
                if isIdle {
                    idle += 1
                    perOrigin[Self.origin(connection.key), default: (0, 0)].idle += 1
                }
                if let claimant = pool.claimant(of: id) { #expect(waiting[claimant]?.key == connection.key) }
            }
            #expect(pool.idleCount == idle)
            #expect(perOrigin.values.allSatisfy { $0.count <= limits.connectionsPerOrigin })
            let claimants = connections.keys.compactMap { pool.claimant(of: $0) }
            #expect(Set(claimants).count == claimants.count)
            let hasRoom = connections.count < limits.connections || idle > 0
            for name in Self.names {
                let exchanges = waiting.filter { $0.value.key == name }
                guard !exchanges.isEmpty else { continue }
                let own = connections.filter { $0.value.key == name }
                let free = own.values.filter {
                    !$0.isConnecting && !$0.isDraining && !$0.isReserved && $0.inFlight.count < $0.capacity
                }
                for exchange in exchanges.values where !exchange.isFresh {
                    #expect(!free.contains { !exchange.isExclusive || $0.inFlight.isEmpty })
                }
                // Nothing connects for no exchange while another has no connection.
                if own.contains(where: { $0.value.isConnecting && pool.claimant(of: $0.key) == nil }) {
                    #expect(exchanges.keys.allSatisfy(claimants.contains))
                }
                let (count, idleInOrigin) = perOrigin[Self.origin(name)] ?? (0, 0)
                guard hasRoom, count < limits.connectionsPerOrigin || idleInOrigin > 0 else { continue }
                // There is room: each exchange has a connecting connection, or shares one that is claimed.
                let without = exchanges.filter { !claimants.contains($0.key) }
                #expect(!without.values.contains { $0.isExclusive })
                let sharing = own.keys.count { id in
                    pool.claimant(of: id).map { exchanges[$0]?.isExclusive == false } ?? false
                }
                let unknown = waits[name] == true ? limits.streams : 1
                #expect(without.count <= sharing * ((expected[name] ?? unknown) - 1))
            }
            if waiting.isEmpty { #expect(claimants.isEmpty) }
        }

        private mutating func any(where isFit: (Connection) -> Bool) -> ConnectionPool.ConnectionID? {
            let fit = connections.filter { isFit($0.value) }.keys.sorted()
            return fit.isEmpty ? nil : fit[random.below(fit.count)]
        }

        private mutating func anyWaiting() -> UInt64? {
            let ids = waiting.keys.sorted()
            return ids.isEmpty ? nil : ids[random.below(ids.count)]
        }

        mutating func step() throws {
            now += UInt64(random.below(10))
            reportClosedConnection()
            if try confirmCloses() { return }
            switch random.below(16) {
            case 0...4: submit()
            case 5, 6: open()
            case 7...9: finish(isReusable: random.below(5) > 0)
            case 10:
                guard let id = anyWaiting() else { return }
                waiting[id] = nil
                #expect(pool.withdraw(id, now: now, actions: &actions) == true)
            case 11:
                guard let id = anyWaiting() else { return }
                #expect(pool.prioritize(id, priority: random.below(5)) == true)
            case 12:
                guard let id = any(where: \.isConnecting) else { return }
                let claimant = pool.claimant(of: id)
                connections[id] = nil
                #expect(pool.openFailed(id, actions: &actions) == claimant)
                if let claimant { #expect(waiting.removeValue(forKey: claimant) != nil) }
            case 13:
                guard let id = any(where: { !$0.isConnecting }) else { return }
                let capacity = 1 + random.below(4)
                connections[id]?.capacity = capacity
                if let key = connections[id]?.key, connections[id]?.isDraining == false {
                    if capacity > 1 || isMultiplexed.contains(key) {
                        expected[key] = capacity
                        isMultiplexed.insert(key)
                    }
                }
                pool.capacityChanged(id, capacity: capacity, now: now, actions: &actions)
            case 14:
                guard let id = any(where: { _ in true }) else { return }
                if random.below(2) == 0 {
                    connections[id]?.isDraining = true
                    pool.draining(id, actions: &actions)
                } else if connections[id]?.isConnecting == true, random.below(2) == 0 {
                    pool.giveUp(id, actions: &actions)
                } else {
                    connections[id] = nil
                    pool.closed(id, actions: &actions)
                }
            default:
                if random.below(4) == 0 {
                    pool.closeIdle(actions: &actions)
                } else {
                    pool.expire(now: now, actions: &actions)
                    if let next = pool.nextExpiry { #expect(next > now) }
                }
            }
        }

        /// Confirms none, one or all of the connections that are being closed. Returns whether there were any.
        mutating func confirmCloses() throws -> Bool {
            let ids = closing.keys.sorted()
            if ids.isEmpty || random.below(4) == 0 { return false }
            for id in random.below(2) == 0 ? ids : [ids[random.below(ids.count)]] {
                closing[id] = nil
                // A connection can end by itself before it is closed.
                if random.below(4) == 0 {
                    #expect(pool.openFailed(id, actions: &actions) == nil)
                } else {
                    pool.closed(id, actions: &actions)
                }
                try perform()
                check()
            }
            return true
        }

        /// Reports events of a connection that the pool has forgotten, or closes: nothing happens.
        private mutating func reportClosedConnection() {
            guard slotCount > 0 else { return }
            let id = ConnectionPool.ConnectionID(
                slot: UInt32(random.below(Int(slotCount))), generation: UInt32(random.below(3)))
            guard connections[id] == nil else { return }
            pool.opened(id, capacity: 2, now: now, actions: &actions)
            pool.capacityChanged(id, capacity: 2, now: now, actions: &actions)
            pool.finished(on: id, isReusable: true, now: now, actions: &actions)
            pool.draining(id, actions: &actions)
            pool.giveUp(id, actions: &actions)
            if closing[id] == nil {
                pool.closed(id, actions: &actions)
                #expect(pool.openFailed(id, actions: &actions) == nil)
            }
            #expect(pool.claimant(of: id) == nil && actions.isEmpty)
        }

        private mutating func submit() {
            let name = Self.names[random.below(keyCount)]
            let key = pool.index(of: PoolHarness.key(name))
            keys[name] = key
            for (name, key) in keys where pool.key(key) == nil {
                // The pool has forgotten the key and what it knew.
                keys[name] = nil
                expected[name] = nil
                waits[name] = nil
                isMultiplexed.remove(name)
                forgottenKeys += 1
            }
            let keysInUse = waiting.values.map(\.key) + connections.values.map(\.key) + closing.values
            mostKeysInUse = max(mostKeysInUse, Set(keysInUse).count)
            #expect(pool.keyCount <= max(limits.keptKeys, 2 * mostKeysInUse) + 1)
            var submission = ConnectionPool.Submission(
                exchange: nextExchange, key: key, priority: random.below(5))
            nextExchange += 1
            submission.needsFresh = random.below(6) == 0
            submission.mayShare = random.below(4) > 0
            submission.waitsForShared = random.below(2) == 0
            waits[name] = submission.waitsForShared
            waiting[submission.exchange] = Exchange(
                key: name, isFresh: submission.needsFresh, isExclusive: !submission.mayShare)
            #expect(pool.submit(submission, actions: &actions) == true)
        }

        private mutating func open() {
            guard let id = any(where: \.isConnecting), let key = connections[id]?.key else { return }
            let capacity = random.below(2) == 0 ? 1 : 1 + random.below(4)
            connections[id]?.isConnecting = false
            connections[id]?.capacity = capacity
            expected[key] = capacity
            if capacity > 1 { isMultiplexed.insert(key) } else { isMultiplexed.remove(key) }
            opening = id
            pool.opened(id, capacity: capacity, now: now, actions: &actions)
        }

        mutating func finish(isReusable: Bool) {
            guard let id = any(where: { !$0.isConnecting && !$0.inFlight.isEmpty }) else { return }
            connections[id]?.inFlight.removeFirst()
            connections[id]?.isReserved = false
            if !isReusable { connections[id]?.isDraining = true }
            pool.finished(on: id, isReusable: isReusable, now: now, actions: &actions)
        }

        /// Opens and finishes until no exchange is left.
        mutating func complete() throws {
            for _ in 0..<100_000 where !waiting.isEmpty || connections.values.contains(where: { !$0.isUnused }) {
                _ = try confirmCloses()
                if random.below(2) == 0 { open() } else { finish(isReusable: true) }
                try perform()
            }
            #expect(waiting.isEmpty && !connections.values.contains { !$0.isUnused })
        }
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func everyOrderOfOperationsKeepsTheRules(seed: UInt64) throws {
        var model = Model(seed: seed)
        for _ in 0..<1_000 {
            try model.step()
            try model.perform()
            model.check()
        }
        try model.complete()
        while !model.closing.isEmpty { _ = try model.confirmCloses() }
        model.check()
        model.pool.closeAll(actions: &model.actions)
        try model.perform()
        #expect(model.connections.isEmpty)
        while !model.closing.isEmpty { _ = try model.confirmCloses() }
        #expect(model.pool.connectionCount == 0 && model.pool.closingCount == 0)
        if model.limits.keptKeys == 1, model.limits.connections < 3 { #expect(model.forgottenKeys > 0) }
    }
}
