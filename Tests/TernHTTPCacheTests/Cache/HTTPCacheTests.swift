import Foundation
import Tern
import TernHTTPCache
import TernTesting
import Testing

/// Whole requests through a session with a cache, over sockets.
@Suite("HTTP cache: sessions", .timeLimit(.minutes(1)))
struct HTTPCacheTests {
    @Test(arguments: StoreKind.allCases)
    func aFreshResponseAnswersWithoutTheServer(kind: StoreKind) async throws {
        try await withCache(kind, handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            #expect(first.cacheTrace?.source == .network)
            let second = try await cached.get()
            #expect(second.text == "1")
            #expect(second.cacheTrace?.source == .stored)
            // The time that the first request took (RFC 9111 §4.2.3), less than a second on an idle machine.
            let age = try #require(second.headers["Age"].flatMap { Int($0) })
            #expect((0..<60).contains(age))
            #expect(second.metrics.receivedBytes == 0)
            #expect(second.metrics.transactions == 0)
            #expect(second.metrics.decodedBodyBytes == 1)
            #expect(cached.requestCount == 1)
            cached.clock.advance(61)
            #expect(try await cached.get().text == "2")
            #expect(cached.requestCount == 2)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func aStaleResponseIsConfirmed(kind: StoreKind) async throws {
        try await withCache(
            kind,
            handler: { exchange in
                if exchange.request["If-None-Match"] == "\"v\"" {
                    try exchange.respond(status: 304, headers: [("ETag", "\"v\""), ("Cache-Control", "max-age=9")])
                } else {
                    try exchange.respond(headers: [("ETag", "\"v\""), ("Cache-Control", "max-age=5")], text: "body")
                }
            },
            test: { cached in
                #expect(try await cached.get().text == "body")
                cached.clock.advance(6)
                let confirmed = try await cached.get()
                #expect(confirmed.status == 200)
                #expect(confirmed.text == "body")
                #expect(confirmed.cacheTrace?.source == .validated)
                #expect(confirmed.headers["Cache-Control"] == "max-age=9")
                cached.clock.advance(8)
                #expect(try await cached.get().cacheTrace?.source == .stored)
                #expect(cached.requestCount == 2)
            })
    }

    @Test func eachCacheChoiceIsFollowed() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            #expect(await cached.failure(cache: .onlyStored) == .notStored)
            let first = try await cached.get()
            #expect(first.text == "1")
            #expect(try await cached.get(cache: .reload).text == "2")
            #expect(try await cached.get(cache: .onlyStored).text == "2")
            #expect(try await cached.get(cache: .noStore).text == "3")
            #expect(try await cached.get().text == "2")
            cached.clock.advance(100)
            #expect(try await cached.get(cache: .preferStored).text == "2")
            #expect(try await cached.get().text == "4")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func equalRequestsAreSentOnce(kind: StoreKind) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(
            kind,
            handler: { exchange in
                let number = exchange.number
                try exchange.wait(for: gate)
                try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(number)")
            },
            test: { cached in
                let results = try await withThrowingTaskGroup(of: Response<Data>.self) { group in
                    for _ in 0..<16 { group.addTask { try await cached.get() } }
                    try await cached.server.wait { $0.requestsReceived == 1 }
                    await cached.waitForWaiters(15)
                    gate.open()
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(results.allSatisfy { $0.text == "1" })
                #expect(results.count { $0.cacheTrace?.isShared == true && $0.cacheTrace?.source == .stored } == 15)
                #expect(cached.requestCount == 1)
            })
    }

    @Test func aStreamFillsTheCacheAndIsAnsweredFromIt() async throws {
        let body = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try await withCache(
            handler: { exchange in
                try exchange.writeHead(headers: [("Cache-Control", "max-age=60"), ("Content-Length", "600000")])
                try exchange.write(body)
            },
            test: { cached in
                for _ in 0..<3 {
                    var received = Data()
                    for try await chunk in cached.client.stream("a").chunks {
                        #expect(chunk.startIndex == 0 && chunk.count <= 256 << 10)
                        received += chunk
                    }
                    #expect(received == body)
                }
                #expect(try await cached.get().value == body)
                #expect(cached.requestCount == 1)
            })
    }

    @Test func aBodyIsStoredAsItCameAndDecompressedForEachReader() async throws {
        let text = String(repeating: "compressible ", count: 4_000)
        let compressed = try gzipped(Data(text.utf8))
        try await withCache(
            handler: { exchange in
                try exchange.respond(
                    headers: [
                        ("Cache-Control", "max-age=60"), ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"),
                    ],
                    body: Array(compressed))
            },
            test: { cached in
                #expect(try await cached.get().text == text)
                let second = try await cached.get()
                #expect(second.text == text)
                #expect(second.cacheTrace?.source == .stored)
                #expect(cached.requestCount == 1)
                let entries = await cached.cache.entries(matching: cached.server.url("/a").absoluteString)
                #expect(entries.map(\.storedBytes) == [Int64(compressed.count)])
            })
    }
}
