import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernHTTPCache

/// Requests whose user changes while they wait, and unsafe requests whose responses fail.
@Suite("HTTP cache: changed requests", .timeLimit(.minutes(1)))
struct ChangedRequestTests {
    /// A request waits for an equal one. Meanwhile a login sets a cookie, which is sent when the wait has ended.
    @Test(arguments: StoreKind.allCases)
    func aResponseBelongsToTheCookiesThatWereSent(kind: StoreKind) async throws {
        let gate = LoopbackServer.Gate()
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.request.path == "/login" {
                return try exchange.respond(headers: [("Set-Cookie", "session=ada; Path=/")], text: "")
            }
            let isAda = exchange.request["Cookie"] != nil
            if !isAda { try exchange.wait(for: gate) }
            try exchange.respond(
                headers: [("Cache-Control", isAda ? "private, max-age=60" : "no-store")],
                text: isAda ? "ada" : "nobody")
        }
        try await withCache(kind, handler: handler) { cached in
            let first = Task { try await cached.get().text }
            try await cached.server.wait { $0.requestsReceived == 1 }
            let second = Task { try await cached.get().text }
            await cached.waitForWaiters(1)
            _ = try await cached.client.send(.post, "login")
            gate.open()
            #expect(try await first.value == "nobody")
            #expect(try await second.value == "ada")
            #expect(try await cached.get().text == "ada")
            let other = try cached.client { $0.cookies = .none }
            #expect(try await other.get("a", as: String.self) == "nobody")
            await cached.finish()
        }
    }

    /// The status of a POST arrived, and its body did not (RFC 9111 §4.4).
    @Test(arguments: StoreKind.allCases)
    func anUnsafeRequestInvalidatesAlthoughItsBodyFails(kind: StoreKind) async throws {
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.request.method == "POST" {
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
                return exchange.close()
            }
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(exchange.number)")
        }
        try await withCache(kind, handler: handler) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            await #expect(throws: NetworkError.self) { try await cached.client.send(.post, "a") }
            #expect(try await cached.get().text == "3")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func anUnsafeRequestInvalidatesUnderEachTrustPolicy(kind: StoreKind) async throws {
        try await withCache(
            kind, session: { $0.cookies = .none }, handler: numbered([("Cache-Control", "max-age=60")]),
            test: { cached in
                var get = try cached.client.request(.get, "a")
                get.trust = .unchecked
                let session = cached.client.session
                #expect(try await session.response(for: get).text == "1")
                try await until { cached.cache.statistics.stored == 1 }
                #expect(try await session.response(for: get).text == "1")
                _ = try await cached.client.send(.post, "a")
                #expect(try await session.response(for: get).text == "3")
            })
    }

    /// Another process has the folder while the POST is sent.
    @Test func anUnsafeRequestBeforeTheFolderIsOpenInvalidates() async throws {
        try await withFolder { folder in
            let server = try LoopbackServer(handler: numbered([("Cache-Control", "max-age=60")]))
            defer { server.stop() }
            let before = HTTPCache.disk(folder: folder)
            let client = Client(baseURL: server.url, session: Session(configuration: .cached(before)))
            #expect(try await client.fetch("a").text == "1")
            await before.flush()
            let store = try #require(before.shared.store as? DiskEntryStore)
            let state = CacheState()
            let key = CacheKey(try client.request(.get, "a").target)
            _ = state.noteInvalidations([CacheInvalidation(keys: [key], groups: [])])
            #expect(state.store == nil)
            await state.openFolder(with: store)
            #expect(state.store != nil)
            #expect(try await client.fetch("a").text == "2")
        }
    }

    /// A part of one version must not be completed by another one.
    @Test func aStaleResponseDoesNotAnswerAConditionForTheOrigin() async throws {
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.number > 1 { return try exchange.respond(status: 503, text: "busy") }
            try exchange.respond(
                headers: [("Cache-Control", "max-age=60, stale-if-error=600"), ("ETag", "\"2\"")], text: "second")
        }
        try await withCache(handler: handler) { cached in
            let first = try await cached.get()
            #expect(first.text == "second")
            #expect(await cached.status(headers: ["If-Match": "\"1\"", "Range": "bytes=2-"]) == 503)
            #expect(await cached.status(headers: ["If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"]) == 503)
        }
    }

    /// RFC 9110 §7.6.1 forbids such a list. The field holds all the same.
    @Test(arguments: ["Cache-Control", "cache-control, x"])
    func connectionDoesNotHideWhatForbidsStoring(list: String) async throws {
        let expiry = ("Expires", "Sun, 06 Nov 2094 08:49:37 GMT")
        let headers = [("Connection", list), ("Cache-Control", "no-store"), expiry]
        try await withCache(handler: numbered(headers)) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            #expect(try await cached.get().text == "2")
        }
    }

    /// An entry keeps its `No-Vary-Search`, by which it is found.
    @Test(arguments: StoreKind.allCases)
    func aRuleIn304DoesNotLoseTheEntry(kind: StoreKind) async throws {
        let handler: LoopbackServer.Handler = { exchange in
            if exchange.request["If-None-Match"] != nil {
                return try exchange.respond(
                    status: 304, headers: [("ETag", "\"a\""), ("No-Vary-Search", "params"), ("X", "new")])
            }
            let headers = [("Cache-Control", "no-cache"), ("ETag", "\"a\"")]
            try exchange.respond(headers: headers, text: "\(exchange.number)")
        }
        try await withCache(kind, handler: handler) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            try await until { cached.cache.statistics.stored == 1 }
            for _ in 0..<2 { #expect(try await cached.get().text == "1") }
            #expect(cached.requestCount == 3)
            #expect(await cached.cache.entries().map { $0.headers["X"] } == ["new"])
        }
    }

    @Test func entriesAreShownWithoutTheValuesOfQueries() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            _ = try await cached.get("a?access_token=hunter2")
            let entries = await cached.cache.entries()
            #expect(entries.count == 1 && entries[0].url.contains("hunter2"))
            var text = "\(entries) "
            dump(entries, to: &text)
            let explanation = try await cached.cache.explain(
                try cached.client.request(.get, "a?access_token=hunter2"), of: cached.client.session)
            dump(explanation, to: &text)
            #expect(!text.contains("hunter2"), "\(text)")
        }
    }
}

extension CachedServer {
    /// Returns the status of a response, also of one that is refused.
    fileprivate func status(headers: Headers) async -> Int? {
        do {
            return try await get(headers: headers).status
        } catch {
            return (error as? NetworkError)?.status
        }
    }
}
