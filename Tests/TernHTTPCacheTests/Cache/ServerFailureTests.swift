import Foundation
import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

/// Errors of the server and of the validation, and responses that contradict themselves.
@Suite("HTTP cache: failures", .timeLimit(.minutes(1)))
struct ServerFailureTests {
    /// Answers the first request with a response that is fresh for a second, and the others by a function.
    private func failing(
        _ control: String, _ fail: @escaping LoopbackServer.Handler
    ) -> LoopbackServer.Handler {
        let count = Counter()
        return { exchange in
            if count.next() > 1 { return try fail(exchange) }
            try exchange.respond(headers: [("Cache-Control", control), ("ETag", "\"v\"")], text: "good")
        }
    }

    @Test(arguments: [500, 502, 503, 504])
    func staleIfErrorAnswersInPlaceOfAServersError(status: Int) async throws {
        let handler = failing("max-age=1, stale-if-error=100") {
            try $0.respond(status: status, headers: [("ETag", "\"error\"")], text: "bad")
        }
        try await withCache(handler: handler) { cached in
            _ = try await cached.get()
            cached.clock.advance(50)
            for _ in 0..<2 {
                let stale = try await cached.get()
                #expect(stale.text == "good")
                #expect(stale.cacheTrace?.source == .stale)
                #expect(stale.cacheTrace?.reason == "stale-if-error")
                #expect(stale.cacheTrace?.isHit == true)
                #expect(stale.cacheTrace?.cacheStatus.hasPrefix("Tern; fwd=stale; fwd-status=\(status); ttl=-") == true)
            }
            cached.clock.advance(100)
            #expect(await cached.failure() == .status)
            #expect(cached.requestCount == 4)
            await cached.finish()
        }
    }

    @Test(arguments: [true, false])
    func aServerThatCannotBeReachedLeavesStaleResponses(isOwnPermission: Bool) async throws {
        try await withCache(
            cache: { $0.staleWhenDisconnected = isOwnPermission ? nil : .seconds(100) },
            handler: failing(isOwnPermission ? "max-age=1, stale-if-error=100" : "max-age=1") { $0.reset() },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(50)
                let reset = try await cached.get()
                #expect(reset.text == "good")
                #expect(reset.cacheTrace?.reason == (isOwnPermission ? "stale-if-error" : "disconnected"))
                #expect(reset.cacheTrace?.isHit == true)
                #expect(reset.cacheTrace?.cacheStatus.hasPrefix("Tern; fwd=stale; ttl=-") == true)
                cached.server.stop()
                let refused = try await cached.get()
                #expect(refused.text == "good")
                #expect(refused.metrics.receivedBytes == 0)
                var streamed = Data()
                for try await chunk in cached.client.stream("a").chunks { streamed += chunk }
                #expect(streamed == Data("good".utf8))
                cached.clock.advance(100)
                #expect(await cached.failure() == .connectionRefused)
                await cached.finish()
            })
    }

    @Test func mustRevalidateForbidsStaleResponses() async throws {
        try await withCache(
            cache: { $0.staleWhenDisconnected = .seconds(100) },
            handler: failing("max-age=1, must-revalidate, stale-if-error=100") { $0.reset() },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(2)
                #expect(await cached.failure() == .connectionLost)
                await cached.finish()
            })
    }

    @Test func anErrorWithAnEntityTagReplacesNothing() async throws {
        let handler = failing("max-age=1") {
            try $0.respond(status: 503, headers: [("ETag", "\"error\"")], text: "bad")
        }
        try await withCache(handler: handler) { cached in
            _ = try await cached.get()
            cached.clock.advance(50)
            #expect(await cached.failure() == .status)
            #expect(try await cached.get(cache: .onlyStored).text == "good")
            await cached.finish()
        }
    }

    @Test func aConfirmationOfAnUnknownResponseIsFollowedByAWholeOne() async throws {
        try await withCache(
            handler: { exchange in
                if exchange.request["If-None-Match"] != nil {
                    return try exchange.respond(status: 304, headers: [("ETag", "\"other\"")])
                }
                try exchange.respond(headers: [("Cache-Control", "max-age=1"), ("ETag", "\"v\"")], text: "body")
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(5)
                let response = try await cached.get()
                #expect(response.text == "body")
                #expect(response.cacheTrace?.source == .network)
                #expect(cached.requestCount == 3)
                await cached.finish()
            })
    }

    @Test func aConfirmationThatNobodyAskedForIsDeliveredAndNotStored() async throws {
        try await withCache(
            handler: {
                try $0.respond(status: 304, headers: [("ETag", "\"v\""), ("Cache-Control", "max-age=60")])
            },
            test: { cached in
                #expect(await cached.failure() == .status)
                #expect(await cached.failure() == .status)
                #expect(cached.requestCount == 2)
                await cached.finish()
            })
    }

    @Test func aConfirmationDoesNotChangeTheLengthOfTheBody() async throws {
        let handler = failing("max-age=1") {
            try $0.respond(
                status: 304,
                headers: [
                    ("ETag", "\"v\""), ("Content-Length", "99"), ("Content-Encoding", "gzip"), ("X-New", "1"),
                    ("Cache-Control", "max-age=60"),
                ])
        }
        try await withCache(handler: handler) { cached in
            _ = try await cached.get()
            cached.clock.advance(5)
            for source in [CacheTrace.Source.validated, .stored] {
                let response = try await cached.get()
                #expect(response.text == "good")
                #expect(response.headers["Content-Length"] == "4")
                #expect(response.headers["X-New"] == "1")
                #expect(response.cacheTrace?.source == source)
            }
            await cached.finish()
        }
    }

    @Test func aHeadWithManyFieldsPassesThrough() async throws {
        let fields = (0..<900).map { ("X-\($0)", "\($0)") }
        try await withCache(
            handler: { try $0.respond(headers: [("Cache-Control", "max-age=60")] + fields, text: "a") },
            test: {
                cached in
                for _ in 0..<2 {
                    let response = try await cached.get()
                    #expect(response.headers["X-899"] == "899")
                    #expect(response.cacheTrace?.storing == "head-too-large")
                }
                #expect(cached.requestCount == 2)
                await cached.finish()
            })
    }

    @Test(arguments: [true, false])
    func aRefusedResponseIsAnErrorEachTimeAndStored(isStreamed: Bool) async throws {
        try await withCache(
            handler: {
                try $0.respond(status: 404, headers: [("Cache-Control", "max-age=60")], text: "nothing here")
            },
            test: { cached in
                for source in [CacheTrace.Source.network, .stored, .stored] {
                    do {
                        if isStreamed {
                            _ = try await cached.client.stream("a").response
                        } else {
                            _ = try await cached.get()
                        }
                        Issue.record("no error")
                    } catch let error as NetworkError {
                        #expect(error.kind == .status)
                        #expect(error.status == 404)
                        #expect(error.body == Data("nothing here".utf8))
                        #expect(error.response?.cacheTrace?.source == source)
                        #expect(error.metrics?.transactions == (source == .network ? 1 : 0))
                    }
                }
                #expect(cached.requestCount == 1)
                await cached.finish()
            })
    }

    @Test(arguments: StoreKind.allCases)
    func aStoredBodyThatCannotBeDecompressedIsRemoved(kind: StoreKind) async throws {
        let good = try gzipped(Data("good".utf8))
        try await withCache(
            kind,
            handler: { exchange in
                let fields = [("Cache-Control", "max-age=60"), ("Content-Encoding", "gzip")]
                let damaged = Array(good.dropLast(6))
                try exchange.respond(headers: fields, body: exchange.number == 1 ? damaged : Array(good))
            },
            test: { cached in
                // Stored by a session that does not decompress it, and so does not see the damage.
                let raw = try cached.client { $0.decompresses = false }
                _ = try await raw.fetch("a")
                await cached.cache.flush()
                #expect(await cached.failure() == .truncatedBody)
                while await !cached.cache.entries().isEmpty { await Task.yield() }
                #expect(try await cached.get().text == "good")
                #expect(cached.requestCount == 2)
                await cached.cache.flush()
                // A reader that leaves early says nothing about the body.
                do {
                    let stream = cached.client.stream("a")
                    #expect(try await stream.response.status == 200)
                    stream.task.cancel()
                }
                #expect(try await cached.get().cacheTrace?.source == .stored)
                await cached.finish()
            })
    }

    @Test func aConfirmedResponseHasTheMeasurementsOfItsExchange() async throws {
        try await withCache(
            handler: { exchange in
                let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"v\"")]
                try exchange.respond(status: exchange.number == 1 ? 200 : 304, headers: fields, text: "body")
            },
            test: { cached in
                _ = try await cached.get()
                let confirmed = try await cached.get()
                #expect(confirmed.text == "body")
                #expect(confirmed.cacheTrace?.source == .validated)
                #expect(confirmed.metrics.transactions == 1)
                #expect(confirmed.metrics.receivedBytes > 0)
                #expect(confirmed.metrics.decodedBodyBytes == 4)
                await cached.finish()
            })
    }

    @Test func anInterceptorChangesTheResponseAndNotTheStoredOne() async throws {
        struct Changing: Interceptor {
            func intercept(_ request: Tern.Request, next: Next) async throws -> Reply {
                var reply = try await next(request)
                reply.body = Data("changed".utf8) + (reply.body ?? Data())
                return reply
            }
        }
        try await withCache(
            session: {
                $0.interceptors = [Changing()]
                $0.partition = "p"
                $0.cookies = .none
            }, handler: numbered([("Cache-Control", "max-age=60")]),
            test: { cached in
                for source in [CacheTrace.Source.network, .stored] {
                    let response = try await cached.get()
                    #expect(response.text == "changed1")
                    #expect(response.cacheTrace?.source == source)
                }
                let plain = try cached.client {
                    $0.partition = "p"
                    $0.cookies = .none
                }
                #expect(try await plain.fetch("a").text == "1")
                await cached.finish()
            })
    }
}
