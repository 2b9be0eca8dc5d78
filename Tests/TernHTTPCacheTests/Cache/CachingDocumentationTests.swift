import CacheTestSupport
import Foundation
import Tern
import TernCache
import TernHTTPCache
import TernTesting
import Testing

/// The examples of Documentation/Caching.md.
@Suite("HTTP cache: documentation", .timeLimit(.minutes(1)))
struct CachingDocumentationTests {
    private func show(_ data: Data) { #expect(!data.isEmpty) }

    @Test func theExamplesOfTheArticleRun() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: exchange.request.path)
        }
        defer { server.stop() }

        var configuration = Session.Configuration()
        configuration.cache = .memory()
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))

        var request = try client.request(.get, "articles/7")
        request.cache = .revalidate
        let response = try await client.session.response(for: request)
        #expect(response.cacheTrace?.description == "network: nothing is stored for the URL; stored")
        #expect(response.cacheTrace?.cacheStatus == "Tern; fwd=uri-miss; fwd-status=200; stored")

        var offline = try client.request(.get, "articles")
        offline.cache = .onlyStored
        if let stored = try? await client.session.response(for: offline) { show(stored.value) }
        offline.cache = .revalidate
        show(try await client.session.response(for: offline).value)
        offline.cache = .onlyStored
        #expect(try await client.session.response(for: offline).cacheTrace?.isHit == true)

        let cache = try #require(configuration.cache)
        #expect(cache.statistics.hits == 1)
        #expect(cache.statistics.misses == 2)
        try await cache.clear(partition: "ada@example.com")
        #expect(await cache.entries(matching: server.url("/articles").absoluteString).count == 2)
        try await cache.clear(client.session)
        #expect(await cache.entries().isEmpty)
    }

    @Test func aFleetSharesResponses() async throws {
        let store = TestStore()
        let server = try LoopbackServer { exchange in
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(exchange.number)")
        }
        defer { server.stop() }
        for _ in 0..<2 {
            var configuration = Session.Configuration()
            var settings = HTTPCache.Configuration()
            settings.secondLevel = SecondLevelCache(store)
            configuration.cache = .memory(settings)
            let client = Client(baseURL: server.url, session: Session(configuration: configuration))
            #expect(try await client.get("a", as: String.self) == "1")
            await configuration.cache?.flush()
        }
    }

    @Test func staleResponsesAnswerWhileTheServerIsAway() async throws {
        var settings = HTTPCache.Configuration()
        settings.staleWhenDisconnected = .seconds(86_400)
        let clock = SetClock()
        settings.now = { clock.now }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        configuration.cache = .memory(settings)
        let server = try LoopbackServer { exchange in
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "stored")
        }
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        #expect(try await client.get("a", as: String.self) == "stored")
        server.stop()
        clock.advance(3_600)
        let response = try await client.session.response(for: try client.request(.get, "a"))
        #expect(response.value == Data("stored".utf8))
        #expect(response.cacheTrace?.source == .stale)
        clock.advance(86_400)
        let later = try client.request(.get, "a")
        await #expect(throws: NetworkError.self) { try await client.session.response(for: later) }
    }

    @Test func aTestRequiresAStoredResponse() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            let first = try await cached.get()
            try first.head.requireCached([.network])
            let error = #expect(throws: CacheExpectationFailure.self) { try first.head.requireCached() }
            #expect(error?.description.contains("nothing is stored for the URL") == true)
            try await cached.get().head.requireCached()
        }
    }

    struct ShortLived: SessionPolicy {
        func storing(of response: ResponseHead, for task: AnySessionTask) async throws -> ResponseStoring? {
            ResponseStoring(maximumLifetime: .seconds(60), userInfo: ["source": "feed"])
        }
    }

    struct Forbidding: SessionPolicy {
        func storing(of response: ResponseHead, for task: AnySessionTask) async throws -> ResponseStoring? { .forbid }
    }

    @Test(arguments: StoreKind.allCases)
    func aPolicyShortensTheLifeOfAResponse(kind: StoreKind) async throws {
        let session: (inout Session.Configuration) -> Void = { $0.policy = ShortLived() }
        try await withCache(kind, session: session, handler: numbered([("Cache-Control", "max-age=600")])) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            let hit = try await cached.get()
            // The time of the exchange counts as age.
            let timeToLive = try #require(hit.cacheTrace?.timeToLive)
            #expect(timeToLive > .zero && timeToLive <= .seconds(60))
            let url = cached.server.url("/a").absoluteString
            let entries = await cached.cache.entries(matching: url)
            #expect(entries.map(\.userInfo) == [["source": "feed"]])
            cached.clock.advance(61)
            #expect(try await cached.get().text == "2")
        }
    }

    @Test func aPolicyKeepsAResponseOutOfTheStore() async throws {
        let session: (inout Session.Configuration) -> Void = { $0.policy = Forbidding() }
        try await withCache(session: session, handler: numbered([("Cache-Control", "max-age=600")])) { cached in
            let first = try await cached.get()
            #expect(first.cacheTrace?.storing == "policy")
            #expect(try await cached.get().text == "2")
        }
    }
}
