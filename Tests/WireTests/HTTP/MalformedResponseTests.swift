#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks responses that break the rules of RFC 9112: Tern refuses and accepts them as the RFC says, and never treats
/// one as a request that was not sent.
@Suite("Wire: malformed responses", .timeLimit(.minutes(1)))
struct MalformedResponseTests {
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"

    /// Expects a malformed response, collected or streamed, and one request.
    private func expectMalformed(_ bytes: String) async throws {
        let configuration = Session.Configuration.test { $0.interceptors = [RetryInterceptor()] }
        try await withScript(bytes, configuration: configuration) { server, client in
            let collected = try await failure { try await client.get("collected") }
            #expect(collected.kind == .malformedResponse, "\(collected)")
            let streamed = try await failure { for try await _ in client.stream("streamed").chunks {} }
            #expect(streamed.kind == .malformedResponse, "\(streamed)")
            #expect(server.requests.map(\.target) == ["/collected", "/streamed"])
        }
    }

    // MARK: Fields

    @Test(arguments: [
        "Content-Length : 5", "Content-Length\t: 5", "Transfer-Encoding : chunked", "X Y: 1", "X(y): 1", "X\u{1}: 1",
        "X\u{E9}: 1", "\"X\": 1", ": 1", "X", "X;y", "Content-Length\r: 5", "X\r", "\rX: 1",
    ])
    func fieldNameThatIsNotATokenIsMalformed(line: String) async throws {
        let length = "Content-Length: 5\r\n"
        try await expectMalformed("HTTP/1.1 200 OK\r\n\(line)\r\n\(length)\r\nfirst")
        try await expectMalformed("HTTP/1.1 200 OK\r\n\(length)\(line)\r\n\r\nfirst")
        try await expectMalformed("HTTP/1.1 103 Early Hints\r\n\(line)\r\n\r\nHTTP/1.1 200 OK\r\n\(length)\r\nfirst")
        try await expectMalformed("\(Self.chunked)\r\n5\r\nfirst\r\n0\r\nX-First: 1\r\n\(line)\r\n\r\n")
    }

    /// The head of a proxy is checked in the same way.
    @Test func fieldNameOfAProxyIsChecked() async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nfirst")
        } test: { proxy, _ in
            let configuration = Session.Configuration.test {
                $0.proxies = .only(Proxy(.http, host: "127.0.0.1", port: UInt16(proxy.port)))
            }
            let session = Session(configuration: configuration)
            let error = try await failure {
                try await session.response(for: Request(.get, "http://somewhere.invalid/"))
            }
            #expect(error.kind == .malformedResponse)
        }
    }

    @Test(arguments: [
        // A blank line before the first field, and folded fields that determine the end of the body.
        "HTTP/1.1 200 OK\r\n X: 1\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\n\t\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n 6\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n , x\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        // Two contradictory lengths.
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        // Status lines.
        "HTTP/1.1 200OK\r\nContent-Length: 5\r\n\r\nfirst", "HTTP/1.1 099 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nfirst", "HTTP/1.1 \r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 5\r\n\r\nfirst",
        // Versions that the connection does not carry.
        "HTTP/2 200 \r\nContent-Length: 5\r\n\r\nfirst", "HTTP/2 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nfirst", "HTTP/3 200 \r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\nfirst", "HTTP/1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/0.9 200 OK\r\nContent-Length: 5\r\n\r\nfirst", "HTTP/11.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/2 103 \r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        // Another protocol, which was not requested.
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst",
        "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nContent-Length: 5\r\n\r\nfirst",
        // NUL, in a name and in a value.
        "HTTP/1.1 200 OK\r\nX\0: 1\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 5\r\n\r\nfirst",
    ])
    func ambiguousHeadIsMalformed(bytes: String) async throws {
        try await expectMalformed(bytes)
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nX:a b c\r\nContent-Length:5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nX: \ta b c \t\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200\r\n!#$%&'*+-.^_`|~09aZ: 1\r\nEmpty:\r\nX: a b c\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\nX: a b c\nContent-Length: 5\n\nfirst",
        "HTTP/1.0 200 OK\r\nX: a b c\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING:Chunked\r\nX: a b c\r\n\r\n5\r\nfirst\r\n0\r\nA: b\r\n c\r\n\r\n",
    ])
    func lenientFormsOfTheRFCAreAccepted(bytes: String) async throws {
        try await withScript(bytes) { _, client in
            let response = try await client.response(for: client.request(.get, ""), as: String.self)
            #expect(response.value == "first" && response.headers["X"] == "a b c")
            var body = Data()
            for try await chunk in client.stream("").chunks { body += chunk }
            #expect(String(decoding: body, as: UTF8.self) == "first")
        }
    }

    /// A recipient may also read a bare CR as a space (RFC 9112 §2.2).
    @Test func aBareCarriageReturnIsRefused() async throws {
        try await expectMalformed("HTTP/1.1 200 OK\r\nX: a\rb\rc\r\nContent-Length: 5\r\n\r\nfirst")
    }

    @Test func headWithoutABodyCanHaveBothLengths() async throws {
        try await withScript("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n") {
            _, client in
            let head = try await client.head("")
            #expect(head.status == 200)
        }
    }

    /// Later bytes on the connection are unreliable (RFC 9112 §6.1).
    @Test(arguments: [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 3), ("Transfer-Encoding: chunked\r\nContent-Length: 9", 3),
        ("Transfer-Encoding: chunked", 1),
    ])
    func twoLengthsCloseTheConnection(fields: String, connections: Int) async throws {
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n5\r\nfirst\r\n0\r\n\r\n")
        } test: { server, client async throws in
            for _ in 0..<3 { #expect(try await client.get("", as: String.self) == "first") }
            #expect(server.counts.acceptedConnections == connections)
        }
    }

    @Test func aConnectionIsUsedAgainAfterTheNextResponse() async throws {
        try await withServer { exchange in
            let length = exchange.request.path == "/two" ? "Content-Length: 5\r\n" : ""
            try exchange.write(Self.chunked + length + "\r\n5\r\nfirst\r\n0\r\n\r\n")
        } test: { server, client in
            for path in ["two", "one", "one", "one"] { try await client.get(path) }
            #expect(server.counts.acceptedConnections == 2)
        }
    }

    @Test(arguments: [
        "\r\n", "\n", "\r\n\r\n", "\r\n X: 1\r\n", "HTTP/1.1 200 OK\r\n \r\n", "HTTP/1.1 200 OK\r\n\t\r\n", " \r\n",
    ])
    func blankFirstLineIsDescribed(start: String) async throws {
        let bytes = start + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
        try await expectMalformed(bytes)
        try await withScript(bytes) { server, client in
            let error = try await failure { try await client.get("") }
            let beginning = "the response from 127.0.0.1:\(server.url.port ?? 0) is malformed: "
            #expect(error.reason.hasPrefix(beginning) && error.reason.count > beginning.count, "\(error)")
        }
    }

    // MARK: Bodies

    @Test(arguments: [
        "0x2\r\nhi\r\n0\r\n\r\n", "2\r\nhi\r\n0\r\nX\r\n\r\n", "2\r\nhi\r\n0\r\nX : 1\r\n\r\n",
        "2\r\nhi\r\n0\r\n X: 1\r\n\r\n", "x\r\nhi\r\n0\r\n\r\n", "-2\r\nhi\r\n0\r\n\r\n", "2\r\nhix\r\n0\r\n\r\n",
        "10000000000000000\r\nhi\r\n0\r\n\r\n", "\r\nhi\r\n0\r\n\r\n",
    ])
    func malformedChunksAreNotALostConnection(body: String) async throws {
        try await expectMalformed("\(Self.chunked)\r\n\(body)")
    }
}
#endif
