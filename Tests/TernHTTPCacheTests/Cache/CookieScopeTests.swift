import Tern
import TernHTTPCache
import TernTesting
import Testing

/// The cookies that decide to whom a stored response belongs.
@Suite("HTTP cache: cookies", .timeLimit(.minutes(1)))
struct CookieScopeTests {
    @Test func responsesToRequestsWithoutCookiesAreShared() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=60")])) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            let other = try cached.client { _ in }
            #expect(try await other.get("a", as: String.self) == "1")
        }
    }

    @Test func responsesThatSetCookiesBelongToTheirStore() async throws {
        let headers = [("Cache-Control", "max-age=60"), ("Set-Cookie", "session=1")]
        try await withCache(handler: numbered(headers)) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            // The request sends the cookie now, and its response is stored for that.
            #expect(try await cached.get().text == "1")
            let other = try cached.client { _ in }
            #expect(try await other.get("a", as: String.self) == "2")
            #expect(try await other.get("a", as: String.self) == "2")
            let withoutCookies = try cached.client { $0.cookies = .none }
            #expect(try await withoutCookies.get("a", as: String.self) == "3")
            #expect(cached.requestCount == 3)
        }
    }

    /// The cookie is sent with the POST, and not with the GET whose response the POST makes invalid.
    @Test func aRequestWithCookiesInvalidatesResponsesWithoutThem() async throws {
        let count = Counter()
        let handler: LoopbackServer.Handler = { exchange in
            switch exchange.request.path {
            case "/login": try exchange.respond(headers: [("Set-Cookie", "session=1; Path=/api")], text: "")
            case "/api/a": try exchange.respond(status: 201, headers: [("Location", "/a")], text: "")
            default: try exchange.respond(headers: [("Cache-Control", "max-age=60")], text: "\(count.next())")
            }
        }
        try await withCache(handler: handler) { cached in
            _ = try await cached.get("login")
            #expect(try await cached.get("a").text == "1")
            #expect(try await cached.get("a").text == "1")
            _ = try await cached.client.send(.post, "api/a")
            #expect(try await cached.get("a").text == "2")
        }
    }

    @Test func aSharedStoreSharesItsResponses() async throws {
        let store = CookieStore()
        let headers = [("Cache-Control", "max-age=60"), ("Set-Cookie", "session=1")]
        let session: (inout Session.Configuration) -> Void = { $0.cookies = .store(store) }
        try await withCache(session: session, handler: numbered(headers)) { cached in
            let first = try await cached.get()
            #expect(first.text == "1")
            let other = try cached.client { $0.cookies = .store(store) }
            #expect(try await other.get("a", as: String.self) == "1")
            #expect(cached.requestCount == 1)
        }
    }
}
