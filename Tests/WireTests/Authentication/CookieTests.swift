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
    /// Sets a cookie for `/set`, sets one and redirects for `/login`, and otherwise answers with the cookies received.
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

    @Test func cookiesAreSentBackToTheirServer() async throws {
        try await withServer(Self.handler) { _, client in
            #expect(try await client.get("/set", as: String.self) == "none")
            #expect(try await client.get("/", as: String.self) == "a=1; b=2")
            #expect(try await client.task(.get, "/x", as: String.self).value == "a=1; b=2")
            _ = try await client.get("/logout")
            #expect(try await client.get("/", as: String.self) == "b=2")
        }
    }

    /// Returns the value of the Cookie field, from the bytes of the head.
    private static func cookieBytes(_ request: LoopbackServer.Request) -> [UInt8] {
        let name = Array("Cookie: ".utf8)
        let line = request.rawHead.split(separator: 10).first { $0.starts(with: name) }
        return line.map { Array($0.dropFirst(name.count).filter { $0 != 13 }) } ?? []
    }

    @Test func cookieBytesAreSentBackUnchanged() async throws {
        // Bytes that are not UTF-8 in a name and in values, UTF-8 beside them, and a byte of C1.
        let pairs: [[UInt8]] = [
            [0x61, 0x3D, 0xE9, 0xFF], [0x62, 0x3D, 0xC3, 0xA9], [0xFC, 0x3D, 0x31],
            [0x63, 0x3D, 0x80, 0x9F, 0x20, 0x64],
        ]
        try await withServer { exchange in
            guard exchange.request.path == "/set" else {
                return try exchange.respond(body: Self.cookieBytes(exchange.request))
            }
            var head = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".utf8)
            for pair in pairs { head += Array("Set-Cookie: ".utf8) + pair + Array("; Path=/\r\n".utf8) }
            try exchange.write(head + Array("\r\n".utf8))
        } test: { _, client in
            _ = try await client.get("/set")
            let expected = Array(pairs.joined(separator: "; ".utf8))
            for _ in 0..<2 { #expect(try await client.get("/") == Data(expected)) }
            let own = try await client.get("/", headers: ["Cookie": "own=ü"])
            #expect(own == Data(Array("own=ü; ".utf8) + expected))
        }
    }

    @Test func aBareCarriageReturnNeverReachesACookie() async throws {
        try await withServer { exchange in
            guard exchange.request.path == "/set" else {
                return try exchange.respond(body: Self.cookieBytes(exchange.request))
            }
            try exchange.write(
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: a=1\r2\r\nSet-Cookie: b=1\r\r\n"
                    + "Set-Cookie: c=3; Path=/\r\n\r\n")
        } test: { _, client in
            let error = try await failure { try await client.get("/set") }
            #expect(error.kind == .malformedResponse)
            #expect(try await client.get("/", as: String.self) == "")
        }
    }

    @Test func cookieFieldIsLimitedToEightKibibytes() async throws {
        let value = String(repeating: "x", count: 1_000)
        try await withServer { exchange in
            guard exchange.request.path == "/set" else {
                return try exchange.respond(body: Self.cookieBytes(exchange.request))
            }
            try exchange.respond(headers: (10..<30).map { ("Set-Cookie", "n\($0)=\(value); Path=/") })
        } test: { _, client in
            _ = try await client.get("/set")
            let sent = try await client.get("/", as: String.self).split(separator: "; ").map { $0.prefix(3) }
            #expect(sent == ["n22", "n23", "n24", "n25", "n26", "n27", "n28", "n29"])
            let own = String(repeating: "y", count: 4_000)
            let shared = try await client.get("/", headers: ["Cookie": "own=" + own], as: String.self)
            #expect(shared.utf8.count <= 8_192 && shared.hasPrefix("own=" + own + "; n26="))
            let whole = String(repeating: "y", count: 9_000)
            #expect(try await client.get("/", headers: ["Cookie": whole], as: String.self) == whole)
        }
    }

    @Test func cookieOfARedirectIsSentToItsTarget() async throws {
        try await withServer(Self.handler) { _, client in
            let cookie = try await client.get("/login", as: String.self)
            #expect(cookie == "login=yes")
        }
    }

    @Test func streamsAndRefusedResponsesSetCookies() async throws {
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

    @Test func cookieFieldOfTheCallerComesFirst() async throws {
        try await withServer(Self.handler) { _, client in
            _ = try await client.get("/set")
            #expect(try await client.get("/", headers: ["Cookie": "own=1"], as: String.self) == "own=1; a=1; b=2")
        }
    }

    @Test func sessionsShareCookiesOnlyThroughASharedStore() async throws {
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

    @Test func requestOverridesCookieHandling() async throws {
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
