import Foundation
import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

/// Redirects from the store, and to stored responses.
@Suite("HTTP cache: redirects", .timeLimit(.minutes(1)))
struct CachedRedirectTests {
    @Test(arguments: [301, 308])
    func aStoredRedirectIsFollowedWithoutTheServer(status: Int) async throws {
        try await withCache(
            handler: { exchange in
                switch exchange.request.path {
                case "/old":
                    try exchange.respond(
                        status: status,
                        headers: [
                            ("Location", "/new"), ("Cache-Control", "max-age=60"),
                        ], text: "moved")
                default: try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "new")
                }
            },
            test: { cached in
                for number in 0..<3 {
                    let response = try await cached.get("old")
                    #expect(response.text == "new")
                    #expect(response.head.redirects.count == 1)
                    #expect(response.head.url?.path() == "/new")
                    #expect(response.cacheTrace?.source == (number == 0 ? .network : .stored))
                }
                var streamed = Data()
                for try await chunk in cached.client.stream("old").chunks { streamed += chunk }
                #expect(streamed == Data("new".utf8))
                #expect(cached.requestCount == 2)
                // Only the target is stale now, or neither is stored.
                #expect(try await cached.get("new").cacheTrace?.source == .stored)
                await cached.finish()
            })
    }

    @Test func aTemporaryRedirectIsAskedForAndItsTargetIsStored() async throws {
        try await withCache(
            handler: { exchange in
                switch exchange.request.path {
                case "/old": try exchange.respond(status: 302, headers: [("Location", "/new")])
                default: try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "new")
                }
            },
            test: { (cached) async throws in
                for _ in 0..<3 { #expect(try await cached.get("old").text == "new") }
                #expect(cached.server.requests.map(\.target) == ["/old", "/new", "/old", "/old"])
                await cached.finish()
            })
    }

    @Test func theFieldsOfAConditionDoNotReachTheTargetOfARedirect() async throws {
        let (count, fields) = (Counter(), Locked<[String]>([]))
        try await withCache(
            handler: { exchange in
                let condition = ["If-None-Match", "If-Modified-Since", "If-Range", "Range"].filter {
                    exchange.request[$0] != nil
                }
                fields.change { $0.append("\(exchange.request.path) \(condition.joined(separator: " "))") }
                if exchange.request.path == "/new" { return try exchange.respond(text: "new") }
                if count.next() > 1 { return try exchange.respond(status: 307, headers: [("Location", "/new")]) }
                try exchange.respond(
                    headers: [
                        ("Cache-Control", "max-age=1"), ("ETag", "\"v\""),
                        ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"),
                    ], text: "old")
            },
            test: { (cached) async throws in
                #expect(try await cached.get("old").text == "old")
                cached.clock.advance(10)
                #expect(try await cached.get("old").text == "new")
                #expect(fields.value == ["/old ", "/old If-None-Match If-Modified-Since", "/new "])
                await cached.finish()
            })
    }

    @Test func aStoredRedirectToItselfEnds() async throws {
        try await withCache(
            handler: {
                try $0.respond(status: 301, headers: [("Location", "/a"), ("Cache-Control", "max-age=60")])
            },
            test: { cached in
                let kind = await cached.failure()
                #expect([.tooManyRedirects, .redirectLoop].contains(kind))
                await cached.finish()
            })
    }

    @Test func aRedirectThatIsNotFollowedIsStored() async throws {
        try await withCache(
            session: { $0.redirects = .stop },
            handler: {
                try $0.respond(
                    status: 301, headers: [("Location", "/b"), ("Cache-Control", "max-age=60")], text: "moved")
            },
            test: { cached in
                for source in [CacheTrace.Source.network, .stored] {
                    let response = try await cached.get()
                    #expect(response.status == 301)
                    #expect(response.text == "moved")
                    #expect(response.cacheTrace?.source == source)
                }
                #expect(cached.requestCount == 1)
                await cached.finish()
            })
    }
}
