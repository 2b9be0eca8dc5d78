#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernStreaming
import TernTesting
import Testing

/// The examples of Documentation/WebSocket.md, word for word.
@Suite("Documentation: WebSocket", .timeLimit(.minutes(1)))
struct WebSocketDocumentationTests {
    private func withClient(_ test: (Client) async throws -> Void) async throws {
        let server = try LoopbackServer { exchange in
            let offer = exchange.request["Sec-WebSocket-Extensions"]
            try exchange.acceptWebSocket(
                subprotocol: exchange.request["Sec-WebSocket-Protocol"],
                extensions: offer.map { _ in "permessage-deflate" })
            guard let frame = try exchange.readFrame() else { return }
            try exchange.write(frame.opcode == 8 ? frame : .text("echo"), .binary([1]), .close(1000))
            _ = try exchange.readFrame()
        }
        defer { server.stop() }
        let session = Session()
        try await test(Client(baseURL: server.url, session: session))
        await session.invalidateAndCancel()
    }

    @Test func theFirstExampleReadsToTheEnd() async throws {
        try await withClient { client in
            let socket = try await client.webSocket("live", protocols: ["chat"])
            try await socket.send("hello")
            for try await message in socket.messages {
                switch message {
                case .text(let text): #expect(text == "echo")
                case .binary(let data): #expect(data.count == 1)
                }
            }
            #expect(socket.closure?.code ?? .abnormalClosure == .normalClosure)
            for await state in socket.states {
                if case .closed(let closure) = state { #expect(closure.code == .normalClosure) }
            }
        }
    }

    @Test func compressionIsAnOption() async throws {
        try await withClient { client in
            var options = WebSocket.Options()
            options.compression = WebSocket.Compression()
            let socket = try await client.webSocket("live", options: options)
            #expect(socket.isCompressed)
            try await socket.close()
        }
    }

    @Test func aReconnectingSocketSubscribes() async throws {
        try await withClient { client in
            let live = ReconnectingWebSocket {
                try await client.webSocket("live")
            } onOpen: { socket in
                try await socket.send("subscribe news")
            }
            var count = 0
            for try await _ in live.messages { count += 1 }
            #expect(count == 2)
        }
    }

    @Test func aStubPlaysTheServer() async throws {
        let stub = StubTransport([
            "GET /live": .webSocket { socket in
                try await socket.send("welcome")
                while let message = try await socket.receive() { try await socket.send(message) }
            }
        ])
        let client = try Client(baseURL: "https://api.example.com", session: Session(stub: stub))
        let socket = try await client.webSocket("live")
        try await socket.send("hello")
        var seen: [WebSocket.Message] = []
        for try await message in socket.messages.prefix(2) { seen.append(message) }
        #expect(seen == [.text("welcome"), .text("hello")])
        try await socket.close()
        #expect(stub.webSockets.map(\.received) == [[.text("hello")]])
    }

    @Test func messagesAreExchangedOnTheLoop() async throws {
        try await withClient { client in
            let socket = try await client.webSocket("live")
            try await withTaskExecutorPreference(client.session.executor) {
                try await socket.send("ping")
                _ = try await socket.receive()
            }
            try await socket.close()
        }
    }
}
#endif
