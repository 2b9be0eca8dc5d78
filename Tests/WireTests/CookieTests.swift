import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
@Suite("Wire: cookies", .timeLimit(.minutes(1)))
struct CookieWireTests {
    /// `/set` sets a cookie and answers; `/login` sets one and redirects; all else says which cookies came.
    private static let handler: LoopbackServer.Handler = { exchange in
        let cookie = exchange.request.headers.first { $0.name == "Cookie" }?.value ?? "none"
        switch exchange.request.path {
        case "/set":
            try exchange.respond(
                headers: [("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; HttpOnly")], text: cookie)
        case "/login":
            try exchange.respond(status: 302, headers: [("Set-Cookie", "login=yes; Path=/"), ("Location", "/home")])
        case "/logout":
            try exchange.respond(headers: [("Set-Cookie", "a=; Max-Age=0; Path=/")], text: cookie)
        default:
            try exchange.respond(text: cookie)
        }
    }

    @Test func cookiesComeBackToTheirServer() async throws {
        try await withServer(Self.handler) { _, client in
            #expect(try await client.get("/set", as: String.self) == "none")
            #expect(try await client.get("/", as: String.self) == "a=1; b=2")
            #expect(try await client.task(.get, "/x", as: String.self).value == "a=1; b=2")
            _ = try await client.get("/logout")
            #expect(try await client.get("/", as: String.self) == "b=2")
        }
    }

    @Test func cookieOfARedirectIsSentToItsTarget() async throws {
        try await withServer(Self.handler) { _, client in
            let cookie = try await client.get("/login", as: String.self)
            #expect(cookie == "login=yes")
        }
    }

    @Test func streamsAndRefusedAnswersSetCookiesToo() async throws {
        try await withServer { exchange in
            let cookie = exchange.request.headers.first { $0.name == "Cookie" }?.value ?? "none"
            let status = exchange.request.path == "/404" ? 404 : 200
            try exchange.respond(status: status, headers: [("Set-Cookie", "c\(status)=1; Path=/")], text: cookie)
        } test: { _, client in
            _ = try await failure { try await client.get("/404") }
            for try await line in client.stream("/").lines { #expect(line == "c404=1") }
            #expect(try await client.get("/", as: String.self) == "c404=1; c200=1")
        }
    }

    @Test func fieldOfTheCallerStandsFirst() async throws {
        try await withServer(Self.handler) { _, client in
            _ = try await client.get("/set")
            #expect(try await client.get("/", headers: ["Cookie": "own=1"], as: String.self) == "own=1; a=1; b=2")
        }
    }

    @Test func sessionsShareOnlyWhatTheyAreTold() async throws {
        let store = CookieStore()
        for (use, expected) in [(CookieUse.none, "none"), (.separate, "none"), (.store(store), "a=1; b=2")] {
            let server = try LoopbackServer(handler: Self.handler)
            defer { server.stop() }
            for number in 0..<2 {
                let session = Session(configuration: .test { $0.cookies = use })
                let client = Client(baseURL: server.url, session: session)
                _ = try await client.get("/set")
                if number == 1 || expected == "none" { continue }
                #expect(try await client.get("/", as: String.self) == expected)
            }
            let client = Client(baseURL: server.url, session: Session(configuration: .test { $0.cookies = use }))
            #expect(try await client.get("/", as: String.self) == expected)
        }
    }

    @Test func requestHasItsOwnSay() async throws {
        try await withServer(Self.handler) { _, client in
            _ = try await client.get("/set")
            var request = try client.request(.get, "/")
            request.cookies = CookieUse.none
            #expect(try await client.session.response(for: request, decode: .string).value == "none")
            var login = try client.request(.get, "/login")
            login.cookies = .separate
            #expect(try await client.session.response(for: login, decode: .string).value == "login=yes")
            #expect(try await client.get("/", as: String.self) == "a=1; b=2")
        }
    }
}
#endif
