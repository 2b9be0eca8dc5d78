import Synchronization
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Checks order without sleeps, the lifetime of the server, and its addresses.
extension LoopbackServerTests {
    @Test func gateDelaysTheResponse() async throws {
        let (reached, gate) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let server = try LoopbackServer { exchange in
            reached.open()
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        try await reached.wait()
        #expect(throws: PlainClient.Broken.self) { try client.receive(waits: false) }
        gate.open()
        #expect(try client.answer().text == "late")
    }

    @Test func cancellingAWaitForAGateEndsIt() async throws {
        let gate = LoopbackServer.Gate()
        for cancelsEarly in [true, false] {
            let task = Task { try await gate.wait() }
            if !cancelsEarly { await Task.yield() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        gate.open()
        try await gate.wait()
    }

    @Test func stopWakesEverythingThatBlocks() async throws {
        let gate = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/gate": try exchange.wait(for: gate)
            case "/pause": try exchange.pause(for: .seconds(60))
            case "/read": _ = try exchange.readBody()
            case "/write":
                try exchange.writeHead()
                try exchange.streamZeros(count: .max)
            default: try exchange.respond()
            }
        }
        let clients = try ["/gate", "/pause", "/read", "/write", "/"].map { path in
            let client = try PlainClient(port: server.port)
            try client.send("POST \(path) HTTP/1.1\r\nContent-Length: 1\r\n\r\n" + (path == "/" ? "x" : ""))
            return client
        }
        _ = try PlainClient(port: server.port)
        try await server.wait { $0.requestsReceived == 5 && $0.requestsServed == 1 }
        // The server would leave a connection open that it could not wake.
        server.stop()
        #expect(server.counts.openConnections == 0)
        for client in clients { #expect(try client.end() != .open) }
        #expect(throws: PlainClient.Broken.self) { try PlainClient(port: server.port) }
    }

    @Test func handlerCanStopItsServer() async throws {
        let (box, gate) = (Box(), LoopbackServer.Gate())
        let server = try LoopbackServer { _ in
            box.server.withLock { $0 }?.stop()
            gate.open()
        }
        box.server.withLock { $0 = server }
        defer { box.server.withLock { $0 = nil } }
        let client = try PlainClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        try await gate.wait()
        #expect(try client.end() != .open)
    }

    @Test func droppedServerStops() throws {
        var server: LoopbackServer? = try LoopbackServer { try $0.respond() }
        let port = try #require(server?.port)
        let client = try PlainClient(port: port)
        #expect(try client.get("/").status == 200)
        server = nil
        #expect(try client.end() != .open)
        #expect(throws: PlainClient.Broken.self) { try PlainClient(port: port) }
    }

    @Test func idleConnectionsCanBeEndedByTheServer() async throws {
        let server = try LoopbackServer { try $0.respond() }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        #expect(try client.get("/").status == 200)
        try await server.wait { $0.idleConnections == 1 }
        server.closeIdleConnections()
        #expect(try client.end() == .closed)
        try await server.wait { $0.openConnections == 0 }
    }

    @Test func logKeepsTheNewestRequests() throws {
        let server = try LoopbackServer(requestLogLimit: 3) { try $0.respond() }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        for index in 0..<5 { _ = try client.get("/\(index)") }
        #expect(server.requests.map(\.target) == ["/2", "/3", "/4"])
        server.clearRequests()
        _ = try client.get("/5")
        #expect(server.requests.map(\.target) == ["/5"])
        #expect(server.counts.requestsReceived == 6)
    }

    @Test func unixSocketIsServedAndRemoved() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "loopback-\(UUID().uuidString.prefix(8))")
            .path
        let server = try LoopbackServer(on: .unix(path: path)) { exchange in
            try exchange.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n".utf8), inPiecesOf: 10)
            try exchange.write("\(exchange.request.contentLength ?? 0)")
        }
        let client = try PlainClient(path: path)
        try client.send("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
        #expect(try client.answer().text == "3")
        #expect(try client.get("/").text == "0")
        #expect(server.baseURL.absoluteString == "http://localhost/" && server.port == 0)
        server.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(.enabled(if: hasIPv6)) func ipv6IsServed() throws {
        let server = try LoopbackServer(on: .ipv6) {
            try $0.write(Array("HTTP/1.1 204 No\r\n\r\n".utf8), inPiecesOf: 3)
        }
        defer { server.stop() }
        #expect(try PlainClient(port: server.port, isIPv6: true).get("/").status == 204)
        #expect(server.url.absoluteString == "http://[::1]:\(server.port)/")
    }

    private static let hasIPv6 = (try? LoopbackServer(on: .ipv6) { _ in }) != nil

    @Test func urlsJoinPathsAndQueries() throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let root = "http://127.0.0.1:\(server.port)/"
        #expect(server.url("/a/b?c=d").absoluteString == root + "a/b?c=d")
        #expect(server.url("a").absoluteString == root + "a")
        #expect(server.url("").absoluteString == root)
    }

    @Test func refusingPortRefuses() throws {
        let port = try LoopbackServer.refusingPort()
        #expect(throws: PlainClient.Broken.self) { try PlainClient(port: port) }
    }

    /// The number of a closed descriptor is reused: a server that read on would take the bytes of its next owner.
    @Test func serverTouchesNoDescriptorAfterAReset() throws {
        let taken = Mutex<[Int32]>([])
        let server = try LoopbackServer { exchange in
            exchange.reset()
            var pair: [Int32] = [-1, -1]
            guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else { return }
            for end in pair { _ = unsafe send(end, "hello", 5, 0) }
            taken.withLock { [pair] in $0 = pair }
        }
        defer { server.stop() }
        #expect(throws: (any Error).self) { try PlainClient(port: server.port).get("/") }
        while server.counts.openConnections > 0 { sched_yield() }
        let pair = taken.withLock { $0 }
        #expect(pair.count == 2)
        for end in pair {
            var bytes = [UInt8](repeating: 0, count: 16)
            #expect(unsafe recv(end, &bytes, bytes.count, Int32(MSG_DONTWAIT)) == 5)
            close(end)
        }
    }

    #if os(Linux)
    @Test func nonAcceptingListenerLeavesConnectionsUnanswered() throws {
        let server = try LoopbackServer(acceptsConnections: false) { _ in }
        defer { server.stop() }
        #expect(!PlainClient.connects(to: server.port))
    }
    #endif
}

private final class Box: Sendable {
    let server = Mutex<LoopbackServer?>(nil)
}
