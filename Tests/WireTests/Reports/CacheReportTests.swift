#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernHTTPCache
import TernTesting
import Testing

/// Public bug reports of other clients' caches, tried on Tern. Each test names its report.
@Suite("Public reports: HTTP cache", .timeLimit(.minutes(1)))
struct CacheReportTests {
    /// Runs a test with a cached client of a server.
    private func withCache(
        _ handler: @escaping LoopbackServer.Handler, test: (LoopbackServer, CachedClient) async throws -> Void
    ) async throws {
        let server = try LoopbackServer(handler: handler)
        defer { server.stop() }
        let client = try CachedClient { change in
            Client(baseURL: server.url, session: Session(configuration: .test(change)))
        }
        try await test(server, client)
    }

    /// ktorio/ktor #2111 (KTOR-1103) and #4673 (KTOR-7104): the 304 has no `Vary`, or another one.
    @Test(arguments: [nil, "accept", "Accept, X-Other"]) func a304MayHaveAnotherVary(vary: String?) async throws {
        try await withCache { exchange in
            if exchange.request["If-None-Match"] != nil {
                let fields = vary.map { [("Vary", $0)] } ?? []
                return try exchange.respond(
                    status: 304, headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=60")] + fields)
            }
            try exchange.respond(
                headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=60"), ("Vary", "Accept")], text: "one")
        } test: { server, client in
            let headers: Headers = ["Accept": "text/plain"]
            #expect(try await client.get("x", headers).text == "one")
            client.clock.advance(61)
            let again = try await client.get("x", headers)
            #expect(again.status == 200 && again.text == "one" && again.cacheTrace?.source == .validated)
            #expect(server.requests.count == 2)
        }
    }

    /// darkweak/souin #794: the 304 to the cache's own condition reached a request without one.
    @Test func a304ToTheCacheReachesNobody() async throws {
        try await withCache { exchange in
            let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=1, must-revalidate")]
            if exchange.request["If-None-Match"] != nil { return try exchange.respond(status: 304, headers: fields) }
            try exchange.respond(headers: fields, text: "one")
        } test: { _, client in
            _ = try await client.get("x")
            client.clock.advance(2)
            let again = try await client.get("x", ["Cache-Control": "max-stale=6"])
            #expect(again.status == 200 && again.text == "one")
        }
    }

    /// vert-x3/vertx-web #2267: the refresh in the background did not replace the stale response.
    @Test func aRefreshInTheBackgroundReplacesTheResponse() async throws {
        try await withCache { exchange in
            try exchange.respond(
                headers: [("Cache-Control", "max-age=10, stale-while-revalidate=100")], text: "\(exchange.number)")
        } test: { server, client in
            #expect(try await client.get("x").text == "1")
            client.clock.advance(11)
            let stale = try await client.get("x")
            #expect(stale.text == "1" && stale.cacheTrace?.source == .stale)
            try await server.wait { $0.requestsReceived == 2 }
            // The stored response is stale until the refresh has replaced it.
            while try await client.get("x").text == "1" { await Task.yield() }
            #expect(try await client.get("x").isStored("2"))
            #expect(server.requests.count == 2)
        }
    }
}
#endif
