#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// The ways of live connections to their servers: proxies of each kind, and TLS.
@Suite("Live connections: proxies and trust", .serialized, .timeLimit(.minutes(1)))
struct LiveWayTests {
    private func withServer(_ test: (LoopbackServer) async throws -> Void) async throws {
        let server = try LoopbackServer { try LiveConnection.greet($0, $0.request.target) }
        defer { server.stop() }
        try await test(server)
    }

    private func session(_ proxy: Proxy) -> Session { Session(configuration: .test { $0.proxies = .only(proxy) }) }

    @Test(arguments: LiveConnection.allCases, [Proxy.Kind.socks5, .socks5WithLocalNames])
    func aSOCKSProxyIsPassed(kind: LiveConnection, proxy: Proxy.Kind) async throws {
        try await withServer { server in
            let tunnel = try Tunnel(user: "u", password: "p")
            defer { tunnel.stop() }
            let session = session(Proxy(proxy, host: "127.0.0.1", port: tunnel.port, user: "u", password: "p"))
            #expect(try await kind.greeting(session, "http://localhost:\(server.port)/a") == "/a")
            let name = proxy == .socks5 ? "localhost" : "127.0.0.1"
            #expect(tunnel.requests == ["SOCKS \(name):\(server.port)"])
            await session.invalidateAndCancel()
        }
    }

    /// A socket passes an HTTP proxy through a tunnel. An event stream is an ordinary request, which the proxy
    /// receives.
    @Test func anHTTPProxyTunnelsSocketsAndReceivesEventStreams() async throws {
        try await withServer { server in
            let tunnel = try Tunnel()
            defer { tunnel.stop() }
            let tunneled = session(Proxy(.http, host: "127.0.0.1", port: tunnel.port))
            #expect(try await LiveConnection.webSocket.greeting(tunneled, "http://127.0.0.1:\(server.port)/a") == "/a")
            #expect(tunnel.requests == ["CONNECT 127.0.0.1:\(server.port)"])
            // The server is the proxy, which sees the whole URL.
            let forwarded = session(Proxy(.http, host: "127.0.0.1", port: UInt16(server.port)))
            #expect(try await LiveConnection.events.greeting(forwarded, "http://a.test/b") == "http://a.test/b")
            for session in [tunneled, forwarded] { await session.invalidateAndCancel() }
        }
    }

    @Test(arguments: LiveConnection.allCases) func aRefusedTunnelIsAnErrorOfTheProxy(kind: LiveConnection) async throws
    {
        try await withServer { server in
            let tunnel = try Tunnel(user: "u", password: "p")
            defer { tunnel.stop() }
            let session = session(Proxy(.socks5, host: "127.0.0.1", port: tunnel.port, user: "u", password: "wrong"))
            let error = try await failure { try await kind.greeting(session, "http://127.0.0.1:\(server.port)/") }
            #expect(error.kind == .proxy)
            #expect(!"\(error)".contains("wrong"))
            #expect(server.counts.acceptedConnections == 0)
        }
    }

    // MARK: TLS

    /// Greets over TLS, with a certificate of the test's own authority.
    private static let program = #"""
        import asyncio, ssl, sys
        from aiohttp import web

        async def greet(request):
            if request.headers.get("Upgrade"):
                socket = web.WebSocketResponse()
                await socket.prepare(request)
                await socket.send_str("over TLS")
                async for message in socket:
                    pass
                return socket
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(b"data: over TLS\n\n")
            await asyncio.sleep(3600)

        async def main():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1] + "/direct.pem", sys.argv[1] + "/direct.key")
            app = web.Application()
            app.router.add_get("/", greet)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
            await site.start()
            print("port", site._server.sockets[0].getsockname()[1], "end", flush=True)
            await asyncio.Future()

        asyncio.run(main())
        """#

    @Test(.enabled(if: Venv.isExpected, Venv.absence)) func onlyATrustedServerIsGreeted() async throws {
        try await inTestFolder { folder in
            let chain = try TestChain(in: folder)
            try folder.write(Self.program, to: "server.py")
            let output = "\(folder.path)/server.out"
            let child = try Child([Venv.program("python"), "\(folder.path)/server.py", folder.path], output: output)
            let port = try await Child.find(in: output, within: 30) { text in
                text.firstMatch(of: /port (\d+) end/).map { String($0.output.1) }
            }
            let tunnel = try Tunnel()
            defer { tunnel.stop() }
            let root = chain.path("root.pem")
            let ways: [(name: String, session: Session, isTrusted: Bool)] = [
                ("own authority", Session(configuration: .test { $0.authorities = .file(root) }), true),
                (
                    "own authority through a tunnel",
                    Session(
                        configuration: .test {
                            $0.authorities = .file(root)
                            $0.proxies = .only(Proxy(.http, host: "127.0.0.1", port: tunnel.port))
                        }), true
                ),
                ("authorities of the system", Session(configuration: .test()), false),
                (
                    "another authority",
                    Session(configuration: .test { $0.authorities = .file(chain.path("stranger.pem")) }), false
                ),
            ]
            for kind in LiveConnection.allCases {
                for way in ways {
                    let url = "https://127.0.0.1:\(port)/"
                    if way.isTrusted {
                        #expect(try await kind.greeting(way.session, url) == "over TLS", "\(kind) with \(way.name)")
                    } else {
                        let error = try await failure { try await kind.greeting(way.session, url) }
                        #expect(error.kind == .untrustedServer, "\(kind) with \(way.name)")
                    }
                }
            }
            #expect(tunnel.requests == Array(repeating: "CONNECT 127.0.0.1:\(port)", count: 2))
            for way in ways { await way.session.invalidateAndCancel() }
            withExtendedLifetime(child) {}
        }
    }
}
#endif
