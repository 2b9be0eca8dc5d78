#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

@Suite("WebSocket: StubTransport", .timeLimit(.minutes(1)))
struct StubWebSocketTests {
    private func client(_ stub: StubTransport) throws -> Client {
        try Client(baseURL: "https://api.example.com/v1", session: Session(stub: stub))
    }

    /// The example of `StubTransport.WebSocket`.
    @Test func messagesGoBothWays() async throws {
        let stub = StubTransport([
            "GET /v1/live": .webSocket { socket in
                try await socket.send("welcome")
                while let message = try await socket.receive() { try await socket.send(message) }
            }
        ])
        let socket = try await client(stub).webSocket("live", headers: ["Authorization": "Bearer secret"])
        #expect(try await socket.receive() == .text("welcome"))
        try await socket.send("hello")
        #expect(try await socket.receive() == .text("hello"))
        // In frames of its own, and longer than a piece of the stub.
        let large = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try await socket.send(large)
        #expect(try await socket.receive() == .binary(large))
        try await socket.close(code: .goingAway, reason: "done")
        let server = try #require(stub.webSockets.first)
        #expect(server.received == [.text("hello"), .binary(large)])
        #expect(server.closeCode == 1001 && server.closeReason == "done")
        #expect(server.call.headers["Authorization"] == "Bearer secret" && server.call.path == "/v1/live")
        #expect(stub.calls.count == 1 && stub.webSockets.count == 1)
        #expect(socket.closure?.code == .goingAway)
    }

    @Test func scriptThatReturnsClosesTheSocket() async throws {
        let stub = StubTransport { _ in
            .webSocket(subprotocol: "chat", headers: ["X-Server": "1"]) { socket in try await socket.send(Data([1, 2]))
            }
        }
        let socket = try await client(stub).webSocket("live", protocols: ["chat", "other"])
        #expect(socket.subprotocol == "chat" && socket.response.headers["X-Server"] == "1")
        var messages: [WebSocket.Message] = []
        for try await message in socket.messages { messages.append(message) }
        #expect(messages == [.binary(Data([1, 2]))])
        #expect(socket.closure?.code == .normalClosure)
        let server = try #require(stub.webSockets.first)
        await server.waitForEnd()
        #expect(server.closeCode == 1000)
    }

    @Test func serverClosesWithItsOwnCode() async throws {
        let stub = StubTransport { _ in
            .webSocket { socket in
                try await socket.close(code: 4_001, reason: "no more")
                try await socket.close(code: 1_000)
                #expect(try await socket.receive() == nil)
            }
        }
        let socket = try await client(stub).webSocket("live")
        #expect(try await socket.receive() == nil)
        #expect(socket.closure?.code.rawValue == 4_001 && socket.closure?.reason == "no more")
    }

    @Test func pingsAreAnsweredWhileTheScriptReceives() async throws {
        let stub = StubTransport { _ in .webSocket { try await $0.echoMessages() } }
        let socket = try await client(stub).webSocket("live")
        #expect(try await socket.ping() >= .zero)
        try await socket.send("after")
        #expect(try await socket.receive() == .text("after"))
        try await socket.close()
    }

    @Test func fragmentsAreJoinedAndWrongFramesRefused() async throws {
        let stub = StubTransport { _ in
            .webSocket { socket in
                try await socket.send(frame: .text("frag", isFinal: false))
                try await socket.send(frame: .ping([7]))
                try await socket.send(frame: .continuation(Array("ments".utf8)))
                try await socket.send(frame: LoopbackServer.WebSocketFrame(opcode: 1, payload: [65], isMasked: true))
                #expect(try await socket.receive() == nil)
            }
        }
        let socket = try await client(stub).webSocket("live")
        #expect(try await socket.receive() == .text("fragments"))
        let error = await #expect(throws: NetworkError.self) { try await socket.receive() }
        #expect(error?.kind == .malformedResponse)
        let server = try #require(stub.webSockets.first)
        await server.waitForEnd()
        #expect(server.closeCode == 1002)
    }

    @Test func anyOtherAnswerRefusesTheHandshake() async throws {
        let stub = StubTransport { call in
            call.path == "/v1/closed" ? .text("come back later", status: 503) : .text("not a socket")
        }
        let client = try client(stub)
        let refused = await #expect(throws: NetworkError.self) { try await client.webSocket("closed") }
        #expect(refused?.kind == .status && refused?.response?.status == 503)
        #expect(refused?.body == Data("come back later".utf8))
        let plain = await #expect(throws: NetworkError.self) { try await client.webSocket("open") }
        #expect(plain?.kind == .status && plain?.response?.status == 200)
        #expect(stub.webSockets.isEmpty && stub.calls.count == 2)
    }

    @Test func wrongKeyIsRefused() async throws {
        let stub = StubTransport { _ in .webSocket(headers: ["Sec-WebSocket-Accept": "wrong"]) { _ in } }
        let client = try client(stub)
        await #expect(throws: NetworkError.self) { try await client.webSocket("live") }
    }

    @Test func failureCutsTheConnection() async throws {
        let stub = StubTransport { _ in
            .webSocket { socket in
                try await socket.send("last words")
                throw StubTransport.Failure(.connectionLost, "the cable was pulled")
            }
        }
        let socket = try await client(stub).webSocket("live")
        #expect(try await socket.receive() == .text("last words"))
        let error = await #expect(throws: NetworkError.self) { try await socket.receive() }
        #expect(error?.kind == .connectionLost)
        let server = try #require(stub.webSockets.first)
        await server.waitForEnd()
        #expect(server.closeCode == nil)
        await #expect(throws: StubTransport.Failure.self) { try await server.send("too late") }
    }

    @Test func ordinaryCallToASocketFails() async throws {
        let stub = StubTransport { _ in .webSocket { _ in } }
        let client = try client(stub)
        let error = await #expect(throws: NetworkError.self) { try await client.get("live") }
        #expect(error?.kind == .unsupported && error?.reason.contains("GET /v1/live") == true)
    }

    @Test func cancellingTheClientEndsTheScript() async throws {
        let ended = Waiter<Void>()
        let stub = StubTransport { _ in
            .webSocket { socket in
                defer { ended.resume() }
                _ = try await socket.receive()
            }
        }
        let socket = try await client(stub).webSocket("live")
        socket.cancel()
        await ended.wait()
        #expect(stub.webSockets.first?.received.isEmpty == true)
    }

    @Test func reconnectionIsTestedWithoutAServer() async throws {
        let stub = StubTransport { call in
            call.index == 0
                ? .webSocket { socket in
                    try await socket.send("first")
                    throw StubTransport.Failure(.connectionLost)
                }
                : .webSocket { socket in
                    #expect(try await socket.receive() == .text("subscribe"))
                    try await socket.send("second")
                }
        }
        let client = try client(stub)
        let first = try await client.webSocket("live")
        #expect(try await first.receive() == .text("first"))
        _ = await #expect(throws: NetworkError.self) { try await first.receive() }
        let second = try await client.webSocket("live")
        try await second.send("subscribe")
        #expect(try await second.receive() == .text("second"))
        #expect(try await second.receive() == nil)
        for server in stub.webSockets { await server.waitForEnd() }
        #expect(stub.webSockets.map(\.received) == [[], [.text("subscribe")]])
    }
}
#endif
