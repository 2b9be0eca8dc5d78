#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernConcurrency
import TernTesting
import Testing

@testable import Tern
@testable import TernStreaming

/// A server has one handshake at a time, whatever the name by which it is known (RFC 6455 §4.1).
@Suite("WebSocket: order of handshakes", .timeLimit(.minutes(1)))
struct HandshakeOrderTests {
    private final class Handshakes: Sendable {
        let counts = Lock((now: 0, most: 0))
    }

    /// A server that holds the handshakes of `/held` until its gate opens, and counts those under way.
    private final class Server: Sendable {
        let gate = LoopbackServer.Gate()
        let loopback: LoopbackServer
        private let handshakes: Handshakes

        /// The largest number of handshakes that were under way at a time.
        var most: Int { handshakes.counts.withLock { $0.most } }

        init() throws {
            let (gate, handshakes) = (gate, Handshakes())
            self.handshakes = handshakes
            loopback = try LoopbackServer { exchange in
                guard exchange.request["Upgrade"] != nil else { return try exchange.respond(text: "plain") }
                handshakes.counts.withLock { counts in
                    counts.now += 1
                    counts.most = max(counts.most, counts.now)
                }
                let isHeld = exchange.request.path != "/free"
                if isHeld { try exchange.wait(for: gate) }
                handshakes.counts.withLock { $0.now -= 1 }
                if exchange.request.path == "/refused" { return try exchange.respond(status: 403) }
                try exchange.acceptWebSocket()
                try exchange.echoMessages()
            }
        }
    }

    private func withServer(_ test: (Server, Session, Client) async throws -> Void) async throws {
        let server = try Server()
        defer { server.loopback.stop() }
        var configuration = Session.Configuration()
        configuration.proxies = .none
        let session = Session(configuration: configuration)
        try await test(server, session, Client(baseURL: server.loopback.url, session: session))
        server.gate.open()
        await session.invalidateAndCancel()
    }

    /// Returns when the session has handed the sockets over: a plain request that was sent after them has come back.
    private func settle(_ client: Client, sockets: Int) async throws {
        while await client.session.tasks.all.count < sockets { await Task.yield() }
        for _ in 0..<3 { #expect(try await client.get("plain", as: String.self) == "plain") }
    }

    @Test func handshakesWithOneServerFollowEachOther() async throws {
        try await withServer { server, session, client in
            let port = server.loopback.port
            let opening = (0..<6).map { index in
                // Both names have the address 127.0.0.1.
                Task { try await session.webSocket("ws://\(index % 2 == 0 ? "127.0.0.1" : "localhost"):\(port)/held") }
            }
            try await settle(client, sockets: 6)
            while server.most == 0 { await Task.yield() }
            #expect(server.most == 1)
            server.gate.open()
            for socket in opening {
                let socket = try await socket.value
                try await socket.send("open")
                #expect(try await socket.receive() == .text("open"))
            }
            #expect(server.most == 1)
        }
    }

    @Test func anotherServerIsNotHeldUp() async throws {
        try await withServer { server, session, client in
            let other = try LoopbackServer { exchange in
                try exchange.acceptWebSocket()
                try exchange.echoMessages()
            }
            defer { other.stop() }
            let held = Task { try await session.webSocket("ws://127.0.0.1:\(server.loopback.port)/held") }
            try await settle(client, sockets: 1)
            let socket = try await session.webSocket(other.url.absoluteString)
            #expect(socket.state == .open)
            server.gate.open()
            _ = try await held.value
        }
    }

    @Test func aHandshakeThatIsRefusedMakesRoom() async throws {
        try await withServer { server, session, client in
            let refused = Task { try await session.webSocket("ws://127.0.0.1:\(server.loopback.port)/refused") }
            try await settle(client, sockets: 1)
            let next = Task { try await session.webSocket("ws://127.0.0.1:\(server.loopback.port)/free") }
            try await settle(client, sockets: 2)
            server.gate.open()
            let error = try await streamFailure { try await refused.value }
            #expect(error.status == 403)
            #expect(try await next.value.state == .open)
            #expect(server.most == 1)
        }
    }

    @Test(arguments: [false, true]) func cancellingMakesRoom(isRunning: Bool) async throws {
        try await withServer { server, session, client in
            let url = "ws://127.0.0.1:\(server.loopback.port)"
            let first = Task { try await session.webSocket("\(url)/held") }
            try await server.loopback.wait { $0.requestsReceived == 1 }
            let second = Task { try await session.webSocket("\(url)/held") }
            try await settle(client, sockets: 2)
            let third = Task { try await session.webSocket("\(url)/free") }
            try await settle(client, sockets: 3)
            let cancelled = isRunning ? first : second
            cancelled.cancel()
            let error = try await streamFailure { try await cancelled.value }
            #expect(error.kind == .cancelled)
            server.gate.open()
            #expect(try await (isRunning ? second : first).value.state == .open)
            #expect(try await third.value.state == .open)
        }
    }

    @Test func theTotalTimeLimitIncludesTheWait() async throws {
        try await withServer { server, session, client in
            let url = "http://127.0.0.1:\(server.loopback.port)"
            let held = Task { try await session.webSocket("\(url)/held") }
            try await server.loopback.wait { $0.requestsReceived == 1 }
            var request = try Request(.get, "\(url)/free")
            request.timeouts = Timeouts(total: .milliseconds(50))
            let error = try await streamFailure { try await session.webSocket(for: request) }
            #expect(error.kind == .totalTimedOut)
            #expect(server.loopback.counts.requestsReceived == 1)
            server.gate.open()
            #expect(try await held.value.state == .open)
        }
    }

    /// A paused handshake gives up its place, and waits again when it is resumed.
    @Test func aPausedHandshakeMakesRoom() async throws {
        try await withServer { server, session, client in
            let url = "ws://127.0.0.1:\(server.loopback.port)"
            let held = Task { try await session.webSocket("\(url)/held") }
            try await server.loopback.wait { $0.requestsReceived == 1 }
            var request = try Request(.get, "http://127.0.0.1:\(server.loopback.port)/free")
            request.label = "paused"
            let paused = Task { [request] in try await session.webSocket(for: request) }
            try await settle(client, sockets: 2)
            let task = try #require(await session.tasks.all.first { $0.label == "paused" })
            task.pause()
            let last = Task { try await session.webSocket("\(url)/free") }
            try await settle(client, sockets: 3)
            server.gate.open()
            #expect(try await held.value.state == .open)
            #expect(try await last.value.state == .open)
            task.resume()
            #expect(try await paused.value.state == .open)
        }
    }
}
#endif
