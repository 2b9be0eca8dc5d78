#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

/// Connects through proxies, to given addresses, and from given ones.
@Suite(.serialized, .timeLimit(.minutes(1)))
struct ProxyTests {
    private static func proxied(_ proxies: Session.Configuration.Proxies) -> Session.Configuration {
        .test { $0.proxies = proxies }
    }

    private static func hello(_ exchange: LoopbackServer.Exchange) throws {
        let facts = [("X-Target", exchange.request.target), ("X-Host", exchange.request["Host"] ?? "")]
        try exchange.respond(headers: facts.map { ($0.0, $0.1) }, text: "hello")
    }

    @Test func proxyReceivesTheAbsoluteURLOfAPlainRequest() async throws {
        // The server is the proxy: it sees the absolute URL.
        try await withServer { exchange in
            try exchange.respond(
                headers: [
                    ("X-Target", exchange.request.target), ("X-Login", exchange.request["Proxy-Authorization"] ?? ""),
                ], text: "hello")
        } test: { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: server.proxyPort, user: "u@x", password: "p:/ä")
            let session = Session(configuration: Self.proxied(.only(proxy)))
            let response = try await session.response(for: Request(.get, "http://example.test/a?b"))
            #expect(response.head.headers["X-Target"] == "http://example.test/a?b")
            let login = Data("u@x:p:/ä".utf8).base64EncodedString()
            #expect(response.head.headers["X-Login"] == "Basic \(login)")
        }
    }

    /// A zone is the name of an interface of this machine (RFC 6874 §4).
    @Test func proxyReceivesNoZone() async throws {
        try await withServer(Self.hello) { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: server.proxyPort)
            let session = Session(configuration: Self.proxied(.only(proxy)))
            let head = try await session.response(for: Request(.get, "http://[fe80::1%25eth0]:81/a?b")).head
            #expect(head.headers["X-Target"] == "http://[fe80::1]:81/a?b")
            #expect(head.headers["X-Host"] == "[fe80::1]:81")
        }
    }

    @Test func exceptedHostsAreReachedDirectly() async throws {
        try await withServer(Self.hello) { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: 1)
            let session = Session(configuration: Self.proxied(.only(proxy, except: ["127.0.0.1"])))
            let response = try await session.response(for: Request(.get, url: server.url))
            #expect(response.head.headers["X-Target"] == "/")
        }
    }

    @Test func proxyCanApplyToOneScheme() async throws {
        try await withServer(Self.hello) { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: 1)
            let session = Session(configuration: Self.proxied(.schemes(http: nil, https: proxy)))
            let response = try await session.response(for: Request(.get, url: server.url))
            #expect(response.head.status == 200)
            let error = try await failure {
                try await session.response(for: Request(.get, "https://127.0.0.1:\(server.proxyPort)/"))
            }
            #expect(error.kind == .connectionRefused || error.kind == .proxy)
            #expect(error.reason.contains("the proxy 127.0.0.1:1 refused the connection"))
        }
    }

    @Test(arguments: [Proxy.Kind.socks5, .socks5WithLocalNames], [nil, "u"])
    func socksResolvesNamesRemotelyOrLocally(kind: Proxy.Kind, user: String?) async throws {
        let tunnel = try Tunnel(user: user, password: "p%:w")
        defer { tunnel.stop() }
        try await withServer(Self.hello) { server, _ in
            let proxy = Proxy(
                kind, host: "127.0.0.1", port: tunnel.port, user: user, password: user.map { _ in "p%:w" })
            let session = Session(configuration: Self.proxied(.only(proxy)))
            let text = try await session.response(
                for: Request(.get, "http://localhost:\(server.proxyPort)/"), decode: BodyDecoder.string)
            #expect(text.value == "hello")
            let name = kind == .socks5 ? "localhost" : "127.0.0.1"
            #expect(tunnel.requests == ["SOCKS \(name):\(server.proxyPort)"])
        }
    }

    @Test(arguments: ["", nil]) func anEmptySOCKSPasswordIsSent(password: String?) async throws {
        let tunnel = try Tunnel(user: "token", password: "")
        defer { tunnel.stop() }
        try await withServer(Self.hello) { server, _ in
            let proxy = Proxy(.socks5, host: "127.0.0.1", port: tunnel.port, user: "token", password: password)
            let session = Session(configuration: Self.proxied(.only(proxy)))
            let response = try await session.response(for: Request(.get, "http://localhost:\(server.proxyPort)/"))
            #expect(response.status == 200)
            #expect(tunnel.requests == ["SOCKS localhost:\(server.proxyPort)"])
        }
    }

    /// The server is the proxy, which receives plain requests whole.
    @Test func proxyURLAnswersADigestChallenge() async throws {
        let answers = Lock<[String]>([])
        try await withServer { exchange in
            let answer = exchange.request["Proxy-Authorization"] ?? ""
            answers.withLock { $0.append(String(answer.prefix { $0 != " " })) }
            if answer.contains("Digest"), answer.contains("username=\"ada\""), answer.contains("uri=\"/a?b\"") {
                return try exchange.respond(text: "hello")
            }
            let offer = exchange.request.target.hasSuffix("/basic") ? "Basic realm=\"p\"" : Self.digestOffer
            try exchange.respond(status: 407, headers: [("Proxy-Authenticate", offer)], text: "")
        } test: { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: server.proxyPort, user: "ada", password: "secret")
            let session = Session(configuration: Self.proxied(.only(proxy)))
            for _ in 0..<2 {
                let response = try await session.response(for: Request(.get, "http://example.test/a?b"))
                #expect(response.status == 200)
            }
            // The answer is remembered.
            #expect(answers.withLock { $0 } == ["Basic", "Digest", "Digest"])
            answers.withLock { $0 = [] }
            // A remembered answer is renewed once, for a new nonce. A refused Basic is not repeated.
            for (path, sent) in [("wrong", ["Digest", "Digest"]), ("basic", ["Basic"])] {
                let request = try Request(.get, "http://example.test/\(path)")
                let refused = try await failure { try await session.response(for: request) }
                #expect(refused.status == 407 && !"\(refused)".contains("secret"))
                #expect(answers.withLock { $0 } == sent, "\(path)")
                answers.withLock { $0 = [] }
            }
        }
    }

    private static let digestOffer = "Digest realm=\"p\", qop=\"auth\", algorithm=SHA-256, nonce=\"n1\""

    @Test func wrongProxyPasswordIsRefusedAndNotShown() async throws {
        let tunnel = try Tunnel(user: "u", password: "right")
        defer { tunnel.stop() }
        for kind in [Proxy.Kind.socks5, .http] {
            let proxy = Proxy(kind, host: "127.0.0.1", port: tunnel.port, user: "u", password: "hunter2")
            let session = Session(configuration: Self.proxied(.only(proxy)))
            let error = try await failure { try await session.response(for: Request(.get, "https://example.test/")) }
            #expect(error.kind == .proxy)
            #expect(error.reason.contains("127.0.0.1:\(tunnel.port)"))
            #expect(!"\(error)".contains("hunter2") && !"\(proxy)".contains("hunter2"))
            var dumped = ""
            dump(proxy, to: &dumped)
            #expect(!dumped.contains("hunter2"))
        }
    }

    @Test func errorNamesAProxyWithoutAnAddress() async throws {
        let proxy = Proxy(.http, host: "no-such-proxy.invalid", port: 3128, user: "u", password: "hunter2")
        // Some resolvers take long to report an unknown name.
        let session = Session(
            configuration: .test {
                $0.proxies = .only(proxy)
                $0.timeouts.connect = .seconds(40)
            })
        let error = try await failure { try await session.response(for: Request(.get, "http://example.test/")) }
        #expect(error.kind == .proxy)
        #expect(error.reason.contains("no-such-proxy.invalid:3128") && !error.reason.contains("hunter2"))
    }

    @Test(
        "an https request goes through a tunnel, and is encrypted from end to end",
        .enabled(if: Nginx.isExpected, Nginx.absence))
    func tunnelLeadsToTheServer() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let tunnel = try Tunnel(user: "u", password: "p")
        defer { tunnel.stop() }
        let proxy = Proxy(.http, host: "127.0.0.1", port: tunnel.port, user: "u", password: "p")
        let client = try nginx.secureClient { $0.proxies = .only(proxy) }
        #expect(try await client.get("hello", as: String.self) == "hello")
        #expect(tunnel.requests == ["CONNECT 127.0.0.1:\(nginx.securePort)"])
    }

    // MARK: Origins of credentials

    /// A proxy whose credentials cannot be sent is an error, and is not left out.
    @Test(arguments: ["a\nb", "a\u{0}b", "\u{7F}", "\r"])
    func aRequestMeantForAProxyNeverGoesDirectly(text: String) async throws {
        try await withServer(Self.hello) { server, _ in
            for kind in [Proxy.Kind.http, .https, .socks5, .socks5WithLocalNames] {
                for (user, password) in [(text, "p"), ("u", text)] {
                    let proxy = Proxy(kind, host: "127.0.0.1", port: 1, user: user, password: password)
                    let session = Session(configuration: Self.proxied(.only(proxy)))
                    let error = try await failure { try await session.response(for: Request(.get, url: server.url)) }
                    #expect(error.kind == .invalidRequest && error.reason.contains("control character"))
                    #expect(throws: NetworkError.self) { try session.configuration.check() }
                }
            }
            #expect(server.counts.requestsReceived == 0)
        }
    }

    /// Runs in a process of its own, because the environment is read once.
    @Test func aMalformedProxyOfTheEnvironmentIsAnErrorOfTheConfiguration() async {
        await #expect(processExitsWith: .success) {
            await CheckFailure.report {
                unsafe setenv("https_proxy", "http://zuser:s3cret@127.0.0.1:99999", 1)
                let session = Session(configuration: .test { $0.proxies = .environment })
                var errors: [NetworkError] = []
                do {
                    try session.configuration.check()
                } catch let error as NetworkError {
                    errors.append(error)
                }
                do {
                    _ = try await session.response(for: Request(.get, "http://127.0.0.1:1/"))
                } catch let error as NetworkError {
                    errors.append(error)
                }
                for error in errors {
                    let text = "\(error)"
                    guard error.kind == .invalidRequest, text.contains("the environment's proxy for https"),
                        !text.contains("s3cret"), !text.contains("zuser")
                    else { throw CheckFailure(description: text) }
                }
                guard errors.count == 2 else { throw CheckFailure(description: "\(errors.count) errors") }
            }
        }
    }

    private final class Generous: CredentialProvider {
        let asked = Lock<[AuthenticationChallenge.Source]>([])
        @concurrent func credential(
            for challenge: AuthenticationChallenge, of request: Request
        ) async throws -> Credential? {
            asked.withLock { $0.append(challenge.source) }
            return .user("u", password: "hunter2")
        }
    }

    private static func proxyThatAsks(_ exchange: LoopbackServer.Exchange) throws {
        guard let field = exchange.request["Proxy-Authorization"] else {
            return try exchange.respond(status: 407, headers: [("Proxy-Authenticate", "Basic realm=x")])
        }
        try exchange.respond(text: field)
    }

    @Test func onlyTheProxyInUseReceivesProxyCredentials() async throws {
        let tunnel = try Tunnel()
        defer { tunnel.stop() }
        try await withServer(Self.proxyThatAsks) { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: server.proxyPort)
            let provider = Generous()
            func session(_ proxies: Session.Configuration.Proxies) -> Session {
                Session(
                    configuration: .test {
                        $0.proxies = proxies
                        $0.credentials = provider
                    })
            }
            let socks = Proxy(.socks5, host: "127.0.0.1", port: tunnel.port)
            let others: [Session.Configuration.Proxies] = [
                .none, .only(proxy, except: ["127.0.0.1"]), .schemes(http: nil, https: proxy), .only(socks),
            ]
            for proxies in others {
                let error = try await failure {
                    try await session(proxies).response(for: Request(.get, url: server.url))
                }
                #expect(error.status == 407)
            }
            #expect(provider.asked.withLock { $0 } == [] && server.counts.requestsReceived == others.count)
            let response = try await session(.only(proxy)).response(
                for: Request(.get, "http://example.test/"), decode: .string)
            #expect(response.value == "Basic " + Data("u:hunter2".utf8).base64EncodedString())
            #expect(provider.asked.withLock { $0 } == [.proxy])
        }
    }

    @Test func proxyHeadersAreNotSentToServers() async throws {
        try await withServer { exchange in
            try exchange.respond(text: exchange.request["Proxy-Authorization"] ?? "none")
        } test: { server, _ in
            let proxy = Proxy(.http, host: "127.0.0.1", port: server.proxyPort)
            var request = try Request(.get, url: server.url, headers: ["proxy-authorization": "Basic x"])
            for (proxies, expected) in [
                (Session.Configuration.Proxies.none, "none"), (.only(proxy, except: ["127.0.0.0/8"]), "none"),
                (.only(proxy), "Basic x"), (.schemes(http: nil, https: proxy), "none"),
            ] {
                let session = Session(configuration: Self.proxied(proxies))
                #expect(try await session.response(for: request, decode: .string).value == expected)
            }
            // The headers of the session are the same for both; their destinations differ.
            request = try Request(.get, "http://other.test/")
            let session = Session(
                configuration: .test {
                    $0.proxies = .only(proxy, except: ["127.0.0.1"])
                    $0.headers = ["Proxy-Authorization": "Basic x"]
                })
            for _ in 0..<2 {
                #expect(try await session.response(for: request, decode: .string).value == "Basic x")
                let direct = try await session.response(for: Request(.get, url: server.url), decode: .string)
                #expect(direct.value == "none")
            }
        }
    }

    @Test("a server behind a tunnel receives its own credentials only", .enabled(if: Nginx.isExpected, Nginx.absence))
    func serverBehindATunnelIsNotAProxy() async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        let tunnel = try Tunnel(user: "u", password: "p")
        defer { tunnel.stop() }
        let provider = Generous()
        let client = try nginx.secureClient {
            $0.proxies = .only(Proxy(.http, host: "127.0.0.1", port: tunnel.port, user: "u", password: "p"))
            $0.credentials = provider
        }
        let error = try await failure { try await client.get("407") }
        #expect(error.status == 407 && provider.asked.withLock { $0 } == [])
        var request = try client.request(.get, "proxy-authorization")
        request.headers["Proxy-Authorization"] = "Basic x"
        #expect(try await client.session.response(for: request, decode: .string).value == "<>")
    }

    @Test func unixSocketReplacesTheProxy() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        let proxy = Proxy(.http, host: "127.0.0.1", port: 1, user: "u", password: "p")
        try await withServer(on: .unix(path: path), configuration: Self.proxied(.only(proxy))) { exchange in
            let login = exchange.request["Proxy-Authorization"] ?? "none"
            try exchange.respond(text: "\(exchange.request.target) \(login)")
        } test: { _, client in
            let text = try await client.get("/x", as: String.self)
            #expect(text == "/x none")
        }
    }

    // MARK: Addresses

    @Test func hostIsReachedAtItsFixedAddress() async throws {
        try await withServer(Self.hello) { server, _ in
            let session = Session(
                configuration: .test { $0.hostAddresses = ["api.test:\(server.proxyPort)": ["127.0.0.1"]] })
            let response = try await session.response(for: Request(.get, "http://api.test:\(server.proxyPort)/"))
            #expect(response.head.status == 200)
            #expect(response.head.headers["X-Host"] == "api.test:\(server.proxyPort)")
            // The addresses apply to this session only.
            let other = Session(configuration: .test { $0.timeouts.connect = .seconds(40) })
            let error = try await failure {
                try await other.response(for: Request(.get, "http://api.test:\(server.proxyPort)/"))
            }
            #expect(error.kind == .dns)
        }
    }

    @Test func connectionsUseTheLocalAddress() async throws {
        let tunnel = try Tunnel()
        defer { tunnel.stop() }
        let proxy = Proxy(.socks5, host: "127.0.0.1", port: tunnel.port)
        try await withServer(Self.hello) { server, _ in
            for endpoint in [Session.Configuration.LocalEndpoint.address("127.0.0.9"), .interface("lo")] {
                let session = Session(
                    configuration: .test {
                        $0.proxies = .only(proxy)
                        $0.localEndpoint = endpoint
                    })
                let response = try await session.response(for: Request(.get, url: server.url))
                #expect(response.head.status == 200)
            }
            #expect(tunnel.peers == ["127.0.0.9", "127.0.0.1"])
            let nowhere = Session(configuration: .test { $0.localEndpoint = .interface("tern0") })
            let error = try await failure { try await nowhere.response(for: Request(.get, url: server.url)) }
            #expect(error.kind == .connectionFailed)
        }
    }

    @Test(
        arguments: [
            ["host": []], ["host": ["name"]], ["host:x": ["1.2.3.4"]], ["": ["1.2.3.4"]], ["a:1:2": ["::1"]],
            ["host": ["1.2.3.4,5.6.7.8"]],
        ] as [[String: [String]]])
    func invalidAddressIsRefusedBeforeSending(hosts: [String: [String]]) async throws {
        let session = Session(configuration: .test { $0.hostAddresses = hosts })
        let error = try await failure { try await session.response(for: Request(.get, "http://127.0.0.1:1/")) }
        #expect(error.kind == .invalidRequest)
    }

    @Test func invalidProxyConfigurationsAreRefused() async throws {
        let wrong: [(inout Session.Configuration) -> Void] = [
            { $0.localEndpoint = .address("here") }, { $0.localEndpoint = .interface("") },
            { $0.proxies = .only(Proxy(.http, host: "", port: 1)) },
            { $0.proxies = .only(Proxy(.http, host: "a/b@c", port: 1)) },
            { $0.proxies = .schemes(http: nil, https: Proxy(.socks5, host: "a", port: 0)) },
            { $0.maximumConnectionsPerHost = 0 }, { $0.maximumConnections = -1 }, { $0.maximumHeadSize = 0 },
            { $0.maximumBodySize = -1 }, { $0.maximumDecompressedSize = -1 }, { $0.errorBodyLimit = .min },
            { $0.maximumRedirects = -1 }, { $0.timeouts.connect = .milliseconds(-1) },
            { $0.timeouts.idle = .seconds(-1) }, { $0.timeouts.total = .nanoseconds(-1) },
            { $0.idleConnectionLifetime = .seconds(-1) },
        ]
        for change in wrong {
            let session = Session(configuration: .test(change))
            let error = try await failure { try await session.response(for: Request(.get, "http://127.0.0.1:1/")) }
            #expect(error.kind == .invalidRequest && error.reason.contains("configuration"))
            #expect(throws: NetworkError.self) { try session.configuration.check() }
        }
    }
}

extension LoopbackServer {
    fileprivate var proxyPort: UInt16 { UInt16(url.port ?? 0) }
}
#endif
