#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernStreaming
import Testing

/// Sockets to servers of other authors: PyPI's `websockets` and `aiohttp`, and nginx before them.
@Suite(
    "WebSocket: servers of other authors", .serialized, .enabled(if: Venv.isExpected, Venv.absence),
    .timeLimit(.minutes(3)))
struct WebSocketPeerTests {
    /// Servers that send each message back. `/close` is closed with 4000 and a reason, `/protocol` sends the
    /// subprotocol.
    private static let program = #"""
        import asyncio, ssl, sys
        import websockets, aiohttp
        from aiohttp import web

        async def echo(ws):
            if ws.request.path == "/close":
                return await ws.close(4000, "bye")
            if ws.request.path == "/protocol":
                await ws.send(str(ws.subprotocol))
            async for message in ws:
                await ws.send(message)

        async def aio(request):
            ws = web.WebSocketResponse(protocols=["chat"], max_msg_size=0, compress=True)
            await ws.prepare(request)
            if request.path == "/close":
                await ws.close(code=4000, message=b"bye")
                return ws
            if request.path == "/protocol":
                await ws.send_str(str(ws.ws_protocol))
            async for message in ws:
                if message.type == aiohttp.WSMsgType.TEXT:
                    await ws.send_str(message.data)
                elif message.type == aiohttp.WSMsgType.BINARY:
                    await ws.send_bytes(message.data)
            return ws

        async def main():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1] + "/direct.pem", sys.argv[1] + "/direct.key")
            # A list of subprotocols would make the server refuse clients that offer none.
            choose = lambda ws, offered: "chat" if "chat" in offered else None
            options = dict(select_subprotocol=choose, max_size=None, ping_interval=None)
            plain = await websockets.serve(echo, "127.0.0.1", 0, **options)
            secure = await websockets.serve(echo, "127.0.0.1", 0, ssl=context, **options)
            app = web.Application()
            app.router.add_get("/{path:.*}", aio)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            ports = [server.sockets[0].getsockname()[1] for server in (plain, secure, site._server)]
            print("ports", *ports, "end", flush=True)
            await asyncio.Future()

        asyncio.run(main())
        """#

    /// The servers, and sessions that trust them.
    private final class Peers: Sendable {
        let folder: TestFolder
        let child: Child
        let urls: [String: String]
        let authorities: Session.Configuration.Authorities

        init(in folder: TestFolder) async throws {
            self.folder = folder
            _ = try TestChain(in: folder)
            try folder.write(WebSocketPeerTests.program, to: "servers.py")
            let output = "\(folder.path)/servers.out"
            child = try Child([Venv.program("python"), "\(folder.path)/servers.py", folder.path], output: output)
            let ports = try await Child.find(in: output, within: 30) { text in
                text.firstMatch(of: /ports (\d+) (\d+) (\d+) end/).map {
                    [$0.output.1, $0.output.2, $0.output.3].map(String.init)
                }
            }
            urls = [
                "websockets": "ws://127.0.0.1:\(ports[0])", "websockets over TLS": "wss://127.0.0.1:\(ports[1])",
                "aiohttp": "ws://127.0.0.1:\(ports[2])",
            ]
            authorities = .file("\(folder.path)/root.pem")
        }

        func session(_ change: (inout Session.Configuration) -> Void = { _ in }) -> Session {
            var configuration = Session.Configuration()
            configuration.authorities = authorities
            configuration.proxies = .none
            change(&configuration)
            return Session(configuration: configuration)
        }

        func url(_ name: String, _ path: String = "/") throws -> String { try #require(urls[name]) + path }
    }

    /// Exchanges messages of many sizes, with and without compression.
    private func converse(_ session: Session, _ url: String) async throws {
        let small = WebSocket.Compression(
            serverNoContextTakeover: true, clientNoContextTakeover: true, serverMaxWindowBits: 10,
            clientMaxWindowBits: 10)
        for compression in [nil, WebSocket.Compression(), small] {
            var options = WebSocket.Options()
            options.compression = compression
            let socket = try await session.webSocket(url, options: options)
            if compression == nil { #expect(!socket.isCompressed) }
            for size in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
                let text = String(repeating: "tern é ", count: size / 7 + 1)
                try await socket.send(text)
                #expect(try await socket.receive() == .text(text))
                let data = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* $0) })
                try await socket.send(data)
                #expect(try await socket.receive() == .binary(data))
            }
            #expect(try await socket.ping() > .zero)
            try await socket.close(reason: "done")
            #expect(socket.closure?.code == .normalClosure)
            #expect(socket.closure?.isClean == true)
        }
    }

    @Test func messagesComeBackFromEachServer() async throws {
        try await inTestFolder { folder in
            let peers = try await Peers(in: folder)
            for name in peers.urls.keys.sorted() {
                let session = peers.session()
                try await converse(session, peers.url(name))
                let chosen = try await session.webSocket(peers.url(name, "/protocol"), protocols: ["other", "chat"])
                #expect(chosen.subprotocol == "chat")
                #expect(try await chosen.receive() == .text("chat"))
                let closed = try await session.webSocket(peers.url(name, "/close"))
                #expect(try await closed.receive() == nil)
                for await _ in closed.states {}
                let expected = WebSocket.Closure(
                    code: WebSocket.CloseCode(rawValue: 4000), reason: "bye", isClean: true)
                #expect(closed.closure == expected)
                await session.invalidateAndCancel()
            }
        }
    }

    @Test func aProxyIsPassedThroughATunnel() async throws {
        try await inTestFolder { folder in
            let peers = try await Peers(in: folder)
            let tunnel = try Tunnel(user: "u", password: "p")
            defer { tunnel.stop() }
            let proxy = Proxy(.http, host: "127.0.0.1", port: tunnel.port, user: "u", password: "p")
            for name in ["websockets", "websockets over TLS"] {
                let session = peers.session { $0.proxies = .only(proxy) }
                let socket = try await session.webSocket(peers.url(name))
                try await socket.send("through")
                #expect(try await socket.receive() == .text("through"))
                try await socket.close()
            }
            #expect(tunnel.requests.count == 2)
            #expect(tunnel.requests.allSatisfy { $0.hasPrefix("CONNECT 127.0.0.1:") })
        }
    }

    @Test(.enabled(if: Programs.areExpected(["nginx"]))) func nginxPassesSocketsOn() async throws {
        try await inTestFolder { folder in
            let peers = try await Peers(in: folder)
            let port = try LoopbackPort.free()
            let target = try peers.url("websockets").replacing("ws://", with: "http://")
            let path = folder.path
            try folder.write(
                """
                daemon off; pid \(path)/nginx.pid; error_log stderr notice;
                events {}
                http {
                    access_log off;
                    client_body_temp_path \(path)/b; proxy_temp_path \(path)/p; fastcgi_temp_path \(path)/f;
                    uwsgi_temp_path \(path)/u; scgi_temp_path \(path)/s;
                    server {
                        listen 127.0.0.1:\(port);
                        location / {
                            proxy_pass \(target);
                            proxy_http_version 1.1;
                            proxy_set_header Upgrade $http_upgrade;
                            proxy_set_header Connection "upgrade";
                        }
                    }
                }
                """, to: "nginx.conf")
            let output = "\(path)/nginx.out"
            let nginx = try Child(["nginx", "-e", "stderr", "-p", path, "-c", "\(path)/nginx.conf"], output: output)
            _ = try await Child.find(in: output, within: 30) { $0.contains("start worker process ") ? true : nil }
            try await converse(peers.session(), "ws://127.0.0.1:\(port)/")
            withExtendedLifetime(nginx) {}
        }
    }
}
#endif
