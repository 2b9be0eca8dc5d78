import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// Sockets against a scripted server.
@Suite("WebSocket: a socket", .timeLimit(.minutes(1)))
struct WebSocketTests {
    typealias Frame = LoopbackServer.WebSocketFrame

    /// Runs a test with a socket to a server that has accepted the handshake.
    private func withSocket(
        _ options: WebSocket.Options = WebSocket.Options(), extensions: String? = nil,
        server script: @escaping @Sendable (LoopbackServer.Exchange) throws -> Void,
        test: (WebSocket) async throws -> Void
    ) async throws {
        let server = try LoopbackServer { exchange in
            try exchange.acceptWebSocket(extensions: extensions)
            try script(exchange)
        }
        defer { server.stop() }
        let session = Session()
        let socket = try await session.webSocket(server.url.absoluteString, options: options)
        try await test(socket)
        socket.cancel()
        await session.drained()
    }

    @Test func messagesGoBothWays() async throws {
        try await withSocket {
            try $0.echoMessages()
        } test: { socket in
            try await socket.send("hello")
            try await socket.send(Data([1, 2, 3]))
            #expect(try await socket.receive() == .text("hello"))
            #expect(try await socket.receive() == .binary(Data([1, 2, 3])))
            #expect(socket.state == .open)
            try await socket.close(reason: "done")
            #expect(try await socket.receive() == nil)
            #expect(socket.closure == WebSocket.Closure(code: .normalClosure, isClean: true))
            let metrics = await socket.metrics
            #expect((metrics.sentMessages, metrics.sentMessageBytes) == (2, 8))
            #expect((metrics.receivedMessages, metrics.receivedMessageBytes) == (2, 8))
            #expect((metrics.sentBytes, metrics.receivedBytes) == (32, 16))
        }
    }

    @Test func aCallChangesItsHandshake() async throws {
        let server = try LoopbackServer { exchange in
            let key = exchange.request["X-Key"] ?? "none"
            try exchange.acceptWebSocket()
            try exchange.write(.text(key))
            _ = try exchange.readFrame()
        }
        defer { server.stop() }
        let client = Client(baseURL: server.url, session: Session())
        let socket = try await client.webSocket("live") { $0.headers["X-Key"] = "seven" }
        #expect(try await socket.receive() == .text("seven"))
        socket.cancel()
        await client.session.drained()
    }

    @Test func theServerClosesWithItsCode() async throws {
        let frames = Recorded()
        try await withSocket { exchange in
            try exchange.write(.text("a"), .close(4001, "bye"))
            if let frame = try exchange.readFrame() { frames.append(frame) }
        } test: { socket in
            var messages: [WebSocket.Message] = []
            for try await message in socket.messages { messages.append(message) }
            #expect(messages == [.text("a")])
            for await state in socket.states {
                if case .closed(let closure) = state {
                    #expect(
                        closure
                            == WebSocket.Closure(
                                code: WebSocket.CloseCode(rawValue: 4001), reason: "bye", isClean: true))
                }
            }
        }
        #expect(frames.all.map(\.payload) == [[0x0F, 0xA1]])
    }
}

/// Frames that a server has received.
final class Recorded: Sendable {
    private let frames = Lock<[LoopbackServer.WebSocketFrame]>([])
    var all: [LoopbackServer.WebSocketFrame] { frames.withLock { $0 } }
    func append(_ frame: LoopbackServer.WebSocketFrame) { frames.withLock { $0.append(frame) } }
}
