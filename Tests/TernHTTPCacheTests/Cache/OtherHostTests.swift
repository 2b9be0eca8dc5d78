import CacheTestSupport
import Foundation
import Tern
import TernCache
import TernTesting
import Testing

@testable import TernHTTPCache

/// A `Host` of the caller's names another virtual host of the server. Its responses answer no other host.
@Suite("HTTP cache: other hosts", .timeLimit(.minutes(1)))
struct OtherHostTests {
    private static let handler: LoopbackServer.Handler = { exchange in
        try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: exchange.request["Host"] ?? "none")
    }

    @Test(arguments: StoreKind.allCases)
    func responsesOfVirtualHostsAreKeptApart(kind: StoreKind) async throws {
        try await withCache(kind, handler: Self.handler) { cached in
            for _ in 0..<2 {
                for host in ["one.test", "two.test", "one.test:81"] {
                    #expect(try await cached.get(headers: ["Host": host]).text == host)
                    #expect(try await cached.get(headers: ["Host": host.uppercased()]).text == host)
                }
                #expect(try await cached.get().text.hasPrefix("127.0.0.1"))
            }
            #expect(cached.requestCount == 4)
            // The host of the URL is no other one.
            let own = "127.0.0.1:\(try #require(cached.server.url.port))"
            #expect(try await cached.get(headers: ["Host": own]).cacheTrace?.source == .stored)
            #expect(cached.requestCount == 4)
            // A change of the path concerns each host.
            try await cached.client.post("a")
            #expect(try await cached.get(headers: ["Host": "one.test"]).cacheTrace?.source != .stored)
        }
    }

    @Test func aResponseOfAnotherHostStaysInItsProcess() async throws {
        let store = TestStore()
        try await withCache(
            cache: { $0.secondLevel = SecondLevelCache(store) }, handler: Self.handler,
            test: { (cached) async throws in
                #expect(try await cached.get(headers: ["Host": "evil.test"]).text == "evil.test")
                await cached.cache.flush()
                #expect(store.values.isEmpty)
            })
    }

    @Test func theHostOfTheURLIsRecognized() throws {
        for (url, host, isOther) in [
            ("http://example.com/", "example.com", false), ("http://example.com/", "Example.COM:80", false),
            ("http://example.com/", "example.com:8080", true), ("https://example.com/", "example.com:443", false),
            ("https://example.com/", "example.com:80", true), ("http://example.com:8080/", "example.com", true),
            ("http://example.com:8080/", "example.com:8080", false), ("http://[::1]/", "[::1]", false),
            ("http://[::1]:81/", "[::1]:81", false), ("http://[::1]/", "::1", true),
            ("http://example.com/", "example.org", true),
        ] {
            let request = try Self.request(url, host: host)
            #expect(request.key.trust.isEmpty == !isOther, "\(url) \(host)")
        }
    }

    /// Returns a GET request with a `Host` field, as a cache sees it.
    private static func request(_ url: String, host: String) throws -> CacheRequest {
        let session = Session(configuration: .cached(.memory()))
        var request = try Tern.Request(.get, url)
        request.headers["Host"] = host
        return CacheRequest(try NetworkExchange(explaining: request, of: session))
    }
}
