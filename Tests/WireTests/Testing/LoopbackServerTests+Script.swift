import TernTesting
import Testing

/// Checks bodies and scripted bytes.
extension LoopbackServerTests {
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

    @Test func eachPieceIsReadSeparately() throws {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        let server = try LoopbackServer { try $0.write(Array(text.utf8), inPiecesOf: 1) }
        defer { server.stop() }
        let client = try PlainClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\n\r\n")
        var received: [[UInt8]] = []
        while received.count < text.utf8.count { received.append(try client.receive()) }
        #expect(received.allSatisfy { $0.count == 1 } && received.flatMap { $0 } == Array(text.utf8))
    }

    @Test func closeEndsTheStreamAfterWrittenBytes() throws {
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
}
