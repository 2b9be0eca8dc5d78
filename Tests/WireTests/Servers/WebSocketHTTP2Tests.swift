#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import Testing

/// Sockets on streams of HTTP/2 connections (RFC 8441), with hypercorn as the server.
@Suite(
    "WebSocket over HTTP/2: hypercorn", .serialized, .enabled(if: Venv.isExpected, Venv.absence),
    .timeLimit(.minutes(1)))
struct WebSocketHTTP2Tests {
    /// Sends the version of HTTP and then each message back. `/close` closes with 4000, `/refused` answers with 403,
    /// `/private` wants Basic, `/flood` sends 64 MiB.
    private static let program = #"""
        async def app(scope, receive, send):
            if scope["type"] == "lifespan":
                while True:
                    message = await receive()
                    await send({"type": message["type"] + ".complete"})
                    if message["type"] == "lifespan.shutdown":
                        return
            if scope["type"] == "http":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                return await send({"type": "http.response.body", "body": scope["http_version"].encode()})
            await receive()
            path, fields = scope["path"], dict(scope["headers"])
            if path == "/refused":
                return await send({"type": "websocket.close"})
            if path == "/private" and fields.get(b"authorization") != b"Basic dTpw":
                head = [(b"www-authenticate", b'Basic realm="r"')]
                await send({"type": "websocket.http.response.start", "status": 401, "headers": head})
                return await send({"type": "websocket.http.response.body", "body": b"who?"})
            protocol = "chat" if "chat" in scope["subprotocols"] else None
            await send({"type": "websocket.accept", "subprotocol": protocol})
            keys = [name for name in fields if name in (b"sec-websocket-key", b"upgrade", b"connection")]
            await send({"type": "websocket.send", "text": scope["http_version"] + " " + str(len(keys))})
            if path == "/close":
                return await send({"type": "websocket.close", "code": 4000, "reason": "bye"})
            if path == "/flood":
                for _ in range(256):
                    await send({"type": "websocket.send", "bytes": bytes(256 << 10)})
            while True:
                message = await receive()
                if message["type"] == "websocket.disconnect":
                    return
                await send({"type": "websocket.send", **{k: message[k] for k in ("text", "bytes") if message.get(k) is not None}})
        """#

    private func withServer(_ test: (_ session: Session, _ origin: String) async throws -> Void) async throws {
        try await inTestFolder { folder in
            _ = try TestChain(in: folder)
            try folder.write(Self.program, to: "peer.py")
            let port = try LoopbackPort.free()
            let path = folder.path
            let child = try Child(
                [
                    "env", "PYTHONPATH=\(path)", Venv.program("python"), "-m", "hypercorn", "--workers", "0",
                    "--keep-alive",
                    "60", "--bind",
                    "127.0.0.1:\(port)", "--certfile", "\(path)/direct.pem", "--keyfile", "\(path)/direct.key",
                    "peer:app",
                ], output: "\(path)/server.out")
            try #require(await LoopbackPort.wait([port]))
            let session = Session(configuration: .test { $0.authorities = .file("\(path)/root.pem") })
            try await test(session, "https://127.0.0.1:\(port)")
            await session.invalidateAndCancel()
            withExtendedLifetime(child) {}
        }
    }

    /// Makes the HTTP/2 connection of the origin known to the session.
    private func connect(_ session: Session, _ origin: String) async throws {
        let response = try await session.response(for: Request(.get, "\(origin)/"), decode: BodyDecoder.string)
        #expect(response.value == "2" && response.metrics.httpVersion == .http2)
    }

    @Test func aSocketIsAStreamOfTheOriginsConnection() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            let socket = try await session.webSocket("\(origin)/echo", protocols: ["other", "chat"])
            #expect(socket.response.status == 200 && socket.response.version == .http2)
            #expect(socket.subprotocol == "chat")
            // No field of a handshake over HTTP/1 was sent.
            #expect(try await socket.receive() == .text("2 0"))
            for size in [0, 1, 125, 126, 65_535, 65_536, 3 << 20] {
                let data = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* $0) })
                try await socket.send(data)
                #expect(try await socket.receive() == .binary(data))
            }
            #expect(try await socket.ping() > .zero)
            // Requests go on beside it.
            let response = try await session.response(for: Request(.get, "\(origin)/"))
            #expect(response.metrics.isReusedConnection)
            try await socket.close(reason: "done")
            #expect(socket.closure == WebSocket.Closure(code: .normalClosure, reason: "done", isClean: true))
            #expect(socket.task.state == .completed)
        }
    }

    @Test func aSocketWithoutAKnownConnectionHasOneOfItsOwn() async throws {
        try await withServer { session, origin in
            let socket = try await session.webSocket("\(origin)/echo")
            #expect(socket.response.status == 101 && socket.response.version == .http11)
            #expect(try await socket.receive() == .text("1.1 3"))
            try await socket.close()
        }
    }

    @Test func manySocketsAndRequestsShareAConnection() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<40 {
                    group.addTask {
                        let socket = try await session.webSocket("\(origin)/echo")
                        #expect(try await socket.receive() == .text("2 0"))
                        for round in 0..<10 {
                            let text = String(repeating: "\(index) \(round) ", count: 1 + index * 20)
                            try await socket.send(text)
                            #expect(try await socket.receive() == .text(text))
                        }
                        try await socket.close()
                        #expect(socket.closure?.isClean == true)
                    }
                }
                try await group.waitForAll()
            }
            let response = try await session.response(for: Request(.get, "\(origin)/"))
            #expect(response.metrics.isReusedConnection)
        }
    }

    @Test func compressionIsAgreedOn() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            var options = WebSocket.Options()
            options.compression = WebSocket.Compression()
            let socket = try await session.webSocket("\(origin)/echo", options: options)
            #expect(socket.isCompressed)
            #expect(try await socket.receive() == .text("2 0"))
            let text = String(repeating: "compressed ", count: 10_000)
            try await socket.send(text)
            #expect(try await socket.receive() == .text(text))
            #expect(await socket.metrics.sentBytes < 10_000)
            try await socket.close()
        }
    }

    @Test func theServersRefusalsAndChallengesAreThoseOfHTTP() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            let refused = try await failure { try await session.webSocket("\(origin)/refused") }
            #expect(refused.status == 403 && refused.kind == .status)
            var request = try Request(.get, "\(origin)/private")
            let challenged = try await failure { [request] in try await session.webSocket(for: request) }
            #expect(challenged.status == 401)
            #expect(String(decoding: challenged.body, as: UTF8.self) == "who?")
            request.credentials = try FixedCredentials([origin: .user("u", password: "p")])
            let socket = try await session.webSocket(for: request)
            #expect(try await socket.receive() == .text("2 0"))
            try await socket.close()
        }
    }

    @Test func theServersCloseCodeArrives() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            let socket = try await session.webSocket("\(origin)/close")
            #expect(try await socket.receive() == .text("2 0"))
            #expect(try await socket.receive() == nil)
            for await _ in socket.states {}
            let code = WebSocket.CloseCode(rawValue: 4000)
            #expect(socket.closure == WebSocket.Closure(code: code, reason: "bye", isClean: true))
        }
    }

    /// The window of the stream stops a server whose messages nobody reads, and other streams go on.
    @Test func aSlowReaderStopsItsStreamAlone() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            let socket = try await session.webSocket("\(origin)/flood")
            #expect(try await socket.receive() == .text("2 0"))
            var last: Int64 = -1
            var stable = 0
            while stable < 20 {
                let now = await socket.metrics.receivedBytes
                stable = now == last && now > 1 << 20 ? stable + 1 : 0
                last = now
                let response = try await session.response(for: Request(.get, "\(origin)/"))
                #expect(response.metrics.isReusedConnection)
            }
            #expect(last < 16 << 20, "received \(last) bytes")
            for _ in 0..<256 { #expect(try await socket.receive()?.byteCount == 256 << 10) }
            try await socket.close()
        }
    }

    @Test func cancellingEndsTheStreamAlone() async throws {
        try await withServer { session, origin in
            try await connect(session, origin)
            let socket = try await session.webSocket("\(origin)/echo")
            let other = try await session.webSocket("\(origin)/echo")
            #expect(try await socket.receive() == .text("2 0"))
            #expect(try await other.receive() == .text("2 0"))
            socket.cancel()
            let error = try await failure { try await socket.receive() }
            #expect(error.kind == .cancelled)
            try await other.send("goes on")
            #expect(try await other.receive() == .text("goes on"))
            try await other.close()
            let response = try await session.response(for: Request(.get, "\(origin)/"))
            #expect(response.metrics.isReusedConnection)
        }
    }
}
#endif
