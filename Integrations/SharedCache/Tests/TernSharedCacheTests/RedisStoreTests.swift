import Foundation
import TernCache
import Testing

@testable import TernSharedCache

@Suite("Redis store", .timeLimit(.minutes(2))) struct RedisStoreTests {
    private let key = CacheStoreKey(group: "http ada", name: "abc")
    private let other = CacheStoreKey(group: "http bob", name: "abc")

    private static func noise(_ count: Int) -> Data { Data((0..<count).map { _ in UInt8.random(in: 0 ... .max) }) }

    /// Returns the configuration of a server, with time enough for a busy machine.
    private func configuration(_ server: RedisServer) -> RedisStore.Configuration {
        var configuration = RedisStore.Configuration(.unixSocket(server.socket))
        configuration.password = RedisServer.password
        configuration.connectTimeout = .seconds(10)
        configuration.operationTimeout = .seconds(10)
        configuration.pause = .milliseconds(20)
        return configuration
    }

    /// Runs a test with a server, once it answers.
    private func withServer(_ test: (RedisServer, RedisStore) async throws -> Void) async throws {
        guard let server = try await RedisServer.start() else { return }
        let store = RedisStore(configuration(server))
        try await answers(store)
        try await test(server, store)
    }

    /// Returns once a server answers.
    private func answers(_ store: RedisStore) async throws {
        while true {
            do {
                try await store.release(key)
                return
            } catch let error as RedisStoreError where [.unreachable, .paused, .refused].contains(error.kind) {
                // Another attempt follows; the time limit of the suite ends this.
                await Task.yield()
            }
        }
    }

    private func kind(_ operation: () async throws -> Void) async -> RedisStoreError.Kind? {
        do {
            try await operation()
            return nil
        } catch { return (error as? RedisStoreError)?.kind }
    }

    @Test func aValueIsReadAsItWasStored() async throws {
        try await withServer { server, store in
            #expect(try await store.entry(for: key) == nil)
            let values = [Data(), Data("\r\n$-1\r\n\0".utf8), Data(count: 100_000), Self.noise(70_000)]
            var tcp = configuration(server)
            tcp.place = .host("127.0.0.1", port: server.port)
            let second = RedisStore(tcp)
            for value in values {
                try await store.insert(value, for: key, lifetime: .seconds(60))
                let entry = try #require(try await second.entry(for: key))
                #expect(entry.value == value)
                #expect(entry.age >= .zero && entry.age < .seconds(60))
            }
            try await second.remove(key)
            #expect(try await store.entry(for: key) == nil)
        }
    }

    @Test func aTunnelCarriesValuesOverTLS() async throws {
        guard let tunnel = try await RedisTunnel.start(knowsAuthority: true) else { return }
        var configuration = RedisStore.Configuration(.unixSocket(tunnel.socket))
        configuration.password = RedisServer.password
        (configuration.connectTimeout, configuration.operationTimeout) = (.seconds(10), .seconds(10))
        configuration.pause = .milliseconds(20)
        let store = RedisStore(configuration)
        try await answers(store)
        for value in [Data("a".utf8), Self.noise(300_000)] {
            try await store.insert(value, for: key, lifetime: .seconds(60))
            #expect(try await store.entry(for: key)?.value == value)
        }
        withExtendedLifetime(tunnel) {}
    }

    @Test func aTunnelRefusesAServerThatItDoesNotTrust() async throws {
        guard let tunnel = try await RedisTunnel.start(knowsAuthority: false) else { return }
        var configuration = RedisStore.Configuration(.unixSocket(tunnel.socket))
        configuration.password = RedisServer.password
        (configuration.connectTimeout, configuration.operationTimeout) = (.seconds(10), .seconds(10))
        configuration.failureLimit = .max
        let store = RedisStore(configuration)
        // The server answers, and the tunnel takes connections before it has one to the server.
        try await answers(RedisStore(self.configuration(tunnel.server)))
        while !FileManager.default.fileExists(atPath: tunnel.socket) {
            try #require(tunnel.isRunning)
            await Task.yield()
        }
        for _ in 0..<3 {
            let kind = await kind { try await store.insert(Data("a".utf8), for: key, lifetime: .seconds(60)) }
            #expect(kind == .unreachable)
        }
        // A tunnel that has ended cannot be reached either.
        withExtendedLifetime(tunnel) { #expect(tunnel.isRunning) }
    }

    @Test func theServerEndsALifetime() async throws {
        try await withServer { _, store in
            try await store.insert(Data("a".utf8), for: key, lifetime: .milliseconds(1))
            while try await store.entry(for: key) != nil { await Task.yield() }
            try await store.insert(Data("a".utf8), for: key, lifetime: .seconds(30))
            while try #require(try await store.entry(for: key)).age == .zero { await Task.yield() }
        }
    }

    @Test func groupsAreRemovedAsAWhole() async throws {
        try await withServer { server, store in
            let keys = (0..<20).map { CacheStoreKey(group: key.group, name: "\($0)") } + [other]
            for key in keys { try await store.insert(Data("a".utf8), for: key, lifetime: .seconds(60)) }
            // As another process does.
            try await RedisStore(configuration(server)).removeAll(inGroup: key.group)
            for key in keys.dropLast() { #expect(try await store.entry(for: key) == nil) }
            #expect(try await store.entry(for: other) != nil)
            try await store.insert(Data("b".utf8), for: key, lifetime: .seconds(60))
            #expect(try await store.entry(for: key)?.value == Data("b".utf8))
            try await store.removeAll()
            #expect(try await store.entry(for: key) == nil)
            #expect(try await store.entry(for: other) == nil)
        }
    }

    @Test func prefixesAndKeysAreKeptApart() async throws {
        try await withServer { server, store in
            let joined = CacheStoreKey(group: "http ada:abc", name: "")
            try await store.insert(Data("a".utf8), for: key, lifetime: .seconds(60))
            #expect(try await store.entry(for: joined) == nil)
            #expect(try await store.entry(for: other) == nil)
            var prefixed = configuration(server)
            prefixed.prefix = "other"
            #expect(try await RedisStore(prefixed).entry(for: key) == nil)
            prefixed.prefix = "tern"
            prefixed.database = 3
            #expect(try await RedisStore(prefixed).entry(for: key) == nil)
        }
    }

    @Test func aFetchIsReservedOnce() async throws {
        try await withServer { server, store in
            let second = RedisStore(configuration(server))
            #expect(try await store.reserve(key, for: .seconds(60)) == .granted)
            #expect(try await second.reserve(key, for: .seconds(60)) == .taken)
            #expect(try await second.reserve(other, for: .seconds(60)) == .granted)
            try await store.release(key)
            #expect(try await second.reserve(key, for: .seconds(60)) == .granted)
            try await second.insert(Data("a".utf8), for: key, lifetime: .seconds(60))
            guard case .value(let entry) = try await store.reserve(key, for: .seconds(60)) else {
                Issue.record("the value is not found")
                return
            }
            #expect(entry.value == Data("a".utf8))
            // It has left no reservation.
            try await store.remove(key)
            #expect(try await second.reserve(key, for: .milliseconds(1)) == .granted)
            // This one ends by itself.
            while try await store.reserve(key, for: .seconds(60)) != .granted { await Task.yield() }
        }
    }

    @Test func limitsHold() async throws {
        try await withServer { server, _ in
            var limited = configuration(server)
            limited.valueByteLimit = 10_000
            let store = RedisStore(limited)
            let insert = await kind { try await store.insert(Data(count: 10_001), for: key, lifetime: .seconds(60)) }
            #expect(insert == .tooLarge)
            let long = CacheStoreKey(group: String(repeating: "a", count: 257), name: "")
            #expect(await kind { _ = try await store.entry(for: long) } == .tooLarge)
            // A store with a higher limit put a longer value there, compressed or not.
            let large = RedisStore(configuration(server))
            try await large.insert(Data(count: 10_001), for: key, lifetime: .seconds(60))
            #expect(try await store.entry(for: key) == nil)
            try await large.insert(Self.noise(200_000), for: key, lifetime: .seconds(60))
            #expect(await kind { _ = try await store.entry(for: key) } == .malformedReply)
            // The connection was replaced.
            #expect(try await store.entry(for: other) == nil)
        }
    }

    @Test func noTextHasThePassword() async throws {
        try await withServer { server, _ in
            var wrong = configuration(server)
            wrong.password = "not the secret"
            let store = RedisStore(wrong)
            do {
                _ = try await store.entry(for: key)
                Issue.record("the password is not checked")
            } catch let error as RedisStoreError {
                #expect(error.kind == .notPermitted)
                #expect(!"\(error)".contains("secret"))
            }
            var texts = ["\(wrong)", "\(store)", "\(wrong.customMirror.children.map { "\($0.value)" })"]
            var dumped = ""
            dump(store, to: &dumped)
            dump(wrong, to: &dumped)
            texts.append(dumped)
            for text in texts { #expect(!text.contains("secret")) }
            wrong.password = nil
            #expect(await kind { _ = try await RedisStore(wrong).entry(for: key) } == .notPermitted)
        }
    }

    @Test func aServerThatIsOffCostsNothingAfterSomeFailures() async throws {
        var configuration = RedisStore.Configuration(.unixSocket("/tmp/tern-no-such-socket"))
        configuration.connectTimeout = .seconds(10)
        configuration.connectionLimit = 1
        configuration.pause = .seconds(3_600)
        let store = RedisStore(configuration)
        for _ in 0..<3 { #expect(await kind { _ = try await store.entry(for: key) } == .unreachable) }
        #expect(store.isPaused)
        #expect(await kind { _ = try await store.entry(for: key) } == .paused)
    }

    @Test func aServerThatDoesNotAnswerCostsTheLimit() async throws {
        try await withServer { server, _ in
            var limited = configuration(server)
            limited.operationTimeout = .milliseconds(20)
            limited.connectionLimit = 1
            limited.pause = .seconds(3_600)
            let store = RedisStore(limited)
            server.setStopped(true)
            for _ in 0..<3 { #expect(await kind { _ = try await store.entry(for: key) } == .timedOut) }
            #expect(await kind { _ = try await store.entry(for: key) } == .paused)
            server.setStopped(false)
        }
    }

    @Test func aStoreIsUsedAgainAfterTheServerRestarts() async throws {
        try await withServer { server, store in
            try await withThrowingTaskGroup(of: Void.self) { group in
                // All of its connections are open.
                for _ in 0..<16 { group.addTask { try await store.release(key) } }
                try await group.waitForAll()
            }
            try await store.insert(Data("a".utf8), for: key, lifetime: .seconds(60))
            server.kill()
            #expect(await kind { _ = try await store.entry(for: key) } != nil)
            try server.restart()
            try await answers(store)
            #expect(try await store.entry(for: key) == nil)
            try await store.insert(Data("b".utf8), for: key, lifetime: .seconds(60))
            #expect(try await store.entry(for: key)?.value == Data("b".utf8))
        }
    }
}
