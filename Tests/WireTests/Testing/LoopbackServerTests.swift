import TernTesting
import Testing

@Suite("Loopback server", .timeLimit(.minutes(1)))
struct LoopbackServerTests {
    struct Unexpected: Error {}

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
}
