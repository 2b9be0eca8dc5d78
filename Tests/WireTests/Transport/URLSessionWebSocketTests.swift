#if TERN_URLSESSION && os(Linux)
import Tern
import TernStreaming
import TernTesting
import Testing

/// A socket over the system's URLSession.
@Suite("URLSession: WebSocket", .timeLimit(.minutes(1)))
struct URLSessionWebSocketTests {
    /// The libcurl of Debian 12 was built without WebSockets. With one that has them, messages come back.
    @Test func aSystemWithoutSocketsSaysSo() async throws {
        let server = try LoopbackServer { exchange in
            try exchange.acceptWebSocket()
            try exchange.echoMessages()
        }
        defer { server.stop() }
        let session = Session(configuration: Session.Configuration())
        do {
            let socket = try await session.webSocket("ws://127.0.0.1:\(server.port)/")
            try await socket.send("hello")
            #expect(try await socket.receive() == .text("hello"))
            try await socket.close()
        } catch {
            #expect(error.kind == .unsupported)
            #expect(error.reason.contains("cannot open WebSockets"))
        }
        while await session.tasks.count > 0 { await Task.yield() }
    }
}
#endif
