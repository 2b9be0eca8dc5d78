#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Calls nginx through proxies of several authors.
@Suite(
    "proxies of other authors", .serialized, .enabled(if: Nginx.isExpected, Nginx.absence), .timeLimit(.minutes(1)))
struct ProxyProgramTests {
    private static let all = ProxyProgram.Kind.allCases
    private static let kinds = all.filter { Programs.areExpected($0.programs) }
    private static let missing = all.filter { !kinds.contains($0) }.map(\.rawValue)
    private static let pattern = LoopbackServer.Pattern(count: 3 << 20, seed: 21)

    @Test(.enabled(if: missing.isEmpty, "not installed: \(missing); `make test` installs them"))
    func everyProxyIsInstalled() { #expect(Self.kinds == Self.all) }

    /// Starts a proxy and a server, and runs a test with them.
    private func withProxy(
        _ kind: ProxyProgram.Kind, _ test: (Nginx, ProxyProgram) async throws -> Void
    ) async throws {
        let nginx = try await Nginx()
        defer { nginx.stop() }
        try nginx.makeFile("big", Self.pattern.bytes())
        let proxy = try await ProxyProgram(kind)
        defer { proxy.stop() }
        try await test(nginx, proxy)
    }

    /// A client of the server with TLS, which trusts the authorities of the proxy and of the server.
    private func secureClient(
        _ nginx: Nginx, through program: ProxyProgram, as proxy: Proxy, http2: Bool = true
    ) throws -> Client {
        var authorities = try Data(contentsOf: URL(filePath: nginx.authorityFile))
        if program.kind.proxyKind == .https { authorities += try program.authority }
        return try nginx.secureClient {
            $0.authorities = .pem(authorities)
            $0.proxies = .only(proxy)
            $0.allowsHTTP2 = http2
        }
    }

    private func plainClient(_ nginx: Nginx, through program: ProxyProgram, as proxy: Proxy) throws -> Client {
        let authority: Data? = program.kind.proxyKind == .https ? try program.authority : nil
        return try nginx.plainClient {
            $0.proxies = .only(proxy)
            if let authority { $0.authorities = .pem(authority) }
        }
    }

    @Test(arguments: kinds) func tunnelCarriesBothVersions(kind: ProxyProgram.Kind) async throws {
        try await withProxy(kind) { nginx, proxy in
            for http2 in [true, false] {
                let client = try secureClient(nginx, through: proxy, as: proxy.proxy(), http2: http2)
                let first = try await client.response(for: client.request(.get, "connection"), as: String.self)
                #expect(first.value.hasSuffix(http2 ? "HTTP/2.0" : "HTTP/1.1"))
                #expect(!first.metrics.isReusedConnection)
                let second = try await client.response(for: client.request(.get, "connection"), as: String.self)
                #expect(second.value == first.value && second.metrics.isReusedConnection)
                #expect(Self.pattern.matches(try await client.get("files/big")))
                #expect(try await client.post("echo", body: .text("x"), as: String.self).hasSuffix(" x"))
                try await checkMany(client)
            }
        }
    }

    @Test(arguments: kinds) func plainRequestsAreForwarded(kind: ProxyProgram.Kind) async throws {
        try await withProxy(kind) { nginx, proxy in
            let client = try plainClient(nginx, through: proxy, as: proxy.proxy())
            let first = try await client.response(for: client.request(.get, "hello"), as: String.self)
            #expect(first.value == "hello")
            #expect(Self.pattern.matches(try await client.get("files/big")))
            let bytes = Self.pattern.bytes()
            let parts = AsyncStream { continuation in
                for start in stride(from: 0, to: bytes.count, by: 1 << 18) {
                    continuation.yield(Data(bytes[start..<start + 1 << 18]))
                }
                continuation.finish()
            }
            try await client.put("put/known", body: .data(Data(bytes)))
            // tinyproxy 1.11 does not forward chunked requests.
            let names = kind == .tinyproxy || kind == .stunnelAndTinyproxy ? ["known"] : ["known", "unknown"]
            if names.count > 1 { try await client.put("put/unknown", body: .stream(parts)) }
            for name in names {
                let stored = try Data(contentsOf: nginx.folder.appending(path: "put/\(name)"))
                #expect(stored.count == bytes.count && Self.pattern.matches(stored), "\(name)")
            }
            #expect(try await client.head("files/big").headers["Content-Length"] == "\(bytes.count)")
            #expect(try await failure { try await client.get("missing") }.status == 404)
            try await checkMany(client)
        }
    }

    private func checkMany(_ client: Client) async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<30 { group.addTask { try await client.get("hello", as: String.self) == "hello" } }
            for try await isRight in group { #expect(isRight) }
        }
    }

    @Test(arguments: kinds) func wrongPasswordReachesNoServer(kind: ProxyProgram.Kind) async throws {
        try await withProxy(kind) { nginx, proxy in
            let wrong = proxy.proxy(password: "hunter2")
            let secure = try secureClient(nginx, through: proxy, as: wrong)
            let authorities: Session.Configuration.Authorities =
                kind.proxyKind == .https ? .pem(try proxy.authority) : .system
            let tunnelled = try await failure { try await secure.post("echo", body: .text("x")) }
            #expect(tunnelled.kind == .proxy && tunnelled.metrics?.sentBytes == 0, "\(tunnelled)")
            #expect(!"\(tunnelled)".contains("hunter2"))
            let plain = try nginx.plainClient {
                $0.proxies = .only(wrong)
                $0.authorities = authorities
            }
            let forwarded = try await failure { try await plain.get("hello") }
            // The refusal of an HTTP proxy is a response; tinyproxy's has the status of a server, 401.
            #expect(forwarded.kind == .proxy || forwarded.status == 407 || forwarded.status == 401, "\(forwarded)")
            #expect(!"\(forwarded)".contains("hunter2"))
            #expect(try nginx.accessLog().isEmpty)
        }
    }

    @Test(arguments: kinds) func restartOfTheProxyRepeatsAGet(kind: ProxyProgram.Kind) async throws {
        try await withProxy(kind) { nginx, proxy in
            let secure = try secureClient(nginx, through: proxy, as: proxy.proxy())
            let plain = try plainClient(nginx, through: proxy, as: proxy.proxy())
            try await secure.get("hello")
            try await plain.get("hello")
            try await proxy.restart()
            #expect(try await secure.get("hello", as: String.self) == "hello")
            #expect(try await plain.get("hello", as: String.self) == "hello")
            proxy.stop()
            let error = try await failure { try await secure.get("hello") }
            #expect(error.kind == .proxy || error.kind == .connectionRefused, "\(error)")
        }
    }

    /// The proxy is verified with the session's authorities, and the server behind it with its own policy.
    @Test(arguments: kinds.filter { $0.proxyKind == .https })
    func trustPolicyAppliesToTheServerBehindAnHTTPSProxy(kind: ProxyProgram.Kind) async throws {
        try await withProxy(kind) { nginx, proxy in
            let authority = try proxy.authority
            let root = try Certificate.load(pem: Data(contentsOf: URL(filePath: nginx.authorityFile)))[0]
            let client = try nginx.secureClient {
                $0.authorities = .pem(authority)
                $0.proxies = .only(proxy.proxy())
                $0.trust.standard = TrustPolicy(anchors: .only([root]))
            }
            #expect(try await client.get("hello", as: String.self) == "hello")

            let stranger = try Certificate.load(pem: authority)[0]
            let refused = try nginx.secureClient {
                $0.authorities = .pem(authority)
                $0.proxies = .only(proxy.proxy())
                $0.trust.standard = TrustPolicy(anchors: .only([stranger]))
            }
            let ofServer = try await failure { try await refused.get("hello") }
            #expect(ofServer.kind == .untrustedServer && ofServer.metrics?.sentBytes == 0, "\(ofServer)")

            let unknown = try nginx.secureClient {
                $0.proxies = .only(proxy.proxy())
                $0.trust.standard = TrustPolicy(anchors: .only([root]))
            }
            let ofProxy = try await failure { try await unknown.get("hello") }
            #expect(ofProxy.kind == .proxy || ofProxy.kind == .untrustedServer, "\(ofProxy)")
            #expect(try nginx.accessLog() == ["GET /hello HTTP/2.0 200"])
        }
    }
}
#endif
