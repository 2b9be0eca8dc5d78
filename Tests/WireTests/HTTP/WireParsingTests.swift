#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads heads and bodies as servers send them: the result is the same however the bytes are split.
@Suite("Wire: parsing", .timeLimit(.minutes(1)))
struct WireParsingTests {
    /// A response as its bytes, and the values that must be read from them.
    struct Answer: CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        var body = "hello, compressed world"
        var trailers: [String] = []

        init(_ description: String, _ head: String, _ rest: [UInt8], trailers: [String] = []) {
            testDescription = description
            bytes = [UInt8](head) + rest
            self.trailers = trailers
        }

        static let fields = "X-Twice: one\r\nServer: script\r\nx-twice: two\r\n"
        static let plain = [UInt8]("hello, compressed world")
        static let all = [
            Answer("stated length", "HTTP/1.1 200 OK\r\n\(fields)Content-Length: 23\r\n\r\n", plain),
            Answer(
                "chunks with extensions and trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\(fields)\r\n",
                [UInt8](
                    "7\r\nhello, \r\n1;x=\"y\"\r\nc\r\n0F ; z\r\nompressed world\r\n000\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n"
                ),
                trailers: ["1", "2"]),
            Answer(
                "gzip", "HTTP/1.1 200 OK\r\n\(fields)Content-Encoding: gzip\r\nContent-Length: 43\r\n\r\n",
                Compressed.gzip),
            Answer(
                "interim responses first",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Twice: no\r\n\r\n"
                    + "HTTP/1.1 200 OK\r\n\(fields)Content-Length: 23\r\n\r\n", plain),
            Answer(
                "bare line feeds and a folded line",
                "HTTP/1.1 200\nX-Twice:one\nX-Folded: a\n b\nX-Twice: \t two \t\ncontent-length: 23\n\n", plain),
            Answer(
                "a folded coding",
                "HTTP/1.1 200 OK\r\n\(fields)Content-Encoding:\r\n gzip\r\nContent-Length: 43\r\n\r\n",
                Compressed.gzip),
        ]
    }

    private func check(_ response: Response<Data>, _ answer: Answer, _ comment: Comment) {
        #expect(String(decoding: response.value, as: UTF8.self) == answer.body, comment)
        #expect(response.status == 200, comment)
        #expect(response.headers.values(for: "X-Twice") == ["one", "two"], comment)
        #expect(response.trailers.values(for: "X-Sum") == answer.trailers, comment)
    }

    @Test(arguments: Answer.all) func everySplitGivesTheSameResponse(answer: Answer) async throws {
        try await withServer { exchange in
            let split = Int(exchange.request.path.dropFirst()) ?? 0
            try exchange.write(answer.bytes.prefix(split))
            try exchange.waitUntilReceived()
            try exchange.write(answer.bytes.dropFirst(split))
        } test: { server, client in
            for split in 1..<answer.bytes.count {
                let response = try await client.response(for: client.request(.get, "\(split)"))
                check(response, answer, "split at \(split)")
            }
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test(arguments: Answer.all) func slowDripGivesTheSameResponse(answer: Answer) async throws {
        try await withServer { exchange in
            try exchange.write(answer.bytes, inPiecesOf: 1)
        } test: { _, client in
            check(try await client.response(for: client.request(.get, "")), answer, "byte by byte")
            let stream = client.stream("")
            var body = Data()
            for try await chunk in stream.chunks { body += chunk }
            #expect(String(decoding: body, as: UTF8.self) == answer.body)
        }
    }

    // MARK: Heads

    @Test(arguments: [100, 102, 103, 199]) func interimResponsesAreIgnored(status: Int) async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            for number in 0..<3 { try exchange.write("HTTP/1.1 \(status) Soon\r\nLink: <\(number)>\r\n\r\n") }
            try exchange.waitUntilReceived()
            try exchange.wait(for: gate)
            try exchange.respond(status: 201, headers: [("X-Final", "yes")], text: "made")
        } test: { server, client in
            let task = client.task(.get, "")
            try await server.wait { $0.requestsReceived == 1 }
            gate.open()
            let head = try #require(await task.response)
            #expect(head.status == 201 && head.headers["X-Final"] == "yes" && !head.headers.contains("Link"))
            #expect(try await String(decoding: task.value, as: UTF8.self) == "made")
        }
    }

    @Test(arguments: [
        "garbage\r\n\r\n", "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/7.0 200 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", "\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func responseThatIsNotHTTPIsMalformed(bytes: String) async throws {
        try await withScript(bytes) { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .malformedResponse)
            #expect(error.reason.contains("127.0.0.1:\(server.port)"))
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test(arguments: [
        "X-Long: \(String(repeating: "a", count: 90_000))\r\n",
        String(repeating: "X-Many: \(String(repeating: "b", count: 100))\r\n", count: 200),
    ])
    func headBeyondTheLimitIsTooLarge(field: String) async throws {
        let configuration = Session.Configuration.test { $0.maximumHeadSize = 16 << 10 }
        try await withServer(configuration: configuration) { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\n")
            // An endless head, which is never complete, must not be kept either.
            while true { try exchange.write(field) }
        } test: { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .tooLarge)
            #expect(error.reason.contains("head"))
        }
    }

    @Test func headBelowTheLimitIsReadWhole() async throws {
        let long = String(repeating: "c", count: 80_000)
        try await withScript("HTTP/1.1 200 OK\r\nA: \(long)\r\nB: \(long)\r\nContent-Length: 2\r\n\r\nok") {
            _, client in
            let response = try await client.response(for: client.request(.get, ""))
            #expect(response.headers["A"] == long && response.headers["B"] == long)
        }
    }

    @Test func lineThatNeverEndsIsTooLarge() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nX-Long: ")
            let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 16 << 10)
            while true { try exchange.write(piece) }
        } test: { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .tooLarge)
            #expect(error.reason.contains("head"))
        }
    }

    @Test func fieldsKeepTheirOrderAndTheirValues() async throws {
        let head = "Set-Cookie: a=1; Path=/\r\nLink: <x>, <y>\r\nset-cookie: b=2\r\nX-Empty:\r\nX-Latin: caf\u{e9}\r\n"
        let bytes = Array(
            "HTTP/1.1 200 Fine, thank you\r\n\(head)SET-COOKIE: c=3\r\nContent-Length: 0\r\n\r\n".unicodeScalars
        )
        .map { UInt8(truncatingIfNeeded: $0.value) }
        try await withServer { exchange in
            try exchange.write(bytes)
        } test: { _, client in
            let response = try await client.response(for: client.request(.get, ""))
            #expect(response.headers.values(for: "Set-Cookie") == ["a=1; Path=/", "b=2", "c=3"])
            #expect(response.headers.values(for: "Link") == ["<x>, <y>"])
            #expect(response.headers.values(for: "X-Empty") == [""])
            #expect(response.headers["x-latin"] == "café")
            #expect(response.head.reasonPhrase == "Fine, thank you")
        }
    }

    // MARK: Lengths

    @Test func lengthShorterThanTheBodyEndsItAndTheConnection() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, HTTP/1.1 200 OK\r\n\r\nsmuggled")
        } test: { server, client async throws in
            #expect(try await client.get("", as: String.self) == "hello")
            #expect(try await client.get("", as: String.self) == "hello")
            #expect(server.counts.acceptedConnections == 2)
        }
    }

    @Test(arguments: ["-5", "abc", "5x", "99999999999999999999999", "5\r\nContent-Length: 6", "5, 6"])
    func invalidLengthIsMalformed(length: String) async throws {
        try await withScript("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nhello") { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .malformedResponse)
        }
    }

    @Test func chunkedCodingOverridesALength() async throws {
        let script = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        try await withScript(script) { _, client async throws in
            #expect(try await client.get("", as: String.self) == "hello")
        }
    }

    @Test(arguments: [
        "xyz\r\nhello\r\n", "-1\r\nhello\r\n", "11111111111111111\r\nhello", "\r\nhello\r\n", "5\r\nhelloworld\r\n",
    ])
    func malformedChunkIsMalformed(chunk: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"
        try await withScript(head + chunk) { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .malformedResponse)
            #expect(error.body.prefix(2) == Data("ok".utf8))
            #expect(error.status == 200)
            #expect(server.counts.requestsReceived == 1)
        }
    }

    // MARK: Ends

    @Test(arguments: [
        ("Content-Length: 10\r\n\r\nabc", "3 of 10 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "3 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n9\r\nabc", "3 bytes"),
        ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "3 bytes"),
    ])
    func bodyThatEndsEarlyIsTruncated(rest: String, count: String) async throws {
        try await withScript("HTTP/1.1 200 OK\r\n" + rest) { _, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .truncatedBody)
            #expect(error.reason.contains(count))
            #expect(error.body == Data("abc".utf8))
            #expect(error.status == 200)
            var streamed = Data()
            let second = try await failure {
                for try await chunk in client.stream("").chunks { streamed += chunk }
            }
            #expect(second.kind == .truncatedBody)
            #expect(streamed == Data("abc".utf8))
        }
    }

    @Test(arguments: [
        "HT", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-", "HTTP/1.1 103 Hints\r\n\r\n",
    ])
    func headThatEndsEarlyIsALostConnection(head: String) async throws {
        try await withScript(head) { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .connectionLost)
            #expect(error.response == nil)
            #expect(error.reason.contains("may have acted"))
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test(arguments: [
        ("Content-Length: 10\r\n\r\nabc", "3 of 10 bytes"), ("Transfer-Encoding: chunked\r\n\r\n9\r\nabc", "3 bytes"),
        ("\r\nabc", "3 bytes"),
    ])
    func resetInTheBodyIsALostConnection(rest: String, count: String) async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\n" + rest)
            try exchange.waitUntilReceived()
            exchange.reset()
        } test: { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .connectionLost)
            #expect(error.reason.contains(count))
            #expect(error.body == Data("abc".utf8))
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test(arguments: [("HTTP/1.0", HTTPVersion.http10), ("HTTP/1.1", .http11)])
    func closeEndsABodyWithoutALength(version: String, read: HTTPVersion) async throws {
        try await withServer { exchange in
            try exchange.write("\(version) 200 OK\r\nContent-Type: text/plain\r\n\r\n")
            try exchange.write([UInt8]("until the end"), inPiecesOf: 5)
            exchange.close()
        } test: { server, client in
            for _ in 0..<2 {
                let response = try await client.response(for: client.request(.get, ""), as: String.self)
                #expect(response.value == "until the end")
                #expect(response.head.version == read && response.head.contentLength == nil)
            }
            #expect(server.counts.acceptedConnections == 2)
        }
    }

    /// A server that states a body after a 204 can send it later, as the response to the next request (RFC 9112 §6.1).
    @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func a204ThatStatesABodyEndsItsConnection(field: String) async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 204 No Content\r\n\(field)\r\n\r\n")
        } test: { server, client async throws in
            for _ in 0..<3 { #expect(try await client.get("").isEmpty) }
            #expect(server.counts.acceptedConnections == 3)
        }
    }

    @Test(arguments: ["204 No Content", "204 No Content\r\nContent-Length: 0", "205 Reset\r\nContent-Length: 0"])
    func statusWithoutABodyLeavesTheConnectionInUse(statusLine: String) async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 \(statusLine)\r\n\r\n")
        } test: { server, client async throws in
            for _ in 0..<2 { #expect(try await client.get("").isEmpty) }
            #expect(try await client.get("", as: Data?.self) == nil)
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test func notModifiedHasNoBody() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: \"1\"\r\n\r\n")
        } test: { server, client in
            for _ in 0..<2 {
                let error = try await failure { try await client.get("") }
                #expect(error.kind == .status && error.status == 304 && error.body.isEmpty)
                #expect(error.response?.headers["ETag"] == "\"1\"")
            }
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test(arguments: [
        "Content-Length: 1000", "Transfer-Encoding: chunked", "Content-Encoding: gzip\r\nContent-Length: 43",
    ])
    func headHasNoBody(field: String) async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\n\(field)\r\n\r\n")
        } test: { server, client in
            for _ in 0..<2 {
                let head = try await client.head("")
                #expect(head.status == 200)
                if field.hasSuffix("1000") { #expect(head.contentLength == 1_000) }
            }
            #expect(server.counts.acceptedConnections == 1)
            #expect(server.requests.map(\.method) == ["HEAD", "HEAD"])
        }
    }
}
#endif
