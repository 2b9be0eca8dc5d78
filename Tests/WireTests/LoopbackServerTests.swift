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

@Suite("Loopback server", .timeLimit(.minutes(1)))
struct LoopbackServerTests {
    private struct Unexpected: Error {}

    // MARK: Connections and requests

    @Test func connectionCarriesManyRequests() throws {
        let server = try LoopbackServer { exchange in
            try exchange.respond(text: "\(exchange.request.connectionIndex).\(exchange.request.requestIndex)")
        }
        defer { server.stop() }
        let first = try PlainClient(port: server.port)
        let second = try PlainClient(port: server.port)
        #expect(try first.get("/").text == "0.0")
        #expect(try first.get("/").text == "0.1")
        #expect(try second.get("/").text == "1.0")
        #expect(try first.get("/").text == "0.2")
        #expect(server.counts.acceptedConnections == 2)
        #expect(server.requests.map(\.connectionIndex) == [0, 0, 1, 0])
    }

    @Test(arguments: [
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.1\r\nConnection: Foo, Close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ])
    func connectionEndsAsTheClientAsks(request: String) throws {
        let server = try LoopbackServer { try $0.respond(text: "last") }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send(request)
        let answer = try client.answer()
        #expect(answer.text == "last" && answer.head.contains("Connection: close\r\n"))
        #expect(try client.end() == .closed)
    }

    @Test func requestIsSeenAsItWasSent() throws {
        let server = try LoopbackServer { exchange in
            let request = exchange.request
            guard request.path == "/a%20b", request.query.map(\.name) == ["x", "y z", "x"],
                request.query.map(\.value) == ["1", nil, "=2"], request.query("x") == "1",
                request.headers.map(\.name) == ["Host", "X-Twice", "x-twice"],
                request.values(of: "X-TWICE") == ["one", "two"], request["host"] == "h", request.method == "PURGE"
            else { throw Unexpected() }
            try exchange.respond(body: request.rawHead)
        }
        defer { server.stop() }
        let head = "PURGE /a%20b?x=1&y%20z&x==2 HTTP/1.1\r\nHost: h\r\nX-Twice: one\r\nx-twice: \t two \r\n\r\n"
        let client = try PlainClient(port: server.port)
        try client.send("\r\n" + head)
        #expect(try client.answer().text == head)
    }

    @Test func requestThatComesByteByByteIsRead() throws {
        let server = try LoopbackServer { try $0.respond(body: try $0.readBody()) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        for byte in "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nT: r\r\n\r\n"
            .utf8
        {
            try client.send([byte])
        }
        #expect(try client.answer().text == "abcd")
        #expect(server.requests.map(\.bodySize) == [4])
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let server = try LoopbackServer { try $0.respond(text: $0.request.path) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n")
        #expect(try client.answer().text == "/1")
        #expect(try client.answer().text == "/2")
    }

    @Test(arguments: ["nonsense\r\n\r\n", "GET /\r\n\r\n", "GET / FTP/1\r\n\r\n"])
    func malformedRequestIsRefused(request: String) throws {
        let server = try LoopbackServer { try $0.respond() }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send(request)
        #expect(try client.answer().status == 400)
        #expect(try client.end() == .closed)
        #expect(server.counts.requestsReceived == 0)
    }

    @Test func twoHundredConnectionsAreServedAtOnce() async throws {
        let gate = LoopbackServer.Gate()
        let server = try LoopbackServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: exchange.request.target)
        }
        defer { server.stop() }
        let clients = try (0..<200).map { _ in try PlainClient(port: server.port) }
        for (index, client) in clients.enumerated() { try client.send("GET /\(index) HTTP/1.1\r\n\r\n") }
        try await server.wait { $0.requestsReceived == 200 }
        #expect(server.counts.openConnections == 200 && server.counts.requestsServed == 0)
        gate.open()
        for (index, client) in clients.enumerated() { #expect(try client.answer().text == "/\(index)") }
        try await server.wait { $0.requestsServed == 200 && $0.idleConnections == 200 }
        for client in clients { client.close() }
        try await server.wait { $0.openConnections == 0 }
    }

    // MARK: Bodies

    @Test func unreadBodyIsDrainedBeforeTheNextRequest() throws {
        let server = try LoopbackServer { try $0.respond(text: "read \($0.bodyBytesRead)") }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n")
        #expect(try client.answer().text == "read 0")
        try client.send([UInt8](repeating: 65, count: 300_000))
        #expect(try client.get("/next").text == "read 0")
        #expect(server.requests.map(\.bodySize) == [300_000, 0])
        #expect(server.counts.acceptedConnections == 1)
    }

    @Test(arguments: [1, 1_000, 1 << 20]) func bodyComesInPiecesOfTheWantedSize(size: Int) throws {
        let pattern = LoopbackServer.Pattern(count: 100_000, seed: 3)
        let server = try LoopbackServer { exchange in
            var offset = 0
            try exchange.readBody(upTo: size) { piece in
                guard piece.count <= size, pattern.matches(piece, at: offset) else { throw Unexpected() }
                offset += piece.count
            }
            try exchange.respond(text: "\(offset)")
        }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send(Array("PUT / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n".utf8) + pattern.bytes())
        #expect(try client.answer().text == "100000")
    }

    @Test func readingTheBodyTellsAWaitingClientToContinue() throws {
        let server = try LoopbackServer { try $0.respond(body: try $0.readBody()) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        #expect(try client.answer().status == 100)
        try client.send("ok")
        #expect(try client.answer().text == "ok")
    }

    @Test func answerWithoutReadingAnExpectedBodyEndsTheConnection() throws {
        let server = try LoopbackServer { try $0.respond(status: 401) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        #expect(try client.answer().status == 401)
        #expect(try client.end() == .closed)
    }

    @Test func bodyBeyondTheLimitIsAnError() throws {
        let server = try LoopbackServer { try $0.respond(body: try $0.readBody(limit: 4)) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12345")
        let answer = try client.answer()
        #expect(answer.status == 500 && answer.text.contains("more than 4 bytes"))
    }

    @Test func largeBodiesPassInBothDirections() throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let pattern = LoopbackServer.Pattern(count: 5_000_000)
        let client = try PlainClient(port: server.port)
        try client.send("POST /upload HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n")
        try client.send(pattern.bytes())
        #expect(try client.answer().text == #"{"bytes":5000000}"#)
        #expect(pattern.matches(try client.get("/bytes/5000000").body))
    }

    // MARK: Scripted bytes

    @Test func everyPieceIsAReadOfItsOwn() throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        let server = try LoopbackServer { try $0.write(Array(text.utf8), inPiecesOf: 1) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        var received: [[UInt8]] = []
        while received.count < text.utf8.count { received.append(try client.receive()) }
        #expect(received.allSatisfy { $0.count == 1 } && received.flatMap { $0 } == Array(text.utf8))
    }

    @Test func closeEndsTheStreamAfterWhatWasWritten() throws {
        let server = try LoopbackServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\n\r\nuntil the end")
            exchange.close()
        }
        defer { server.stop() }
        #expect(try PlainClient(port: server.port).get("/").text == "until the end")
    }

    @Test func resetReachesTheClient() throws {
        let server = try LoopbackServer { exchange in
            try exchange.writeHead(headers: [("Content-Length", "10")])
            try exchange.waitUntilReceived()
            exchange.reset()
        }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        #expect(try client.answer(hasBody: false).status == 200)
        #expect(try client.end() == .reset)
    }

    @Test func chunksAndTrailersAreFramed() throws {
        let server = try LoopbackServer { exchange in
            try exchange.writeChunked(chunks: [Array("abc".utf8), [], Array("d".utf8)], trailers: [("Sum", "4")])
            exchange.close()
        }
        defer { server.stop() }
        let answer = try PlainClient(port: server.port).get("/")
        #expect(answer.head.contains("Transfer-Encoding: chunked\r\n"))
        #expect(answer.text == "3\r\nabc\r\n1\r\nd\r\n0\r\nSum: 4\r\n\r\n")
    }

    @Test func statusesWithoutABodyHaveNone() throws {
        let server = try LoopbackServer { exchange in
            let status = exchange.request.query("s").flatMap { Int($0) } ?? 200
            try exchange.respond(status: status, text: "body")
        }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        #expect(try !client.get("/?s=204").head.contains("Content-Length"))
        #expect(try client.get("/?s=304").status == 304)
        try client.send("HEAD / HTTP/1.1\r\n\r\n")
        #expect(try client.answer(hasBody: false).head.contains("Content-Length: 4\r\n"))
        #expect(try client.get("/").text == "body")
    }

    @Test func failingHandlerIsAnsweredAndEndsTheConnection() throws {
        let server = try LoopbackServer { exchange in
            if exchange.request.path == "/late" {
                try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")
            }
            if exchange.request.path != "/silent" { throw Unexpected() }
        }
        defer { server.stop() }
        let early = try PlainClient(port: server.port)
        #expect(try early.get("/early").status == 500)
        #expect(try early.end() == .closed)
        #expect(try PlainClient(port: server.port).get("/late").text == "part")
        #expect(try PlainClient(port: server.port).get("/silent").status == 500)
    }

    // MARK: Order without sleeps

    @Test func gateHoldsTheAnswerBack() async throws {
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
        let start = ContinuousClock.now
        server.stop()
        #expect(ContinuousClock.now - start < .seconds(4))
        #expect(server.counts.openConnections == 0)
        for client in clients { #expect(try client.end() != .open) }
        #expect(throws: PlainClient.Broken.self) { try PlainClient(port: server.port) }
    }

    @Test func handlerMayStopItsServer() async throws {
        let (box, gate) = (Weak(), LoopbackServer.Gate())
        let server = try LoopbackServer { _ in
            box.value?.stop()
            gate.open()
        }
        box.value = server
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

    // MARK: Addresses

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

    #if os(Linux)
    @Test func listenerThatAcceptsNobodyLeavesConnectsUnanswered() throws {
        let server = try LoopbackServer(acceptsConnections: false) { _ in }
        defer { server.stop() }
        #expect(!PlainClient.connects(to: server.port))
    }
    #endif

    // MARK: Files, patterns and the demo

    @Test(arguments: [
        ("Range: bytes=0-0\r\n", 206, 0..<1), ("Range: bytes=10-19\r\n", 206, 10..<20),
        ("Range: bytes=990-\r\n", 206, 990..<1_000), ("Range: bytes=-5\r\n", 206, 995..<1_000),
        ("Range: bytes=900-5000\r\n", 206, 900..<1_000), ("Range: bytes=-5000\r\n", 206, 0..<1_000),
        ("Range: bytes=1000-\r\n", 416, 0..<0), ("Range: bytes=-0\r\n", 416, 0..<0),
        ("Range: bytes=5-4\r\n", 200, 0..<1_000), ("Range: bytes=0-1,4-5\r\n", 200, 0..<1_000),
        ("Range: lines=0-1\r\n", 200, 0..<1_000), ("", 200, 0..<1_000),
        ("Range: bytes=4-\r\nIf-Range: \"pattern-1000-0\"\r\n", 206, 4..<1_000),
        ("Range: bytes=4-\r\nIf-Range: \"other\"\r\n", 200, 0..<1_000),
        ("Range: bytes=4-\r\nIf-Range: W/\"pattern-1000-0\"\r\n", 200, 0..<1_000),
        ("If-None-Match: \"x\", \"pattern-1000-0\"\r\n", 304, 0..<0),
    ])
    func rangesAreServedAsAsked(headers: String, status: Int, range: Range<Int>) throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        let answer = try client.get("/bytes/1000", headers: headers)
        #expect(answer.status == status && answer.body == LoopbackServer.Pattern(count: 1_000).bytes(in: range))
        let place = status == 206 ? "\(range.lowerBound)-\(range.upperBound - 1)" : "*"
        #expect(answer.head.contains("Content-Range: bytes \(place)/1000\r\n") == (status == 206 || status == 416))
        #expect(answer.head.contains("ETag: \"pattern-1000-0\"\r\n"))
        #expect(try client.get("/status/200").status == 200)
    }

    @Test func patternIsKnownAtEveryOffset() {
        let pattern = LoopbackServer.Pattern(count: 1_000_000, seed: 7)
        let all = pattern.bytes()
        #expect(all.count == 1_000_000 && pattern.matches(all) && pattern.matches(Data(all)))
        for offset in [0, 1, 65_520, 65_521, 65_522, 400_000, 999_999] {
            #expect(all[offset] == pattern.byte(at: offset))
            #expect(
                pattern.matches(all[offset...], at: offset) && pattern.matches(AnySequence(all[offset...]), at: offset))
        }
        #expect(!pattern.matches(all[16_384...], at: 0) && !pattern.matches(all + [0]) && !pattern.matches([0], at: -1))
        #expect(!LoopbackServer.Pattern(count: 1_000_000, seed: 8).matches(all))
        var torn = all
        torn[777_777] ^= 1
        #expect(!pattern.matches(torn))
    }

    @Test func demoAnswersItsRoutes() throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        #expect(try client.get("/json").text == #"{"id":1,"languages":["Swift","C"],"name":"Ada"}"#)
        #expect(try client.get("/users/5").text.hasPrefix(#"{"id":5,"#))
        #expect(try client.get("/status/418").status == 418)
        #expect(try client.get("/headers", headers: "A: 1\r\n").text.contains(#"{"name":"A","value":"1"}"#))
        #expect(try client.get("/nowhere").status == 404)
        try client.send("PATCH /echo HTTP/1.1\r\nContent-Type: text/x\r\nContent-Length: 2\r\n\r\nhi")
        let echo = try client.answer()
        #expect(echo.text == "hi" && echo.head.contains("Content-Type: text/x\r\n"))
        #expect(
            try client.get("/lines/2", headers: "Connection: close\r\n").text == "e\r\nline 0\nline 1\n\r\n0\r\n\r\n")
        let slow = try PlainClient(port: server.port).get("/slow?count=2&interval=1", headers: "Connection: close\r\n")
        #expect(slow.text == "7\r\ndrop 0\n\r\n7\r\ndrop 1\n\r\n0\r\n\r\n")
        let stalled = try PlainClient(port: server.port)
        try stalled.send("GET /stall HTTP/1.1\r\n\r\n")
        #expect(try stalled.answer(hasBody: false).head.contains("Content-Length: 1000000\r\n"))
    }

    @Test func throttledBodyTakesItsTime() throws {
        let server = try LoopbackServer.demo()
        defer { server.stop() }
        let start = ContinuousClock.now
        #expect(try PlainClient(port: server.port).get("/bytes/20000?rate=100000").body.count == 20_000)
        #expect(ContinuousClock.now - start >= .milliseconds(150))
    }
}

private final class Weak: @unchecked Sendable {
    // Sendable by hand: written before the first request is sent, read by its handler after.
    weak var value: LoopbackServer?
}
