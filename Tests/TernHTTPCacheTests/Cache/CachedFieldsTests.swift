import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernHTTPCache

/// Cookies, interim responses and directives for the caches on the way, through a session with a cache.
@Suite("HTTP cache: fields of sessions", .timeLimit(.minutes(1)))
struct CachedFieldsTests {
    /// `Set-Cookie` is stored like any field (RFC 9111 §7.3), but not on the disk. The session takes cookies from the
    /// network alone.
    @Test(arguments: StoreKind.allCases) func aStoredCookieIsNotSetAgain(kind: StoreKind) async throws {
        let handler: LoopbackServer.Handler = { exchange in
            let value = exchange.request.path == "/kept" ? "old" : "new"
            let fields = [("Set-Cookie", "name=\(value); Path=/"), ("Cache-Control", "max-age=60")]
            try exchange.respond(
                headers: exchange.request.path == "/cookie" ? [] : fields, text: exchange.request["Cookie"] ?? "")
        }
        try await withCache(kind, handler: handler) { cached in
            _ = try await cached.get("kept")
            _ = try await cached.get("other")
            let stored = try await cached.get("kept")
            #expect(stored.cacheTrace?.source == .stored)
            #expect(stored.headers["Set-Cookie"] == (kind == .memory ? "name=old; Path=/" : nil))
            #expect(try await cached.get("cookie").text == "name=new")
        }
    }

    /// As the public suite sends it for `headers-store-Content-Length`: the rest of the bytes is no part of the body.
    @Test(arguments: StoreKind.allCases) func aBodyThatIsLongerThanStatedIsStoredAsStated(kind: StoreKind) async throws
    {
        let handler: LoopbackServer.Handler = { exchange in
            let isConfirmed = exchange.request["If-None-Match"] != nil
            let fields = [
                ("Content-Length", isConfirmed ? "9" : "5"), ("Cache-Control", "max-age=2"), ("ETag", "\"a\""),
            ]
            try exchange.respond(status: isConfirmed ? 304 : 200, headers: fields, body: Array("0123456789".utf8))
            exchange.closeAfterResponse()
        }
        try await withCache(kind, handler: handler) { cached in
            let first = try await cached.get()
            #expect(first.text == "01234")
            let second = try await cached.get()
            #expect(second.text == "01234" && second.cacheTrace?.source == .stored)
            cached.clock.advance(3)
            let third = try await cached.get()
            #expect(third.text == "01234" && third.cacheTrace?.source == .validated)
            #expect(third.headers["Content-Length"] == "5")
        }
    }

    @Test func interimResponsesAreReportedAndNotStored() async throws {
        let journal = Journal()
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.write("HTTP/1.1 102 Processing\r\n\r\n")
            try exchange.write(
                "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-Early: 1\r\nCache-Control: no-store\r\n\r\n")
            try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "final")
        }
        let configure: (inout Session.Configuration) -> Void = { $0.observers = [journal] }
        try await withCache(session: configure, handler: handler) { cached in
            let first = try await cached.get()
            #expect(first.text == "final" && first.status == 200)
            #expect(journal.statuses == [102, 103])
            let second = try await cached.get()
            #expect(second.text == "final" && second.status == 200 && second.cacheTrace?.source == .stored)
            #expect(!second.headers.contains("X-Early") && !second.headers.contains("Link"))
            #expect(journal.statuses == [102, 103])
            #expect(cached.requestCount == 1)
        }
    }

    private final class Journal: SessionObserver {
        private let received = Lock<[Int]>([])

        var statuses: [Int] { received.withLock { $0 } }

        func didReceive(interim response: ResponseHead, of task: AnySessionTask) {
            received.withLock { $0.append(response.status) }
        }
    }

    /// A refresh in the background is the cache's own decision, and asks nothing of the caches on the way.
    @Test func onlyTheChoiceOfACallerIsSentAsADirective() async throws {
        let handler: LoopbackServer.Handler = { exchange in
            let text = exchange.request["Cache-Control"] ?? "none"
            try exchange.respond(headers: [("Cache-Control", "max-age=5, stale-while-revalidate=60")], text: text)
        }
        try await withCache(handler: handler) { cached in
            let first = try await cached.get()
            #expect(first.text == "none")
            #expect(try await cached.get(cache: .reload).text == "no-cache")
            #expect(try await cached.get(cache: .revalidate).text == "max-age=0")
            let own = try await cached.get(headers: ["Cache-Control": "min-fresh=1"], cache: .reload)
            #expect(own.text == "min-fresh=1")
            cached.clock.advance(6)
            #expect(try await cached.get().cacheTrace?.source == .stale)
            await cached.cache.refreshed()
            let refreshed = try await cached.get()
            #expect(refreshed.text == "none" && refreshed.cacheTrace?.source == .stored)
        }
    }
}
