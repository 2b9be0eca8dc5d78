import CacheTestSupport
import Foundation
import Tern
import TernCache
import TernTesting
import Testing

@testable import TernHTTPCache

/// Caches stand for the processes that share a second level.
@Suite("HTTP cache: second level", .timeLimit(.minutes(1)))
struct SecondLevelTests {
    /// Runs a test with a server, and a cache with a second level.
    private func withFleet(
        _ store: TestStore, _ kind: StoreKind = .memory, session: (inout Session.Configuration) -> Void = { _ in },
        handler: @escaping LoopbackServer.Handler, test: (CachedServer) async throws -> Void
    ) async throws {
        try await withCache(
            kind, cache: { $0.secondLevel = Self.level(store) }, session: session, handler: handler, test: test)
    }

    private static func level(_ store: TestStore) -> SecondLevelCache {
        var level = SecondLevelCache(store)
        // No test depends on the speed of the machine.
        level.timeLimit = .seconds(50)
        level.waitLimit = .seconds(50)
        return level
    }

    /// Returns a client with a cache of its own, like that of another process.
    private func other(
        _ cached: CachedServer, _ store: TestStore, _ change: (inout Session.Configuration) -> Void = { _ in }
    ) -> (client: Client, cache: HTTPCache) {
        var configuration = HTTPCache.Configuration()
        configuration.now = { cached.clock.now }
        configuration.secondLevel = Self.level(store)
        let cache = HTTPCache.memory(configuration)
        return (Client(baseURL: cached.server.url, session: Session(configuration: .cached(cache, change))), cache)
    }

    private let fresh = [("Cache-Control", "max-age=60")]

    /// Expects a text as the response.
    private func expect(
        _ client: Client, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let response = try await client.fetch("a")
        #expect(response.text == text, sourceLocation: sourceLocation)
    }

    @Test(arguments: StoreKind.allCases)
    func aResponseOfOneCacheAnswersAnother(kind: StoreKind) async throws {
        let store = TestStore()
        try await withFleet(store, kind, handler: numbered(fresh)) { cached in
            #expect(try await cached.get().text == "1")
            await cached.cache.flush()
            #expect(store.values.count == 1 && store.reservations.isEmpty)
            cached.clock.advance(10)
            store.setAge(.seconds(10))
            let other = other(cached, store)
            let found = try await other.client.fetch("a")
            #expect(found.text == "1" && found.cacheTrace?.source == .stored)
            #expect(found.headers["Age"] == "10")
            // The level before it has the response now.
            store.setFault(.error)
            #expect(try await other.client.fetch("a").text == "1")
            #expect(cached.requestCount == 1)
        }
    }

    @Test func aLargeBodyOnTheDiskIsShared() async throws {
        let store = TestStore()
        let body = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try await withFleet(
            store, .disk,
            handler: { exchange in
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], body: body)
            },
            test: { cached in
                var received = Data()
                for try await chunk in cached.client.session.stream(try cached.client.request(.get, "a")).chunks {
                    received += chunk
                }
                #expect(received == body)
                await cached.cache.flush()
                let found = try await other(cached, store).client.fetch("a")
                #expect(found.value == body)
                #expect(cached.requestCount == 1)
            })
    }

    @Test func cachesThatMissAResponseAtOnceFetchItOnce() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(fresh)) { cached in
            let clients = [cached.client] + (0..<3).map { _ in other(cached, store).client }
            try await withThrowingTaskGroup(of: String.self) { group in
                for client in clients { group.addTask { try await client.fetch("a").text } }
                for try await text in group { #expect(text == "1") }
            }
            #expect(cached.requestCount == 1)
        }
    }

    @Test func aResponseThatIsNotStoredEndsItsReservation() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered([("Cache-Control", "no-store")])) { cached in
            try await expect(cached.client, "1")
            await cached.cache.flush()
            #expect(store.reserveCount == 1 && store.reservations.isEmpty && store.values.isEmpty)
        }
    }

    @Test func responsesToSecretsStayInTheirProcess() async throws {
        let store = TestStore()
        try await withFleet(
            store, session: { $0.cookies = .none }, handler: numbered(fresh),
            test: { cached in
                for headers: Headers in [
                    ["Authorization": "Bearer a"], ["Cookie": "user=ada"], ["X-API-Key": "a"], ["X-Session-Token": "a"],
                ] {
                    _ = try await cached.get("a", headers: headers)
                    await cached.cache.flush()
                    #expect(store.values.isEmpty && store.reserveCount == 0, "\(headers)")
                }
                // They are not answered from there either, because the response can differ.
                _ = try await other(cached, store).client.fetch("b")
                let count = cached.requestCount
                _ = try await cached.get("b", headers: ["Authorization": "Bearer a"])
                #expect(cached.requestCount == count + 1)
            })
    }

    @Test(arguments: [
        [("Cache-Control", "max-age=60"), ("Set-Cookie", "user=ada")],
        [("Cache-Control", "max-age=60, private")],
        [("Cache-Control", "max-age=60"), ("X-Auth-Token", "a")],
        [("Cache-Control", "max-age=60"), ("No-Vary-Search", "params")],
        [("Cache-Control", "max-age=60"), ("Cache-Groups", "\"a\"")],
    ])
    func responsesOfOneUserStayInTheirProcess(headers: [(String, String)]) async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(headers)) { cached in
            _ = try await cached.get()
            await cached.cache.flush()
            #expect(store.values.isEmpty && store.reservations.isEmpty)
        }
    }

    @Test func responsesOfAPartitionOfOneProcessStayThere() async throws {
        let store = TestStore()
        try await withFleet(
            store, session: { $0.policy = StoringPolicy { _ in } }, handler: numbered(fresh),
            test: { cached in
                _ = try await cached.get()
                await cached.cache.flush()
                #expect(store.values.isEmpty && store.reserveCount == 0)
            })
    }

    @Test func partitionsAreKeptApartAndCleared() async throws {
        let store = TestStore()
        try await withFleet(
            store, session: { $0.partition = "ada" }, handler: numbered([("Cache-Control", "max-age=60, private")]),
            test: { cached in
                #expect(try await cached.get().text == "1")
                await cached.cache.flush()
                let bob = other(cached, store) { $0.partition = "bob" }
                #expect(try await bob.client.fetch("a").text == "2")
                await bob.cache.flush()
                let ada = other(cached, store) { $0.partition = "ada" }
                #expect(try await ada.client.fetch("a").text == "1")
                try await ada.cache.clear(partition: "ada")
                #expect(store.values.count == 1)
                try await expect(other(cached, store) { $0.partition = "ada" }.client, "3")
                try await expect(other(cached, store) { $0.partition = "bob" }.client, "2")
                try await bob.cache.clear(bob.client.session)
                try await expect(other(cached, store) { $0.partition = "bob" }.client, "4")
                // A logout is told that responses may be left.
                store.setFault(.error)
                await #expect(throws: HTTPCache.Failure.self) { try await ada.cache.clear(partition: "ada") }
                await #expect(throws: HTTPCache.Failure.self) { try await ada.cache.removeAll() }
            })
    }

    @Test func anUnsafeRequestInvalidatesTheSharedResponse() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(fresh)) { cached in
            #expect(try await cached.get().text == "1")
            await cached.cache.flush()
            let other = other(cached, store)
            _ = try await other.client.session.response(for: try other.client.request(.post, "a"))
            #expect(store.values.isEmpty)
            #expect(try await other.client.fetch("a").text == "3")
            await other.cache.flush()
            try await other.cache.remove(cached.server.url("/a").absoluteString, of: other.client.session)
            #expect(store.values.isEmpty)
        }
    }

    @Test func aDamagedResponseIsAMiss() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(fresh)) { cached in
            _ = try await cached.get()
            await cached.cache.flush()
            let (key, value) = try #require(store.values.first)
            let shared = try #require(SharedValue(value, for: key))
            let record = try #require(CacheRecord(shared.value))
            let foreign = record.items.map { item in
                CacheRecord.Item(
                    entry: item.entry.changing { $0.key = $0.key.with(partition: "x", trust: "") }, body: item.body)
            }
            let secret = record.items.map { item in
                CacheRecord.Item(entry: item.entry.changing { $0.credentials = "x" }, body: item.body)
            }
            let injected = record.items.map { item in
                CacheRecord.Item(entry: item.entry.changing { $0.headers["ETag"] = "\"a\"\r\nb: c" }, body: item.body)
            }
            let records = [foreign, secret, injected, record.items + record.items, []].map { CacheRecord($0).encoded() }
            var attempts = (records + [Data(), Data("TernHTTP".utf8)]).map { bytes in
                SharedValue(received: shared.received, value: bytes).encoded(for: key)
            }
            attempts += [value.dropLast(), Data(value.reversed()), Data(count: 40)]
            for (index, attempt) in attempts.enumerated() {
                store.values = [key: attempt]
                let count = cached.requestCount
                let other = other(cached, store)
                _ = try await other.client.fetch("a")
                #expect(cached.requestCount == count + 1, "attempt \(index)")
                // Its own response replaces the damaged one, before the next attempt.
                await other.cache.flush()
            }
            // The check itself finds the undamaged one.
            store.values = [key: value]
            try await expect(other(cached, store).client, "1")
        }
    }

    @Test func theAgeInTheStoreCounts() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(fresh)) { cached in
            #expect(try await cached.get().text == "1")
            await cached.cache.flush()
            store.setAge(.seconds(61))
            try await expect(other(cached, store).client, "2")
        }
    }

    @Test func aClockThatIsAheadMakesNothingFresher() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(fresh)) { cached in
            cached.clock.advance(86_400)
            #expect(try await cached.get().text == "1")
            await cached.cache.flush()
            cached.clock.advance(-86_400)
            store.setAge(.seconds(59))
            let young = try await other(cached, store).client.fetch("a")
            #expect(young.text == "1" && young.headers["Age"] == "59")
            store.setAge(.seconds(61))
            try await expect(other(cached, store).client, "2")
        }
    }

    @Test func aStaleSharedResponseIsValidated() async throws {
        let store = TestStore()
        try await withFleet(
            store,
            handler: { exchange in
                if exchange.request["If-None-Match"] == "\"v\"" {
                    let headers = [("ETag", "\"v\""), ("Cache-Control", "max-age=9")]
                    return try exchange.respond(status: 304, headers: headers)
                }
                try exchange.respond(headers: [("ETag", "\"v\""), ("Cache-Control", "max-age=5")], text: "body")
            },
            test: { cached in
                _ = try await cached.get()
                await cached.cache.flush()
                store.setAge(.seconds(6))
                let confirmed = try await other(cached, store).client.fetch("a")
                #expect(confirmed.text == "body" && confirmed.cacheTrace?.source == .validated)
            })
    }

    @Test func anotherVariantIsFetched() async throws {
        let store = TestStore()
        let handler: LoopbackServer.Handler = { exchange in
            let language = exchange.request["Accept-Language"] ?? ""
            let headers = [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")]
            try exchange.respond(headers: headers, text: language)
        }
        try await withFleet(store, handler: handler) { cached in
            #expect(try await cached.get("a", headers: ["Accept-Language": "de"]).text == "de")
            await cached.cache.flush()
            let other = other(cached, store)
            let english = try other.client.request(.get, "a", headers: ["Accept-Language": "en"])
            let response: Response<Data> = try await other.client.session.response(for: english)
            #expect(response.text == "en")
            #expect(cached.requestCount == 2)
        }
    }

    @Test func aFailingStoreFailsNoRequest() async throws {
        let store = TestStore(.error)
        try await withFleet(store, handler: numbered(fresh)) { cached in
            #expect(try await cached.get().text == "1")
            #expect(try await cached.get().cacheTrace?.source == .stored)
            _ = try await cached.client.session.response(for: try cached.client.request(.post, "a"))
            #expect(try await cached.get().text == "3")
            await cached.cache.flush()
        }
    }

    @Test func aSilentStoreCostsItsTimeLimit() async throws {
        let (store, clock) = (TestStore(.silence), ManualClock())
        try await withCache(
            cache: {
                $0.secondLevel = SecondLevelCache(store)
                $0.secondLevel?.clock = clock
            }, handler: numbered(fresh),
            test: { cached in
                let request = Task { try await cached.get().text }
                try await clock.waitForSleepers(1)
                clock.advance(by: .milliseconds(250))
                #expect(try await request.value == "1")
                store.answer()
            })
    }

    @Test func onlyStoredLooksIntoThisProcess() async throws {
        let store = TestStore()
        try await withFleet(store, handler: numbered(fresh)) { cached in
            _ = try await cached.get()
            await cached.cache.flush()
            let other = other(cached, store)
            var request = try other.client.request(.get, "a")
            request.cache = .onlyStored
            await #expect(throws: NetworkError.self) { _ = try await other.client.session.response(for: request) }
        }
    }
}
