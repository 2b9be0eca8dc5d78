#if !TERN_URLSESSION
import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks that headers of a client and secret headers of a session go to their own origins only.
@Suite("Wire: origins of headers", .timeLimit(.minutes(1)))
struct HeaderOriginTests {
    /// Two servers, and the headers of the last request to each.
    private final class Pair: Sendable {
        let home: LoopbackServer
        let other: LoopbackServer
        private let log = Log()

        init() throws {
            let log = log
            other = try LoopbackServer { exchange in
                log.add(exchange, to: "other")
                try exchange.respond(text: "other")
            }
            let away = other.url.absoluteString
            home = try LoopbackServer { exchange in
                log.add(exchange, to: "home")
                if exchange.request.path == "/leave" {
                    try exchange.respond(status: 307, headers: [("Location", away)])
                } else {
                    try exchange.respond(text: "home")
                }
            }
        }

        func headers(at server: String) -> Headers { log.headers(of: server) }

        func stop() {
            home.stop()
            other.stop()
        }
    }

    private final class Log: Sendable {
        private let seen = Mutex<[String: Headers]>([:])

        func add(_ exchange: LoopbackServer.Exchange, to server: String) {
            let headers = Headers(exchange.request.headers.map { Headers.Field(name: $0.name, value: $0.value) })
            seen.withLock { $0[server] = headers }
        }

        func headers(of server: String) -> Headers { seen.withLock { $0[server] ?? [:] } }
    }

    private static let secrets = ["Authorization", "Cookie", "X-Api-Key"]

    private func withPair(_ test: (Pair, Client) async throws -> Void) async throws {
        let pair = try Pair()
        defer { pair.stop() }
        let client = Client(
            baseURL: pair.home.url, session: Session(configuration: .test()),
            headers: ["Authorization": "Bearer client", "Cookie": "a=b", "X-Api-Key": "key", "X-Tenant": "7"])
        try await test(pair, client)
    }

    /// Calls a path in every form.
    private func call(_ client: Client, _ path: String, headers: Headers = [:]) async throws {
        try await client.get(path, headers: headers)
        try await client.post(path, headers: headers, body: .text("x"))
        _ = try await client.task(.get, path, headers: headers).value
        for try await _ in client.stream(path, headers: headers).chunks {}
        try await inTestFolder { folder in
            _ = try await client.download(path, to: folder.url("file"), headers: headers).value
        }
    }

    @Test func aClientsHeadersGoToItsOrigin() async throws {
        try await withPair { pair, client in
            let url = pair.home.url.absoluteString
            let paths = ["a", "/a", "?q", String(url.dropFirst("http:".count)), url]
            for path in paths {
                try await call(client, path)
                for name in Self.secrets + ["X-Tenant"] { #expect(pair.headers(at: "home").contains(name), "\(path)") }
            }
        }
    }

    @Test func pathWithAnotherHostReceivesNoClientHeaders() async throws {
        try await withPair { pair, client in
            let url = pair.other.url.absoluteString
            for path in [url, String(url.dropFirst("http:".count)), "http:\(url.dropFirst("http:".count))"] {
                try await call(client, path, headers: ["X-Call": "1", "X-Token": "call"])
                let seen = pair.headers(at: "other")
                for name in Self.secrets + ["X-Tenant"] { #expect(!seen.contains(name), "\(path)") }
                #expect(seen["X-Call"] == "1" && seen["X-Token"] == "call")
            }
        }
    }

    @Test func redirectToAnotherOriginReceivesNoClientHeaders() async throws {
        try await withPair { pair, client in
            var client = client
            client.headers["User-Agent"] = "client"
            client.headers["X-Both"] = "client"
            try await call(client, "leave", headers: ["X-Call": "1", "X-Both": "call"])
            #expect(pair.headers(at: "home")["X-Tenant"] == "7")
            let seen = pair.headers(at: "other")
            for name in Self.secrets + ["X-Tenant"] { #expect(!seen.contains(name)) }
            #expect(seen["X-Call"] == "1" && seen["X-Both"] == "call")
            // The header of the session replaces that of the client.
            #expect(seen["User-Agent"] == client.session.configuration.headers["User-Agent"])
        }
    }

    @Test func callerCanSendHeadersElsewhereExceptAuthorizationAndCookie() async throws {
        try await withPair { pair, client in
            var client = client
            client.sendsHeadersToOtherOrigins = true
            try await call(client, pair.other.url.absoluteString)
            var seen = pair.headers(at: "other")
            #expect(seen["X-Tenant"] == "7" && seen["X-Api-Key"] == "key")
            #expect(!seen.contains("Authorization") && !seen.contains("Cookie"))
            try await call(client, "leave")
            seen = pair.headers(at: "other")
            #expect(seen["X-Tenant"] == "7")
            for name in Self.secrets { #expect(!seen.contains(name)) }
        }
    }

    @Test func clientWithoutABaseSendsItsHeadersToEveryOrigin() async throws {
        try await withPair { pair, client in
            let client = Client(session: client.session, headers: client.headers)
            try await call(client, pair.other.url.absoluteString)
            for name in Self.secrets + ["X-Tenant"] { #expect(pair.headers(at: "other").contains(name)) }
        }
    }

    @Test func secretHeadersOfASessionGoToNamedOrigins() async throws {
        try await withPair { pair, client in
            var configuration = Session.Configuration.test()
            for field in client.headers { configuration.headers.append(field) }
            configuration.secretHeaderOrigins = .only(["\(pair.home.url.absoluteString)/some/path"])
            let named = Client(session: Session(configuration: configuration))
            try await call(named, pair.home.url.absoluteString)
            for name in Self.secrets + ["X-Tenant"] { #expect(pair.headers(at: "home").contains(name)) }
            for away in [pair.home.url.appending(path: "leave").absoluteString, pair.other.url.absoluteString] {
                try await call(named, away)
                let seen = pair.headers(at: "other")
                for name in Self.secrets { #expect(!seen.contains(name)) }
                #expect(seen["X-Tenant"] == "7")
            }
            configuration.secretHeaderOrigins = .all
            let open = Client(session: Session(configuration: configuration))
            try await call(open, pair.other.url.absoluteString)
            for name in Self.secrets { #expect(pair.headers(at: "other").contains(name)) }
            try await call(open, pair.home.url.appending(path: "leave").absoluteString)
            for name in Self.secrets { #expect(!pair.headers(at: "other").contains(name)) }
        }
    }

    @Test func secretHeadersWithoutAnOriginFailEveryRequest() async throws {
        try await withPair { pair, _ in
            for (origins, words) in [([], "X-Api-Key"), (["nonsense"], "nonsense"), (["ftp://a"], "ftp")] {
                var configuration = Session.Configuration.test { $0.headers["X-Api-Key"] = "s3cret" }
                configuration.secretHeaderOrigins = .only(origins)
                let client = Client(baseURL: pair.home.url, session: Session(configuration: configuration))
                let error = try await failure { try await client.get("a") }
                #expect(error.kind == .invalidRequest && error.reason.contains(words), "\(error)")
                #expect(error.reason.contains("secretHeaderOrigins") && !"\(error)".contains("s3cret"))
                #expect(throws: NetworkError.self) { try configuration.check() }
            }
        }
    }

    @Test func anotherSchemeOrPortIsAnotherOrigin() async throws {
        let stub = StubTransport { _ in .text("x") }
        var configuration = Session.Configuration()
        configuration.headers["Authorization"] = "Bearer session"
        configuration.secretHeaderOrigins = ["https://a.example"]
        let session = Session(configuration: configuration, stub: stub)
        let client = try Client(baseURL: "https://a.example/v1", session: session, headers: ["X-Tenant": "7"])
        for path in ["a", "//b.example/x", "http://a.example/x", "https://a.example:444/x", "https://A.example:443/x"] {
            _ = try await client.get(path)
        }
        let isHome = [true, false, false, false, true]
        #expect(stub.calls.map { $0.headers.contains("Authorization") } == isHome)
        #expect(stub.calls.map { $0.headers.contains("X-Tenant") } == isHome)
    }
}
#endif
