import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernHTTPCache

/// Stale responses that are refreshed in the background.
@Suite("HTTP cache: background refreshes", .timeLimit(.minutes(1)))
struct BackgroundRefreshTests {
    /// Fresh for much longer than a request takes, because its duration counts as age (RFC 9111 §4.2.3).
    private static let control = [("Cache-Control", "max-age=60, stale-while-revalidate=600")]

    /// Answers the n-th request with its number, from the second on after the gate.
    private static func gated(_ gate: LoopbackServer.Gate) -> LoopbackServer.Handler {
        return { exchange in
            let number = exchange.number
            if number > 1 { try exchange.wait(for: gate) }
            try exchange.respond(headers: control, text: "\(number)")
        }
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func oneRefreshRunsForEachKeyAndItsResultIsStored(kind: StoreKind, isStreamed: Bool) async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(kind, handler: Self.gated(gate)) { cached in
            #expect(try await cached.get().text == "1")
            // On the disk, the first response is stored a moment after its delivery.
            while try await cached.get().cacheTrace?.source != .stored {}
            let sent = cached.requestCount
            cached.clock.advance(100)
            for _ in 0..<5 {
                // The server is silent, and nobody waits for it.
                if isStreamed {
                    let stream = cached.client.stream("a")
                    #expect(try await stream.response.cacheTrace?.source == .stale)
                    for try await _ in stream.chunks {}
                } else {
                    let stale = try await cached.get()
                    #expect(stale.cacheTrace?.source == .stale)
                    #expect(stale.cacheTrace?.reason == "stale-while-revalidate")
                }
            }
            try await cached.server.wait { $0.requestsReceived == sent + 1 }
            gate.open()
            await cached.cache.refreshed()
            while try await cached.get().cacheTrace?.source != .stored {}
            // On the disk, a stale response that comes before the new one is stored begins another refresh.
            #expect(cached.requestCount == sent + 1 || kind == .disk)
            await cached.cache.refreshed()
            await cached.finish()
        }
    }

    /// Each use of the stale response would ask a server that is in trouble once more.
    @Test(arguments: [
        ("7", 6, false), ("7", 7, true), ("Sun, 06 Nov 2050 08:49:37 GMT", 300, false), ("0", 0, true),
        ("soon", 0, true),
    ])
    func noRefreshBeginsBeforeTheServerAllowsIt(retryAfter: String, seconds: Double, isRefreshed: Bool) async throws {
        try await withCache(
            handler: { exchange in
                if exchange.number == 1 { return try exchange.respond(headers: Self.control, text: "good") }
                try exchange.respond(status: 503, headers: [("Retry-After", retryAfter)], text: "later")
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(100)
                #expect(try await cached.get().text == "good")
                await cached.cache.refreshed()
                #expect(cached.requestCount == 2)
                cached.clock.advance(seconds)
                #expect(try await cached.get().text == "good")
                await cached.cache.refreshed()
                #expect(cached.requestCount == (isRefreshed ? 3 : 2))
                await cached.finish()
            })
    }

    @Test(arguments: [true, false])
    func aRefreshEndsWithItsSession(isInvalidated: Bool) async throws {
        try await withCache(
            handler: { exchange in
                let number = exchange.number
                if number == 2 { return try exchange.waitForClientToClose() }
                try exchange.respond(headers: Self.control, text: "\(number)")
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(100)
                #expect(try await cached.get().text == "1")
                try await cached.server.wait { $0.requestsReceived == 2 }
                await cached.waitForTasks(1)
                if isInvalidated {
                    await cached.client.session.invalidateAndCancel()
                    await cached.cache.refreshed()
                } else {
                    await cached.client.session.tasks.cancelAll()
                    await cached.cache.refreshed()
                    // The next stale response begins another refresh.
                    #expect(try await cached.get().text == "1")
                    await cached.cache.refreshed()
                    #expect(try await cached.get().text == "3")
                }
                await cached.finish()
            })
    }

    enum Failure: CaseIterable, Sendable { case reset, status, statusWithTag, truncatedBody, unauthorized }

    @Test(arguments: Failure.allCases)
    func aFailedRefreshLeavesTheStaleResponse(_ failure: Failure) async throws {
        try await withCache(
            handler: { exchange in
                if exchange.number == 1 { return try exchange.respond(headers: Self.control, text: "good") }
                switch failure {
                case .reset: exchange.reset()
                case .status: try exchange.respond(status: 503)
                case .statusWithTag: try exchange.respond(status: 503, headers: [("ETag", "\"e\"")])
                case .unauthorized: try exchange.respond(status: 401)
                case .truncatedBody:
                    try exchange.writeHead(headers: Self.control + [("Content-Length", "10")])
                    try exchange.write("01234")
                    exchange.close()
                }
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(100)
                for number in 2..<4 {
                    let stale = try await cached.get()
                    #expect(stale.text == "good")
                    #expect(stale.cacheTrace?.source == .stale)
                    await cached.cache.refreshed()
                    // A request that a reset ends on a connection that was used before is sent twice.
                    #expect(cached.requestCount == number || failure == .reset && cached.requestCount > number)
                }
                await cached.finish()
            })
    }

    @Test func aConfirmedResponseIsFreshAgain() async throws {
        try await withCache(
            handler: { exchange in
                if exchange.request["If-None-Match"] != nil {
                    return try exchange.respond(status: 304, headers: Self.control + [("ETag", "\"v\"")])
                }
                try exchange.respond(headers: Self.control + [("ETag", "\"v\"")], text: "body")
            },
            test: { cached in
                _ = try await cached.get()
                cached.clock.advance(100)
                #expect(try await cached.get().cacheTrace?.source == .stale)
                await cached.cache.refreshed()
                #expect(try await cached.get().cacheTrace?.source == .stored)
                #expect(cached.requestCount == 2)
                await cached.finish()
            })
    }

    @Test func aRefreshDoesNotReadABodyThatIsNotStored() async throws {
        try await withCache(
            cache: { $0.entryByteLimit = 1_000 },
            handler: { exchange in
                if exchange.number == 1 { return try exchange.respond(headers: Self.control, text: "small") }
                try exchange.writeHead(headers: Self.control + [("Content-Length", "\(1 << 40)")])
                try exchange.streamZeros(count: 1 << 40)
            },
            test: { cached in
                for try await _ in cached.client.stream("a").chunks {}
                cached.clock.advance(100)
                for try await _ in cached.client.stream("a").chunks {}
                await cached.cache.refreshed()
                await cached.finish()
            })
    }

    @Test func finishingASessionWaitsForItsRefresh() async throws {
        let gate = LoopbackServer.Gate()
        try await withCache(handler: Self.gated(gate)) { cached in
            _ = try await cached.get()
            cached.clock.advance(100)
            _ = try await cached.get()
            try await cached.server.wait { $0.requestsReceived == 2 }
            let end = Task { await cached.client.session.finishTasksAndInvalidate() }
            gate.open()
            await end.value
            await cached.cache.refreshed()
            #expect(cached.requestCount == 2)
        }
    }
}
