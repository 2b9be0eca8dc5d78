#if os(Linux) && !TERN_URLSESSION
import Glibc
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks how connections are kept, lost, limited and shared.
@Suite("Wire: connections", .timeLimit(.minutes(1)))
struct ConnectionTests {
    /// Answers the first request of each connection, reads the second and ends the connection without an answer.
    static let secondRequestIsLost: LoopbackServer.Handler = { exchange in
        try exchange.drainBody()
        if exchange.request.requestIndex == 1 { return exchange.close() }
        try exchange.respond(text: "\(exchange.request.connectionIndex)")
    }

    // MARK: Keep-alive

    @Test func connectionIsKeptAndUsedAgain() async throws {
        try await withServer {
            try $0.respond(text: "ok")
        } test: { server, client in
            for number in 0..<5 {
                let response = try await client.response(for: client.request(.get, ""))
                #expect(response.metrics.isReusedConnection == (number > 0))
            }
            _ = try await client.post("", body: .text("x"))
            #expect(try await client.head("").status == 200)
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test func consecutiveRequestsGoToTheirOwnHostAndPath() async throws {
        // The connections and the cached destinations know the host and the target of the previous request.
        let answer: LoopbackServer.Handler = { exchange in
            try exchange.drainBody()
            try exchange.respond(text: "\(exchange.request["Host"] ?? "") \(exchange.request.target)")
        }
        try await withServer(answer) { first, client in
            try await withServer(answer) { second, _ in
                let targets = [
                    "/", "/a/b?c=d&e", "/%C3%A4%2F?%20", "/?", "/" + String(repeating: "x", count: 5_000), "/",
                ]
                for target in targets {
                    for server in [first, second, second, first] {
                        let authority = "127.0.0.1:\(server.url.port ?? 0)"
                        let text: String = try await client.get("http://\(authority)\(target)")
                        #expect(text == "\(authority) \(target)")
                        let posted: String = try await client.post("http://\(authority)\(target)", body: .text("x"))
                        #expect(posted == text)
                    }
                }
            }
        }
    }

    @Test func sessionsShareNoConnections() async throws {
        try await withServer {
            try $0.respond(text: "ok")
        } test: { server, client in
            let other = Client(baseURL: server.url, session: Session(configuration: .test()))
            try await client.get("")
            try await other.get("")
            #expect(server.counts.acceptedConnections == 2)
        }
    }

    @Test func connectionThatTheServerEndsIsNotUsedAgain() async throws {
        try await withServer {
            try $0.respond(headers: [("Connection", "close")], text: "ok")
        } test: { server, client in
            for _ in 0..<3 { try await client.get("") }
            #expect(server.counts.acceptedConnections == 3)
        }
    }

    @Test(arguments: [Request.Method.get, .post]) func connectionClosedWhileIdleIsReplacedBeforeAnythingIsSent(
        method: Request.Method
    ) async throws {
        try await withServer {
            try $0.respond(text: "ok")
        } test: { server, client in
            try await client.get("")
            try await server.wait { $0.idleConnections == 1 }
            server.closeIdleConnections()
            try await server.wait { $0.openConnections == 0 }
            let response = try await client.response(for: client.request(method, ""))
            #expect(response.metrics.transactions == 1 && !response.metrics.isReusedConnection)
            #expect(server.requests.map(\.connectionIndex) == [0, 1])
        }
    }

    // MARK: A pooled connection fails during a request

    @Test(arguments: [Request.Method.get, .head, .put, .delete, "OPTIONS", "TRACE"])
    func safeRequestIsSentAgainOnceOnADeadPooledConnection(method: Request.Method) async throws {
        try await withServer(Self.secondRequestIsLost) { server, client in
            try await client.get("")
            let response = try await client.response(for: client.request(method, "again"))
            #expect(response.metrics.transactions == 2)
            #expect(!response.metrics.isReusedConnection)
            #expect(server.requests.map(\.target) == ["/", "/again", "/again"])
            #expect(server.requests.map(\.requestIndex) == [0, 1, 0])
        }
    }

    @Test(arguments: [0, 10, 100_000, 1_000_000]) func replayableBodyIsSentAgainWhole(size: Int) async throws {
        let pattern = LoopbackServer.Pattern(count: size)
        try await withServer { exchange in
            let isWhole = pattern.matches(try exchange.readBody()) && exchange.bodyBytesRead == size
            if exchange.request.requestIndex == 1 { return exchange.close() }
            try exchange.respond(text: isWhole ? "whole" : "torn")
        } test: { server, client in
            try await client.get("")
            let request = try client.request(.put, "", body: .data(Data(pattern.bytes())))
            let response = try await client.response(for: request)
            #expect(response.metrics.transactions == 2)
            #expect(String(decoding: response.value, as: UTF8.self) == "whole")
            #expect(server.requests.map(\.bodySize) == [0, size, size])
        }
    }

    @Test func streamedResponseIsRequestedAgainOnADeadPooledConnection() async throws {
        try await withServer(Self.secondRequestIsLost) { server, client in
            try await client.get("")
            var text = ""
            for try await line in client.stream("").lines { text += line }
            #expect(text != "0")
            #expect(server.requests.map(\.requestIndex) == [0, 1, 0])
        }
    }

    @Test func theRepetitionHasWhatIsLeftOfTheTotalLimit() async throws {
        try await withServer(configuration: .test { $0.timeouts.total = .seconds(1) }) { exchange in
            if exchange.request.target == "/again" { usleep(700_000) }
            if exchange.request.requestIndex == 1 { return exchange.close() }
            try exchange.respond(text: "ok")
        } test: { server, client in
            try await client.get("")
            let error = try await failure { try await client.get("again") }
            #expect(error.kind == .totalTimedOut)
            #expect(server.requests.map(\.target) == ["/", "/again", "/again"])
        }
    }

    @Test func failedRepetitionIsNotRepeated() async throws {
        try await withServer { exchange in
            if exchange.request.target == "/again" { return exchange.close() }
            try exchange.respond(text: "ok")
        } test: { server, client in
            try await client.get("")
            let error = try await failure { try await client.get("again") }
            #expect(error.kind == .connectionLost)
            #expect(error.metrics?.transactions == 2)
            #expect(server.requests.map(\.target) == ["/", "/again", "/again"])
        }
    }

    @Test(arguments: [false, true]) func lostFreshConnectionIsNotRetried(resets: Bool) async throws {
        try await withServer {
            resets ? $0.reset() : $0.close()
        } test: { server, client in
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .connectionLost)
            #expect(error.metrics?.transactions == 1)
            #expect(error.reason.contains("may have acted"))
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    ])
    func requestIsNotSentAgainOnceAByteOfTheResponseWasSeen(start: String) async throws {
        try await withServer { exchange in
            if exchange.request.requestIndex == 0 { return try exchange.respond(text: "ok") }
            try exchange.write(start)
            try exchange.waitUntilReceived()
            exchange.close()
        } test: { server, client in
            try await client.get("")
            let error = try await failure { try await client.get("") }
            #expect(error.kind == .connectionLost || error.kind == .truncatedBody)
            #expect(server.counts.requestsReceived == 2)
        }
    }

    /// A request that is not idempotent, or whose body cannot be sent twice.
    enum Unrepeatable: String, CaseIterable, Sendable {
        case postWithoutBody, postText, postLarge, postFile, postStream, postStreamWithLength, patch, putStream

        func request(_ client: Client, file: URL) throws -> Request {
            let stream = AsyncStream<Data> { continuation in
                continuation.yield(Data(count: 10))
                continuation.finish()
            }
            return switch self {
            case .postWithoutBody: try client.request(.post, "act")
            case .postText: try client.request(.post, "act", body: .text("text"))
            case .postLarge: try client.request(.post, "act", body: .data(Data(count: 1 << 20)))
            case .postFile: try client.request(.post, "act", body: .file(file))
            case .postStream: try client.request(.post, "act", body: .stream(stream))
            case .postStreamWithLength: try client.request(.post, "act", body: .stream(stream, length: 10))
            case .patch: try client.request(.patch, "act", body: .json(["a": 1]))
            case .putStream: try client.request(.put, "act", body: .stream(stream))
            }
        }
    }

    @Test(arguments: Unrepeatable.allCases, [false, true])
    func requestWithSideEffectsIsReceivedOnce(what: Unrepeatable, resets: Bool) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
        try Data(count: 100).write(to: file)
        // A leftover does no harm: the folder is the system's temporary one.
        defer { try? FileManager.default.removeItem(at: file) }
        try await withServer { exchange in
            try exchange.drainBody()
            if exchange.request.requestIndex == 0 { return try exchange.respond(text: "ok") }
            if resets { exchange.reset() } else { exchange.close() }
        } test: { server, client in
            try await client.get("")
            let request = try what.request(client, file: file)
            let error = try await failure { try await client.response(for: request) }
            #expect(error.kind == .connectionLost)
            #expect(error.reason.contains("may have acted"))
            #expect(error.metrics?.transactions == 1)
            #expect(server.requests.map(\.target) == ["/", "/act"])
            // The session still works.
            try await client.get("")
            #expect(server.requests.map(\.target) == ["/", "/act", "/"])
        }
    }

    // MARK: Other ways to a server

    private static let hasIPv6: Bool = {
        // A machine without IPv6 is not a failure.
        (try? LoopbackServer(on: .ipv6) { _ in })?.stop() != nil
    }()

    @Test(.enabled(if: hasIPv6, "this machine has no IPv6 loopback")) func ipv6ServerIsReached() async throws {
        try await withServer(on: .ipv6) {
            try $0.respond(text: $0.request["Host"] ?? "none")
        } test: { server, client in
            let response = try await client.response(for: client.request(.get, "x"), as: String.self)
            #expect(response.value == "[::1]:\(server.port)")
            #expect(response.metrics.remoteAddress == "::1")
        }
    }

    @Test func unixSocketIsReached() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        try await withServer(on: .unix(path: path)) { exchange in
            try exchange.respond(text: "\(exchange.request["Host"] ?? "none") \(exchange.request.target)")
        } test: { server, client in
            #expect(try await client.get("x?y=1", as: String.self) == "localhost /x?y=1")
            // The socket of a request replaces that of the session, and has connections of its own.
            let other = try LoopbackServer { try $0.respond(text: "tcp") }
            defer { other.stop() }
            var request = try Request(.get, "http://somewhere.invalid/z")
            request.unixSocketPath = path
            let session = Session(configuration: .test())
            #expect(try await session.response(for: request, decode: .string).value == "somewhere.invalid /z")
            let plain = try Request(url: other.url)
            #expect(try await session.response(for: plain, decode: .string).value == "tcp")
            #expect(server.counts.requestsReceived == 2)
        }
    }

    /// File systems compare the bytes of names. By canonical equivalence, both names would be one.
    @Test func unixSocketsWithEquivalentNamesAreDifferent() async throws {
        let name = UUID().uuidString.prefix(8)
        let paths = ["/tmp/tern-\(name)-\u{E9}", "/tmp/tern-\(name)-e\u{301}"]
        let servers = try paths.map { path in
            try LoopbackServer(on: .unix(path: path)) { try $0.respond(text: "\(path.utf8.count)") }
        }
        defer { for server in servers { server.stop() } }
        let session = Session(configuration: .test())
        for path in paths + paths {
            var request = try Request(.get, "http://localhost/")
            request.unixSocketPath = path
            #expect(try await session.response(for: request, decode: .string).value == "\(path.utf8.count)")
        }
        #expect(servers.map { $0.counts.requestsReceived } == [2, 2])
    }

    /// A zone means nothing to another host (RFC 6874 §4).
    @Test func theZoneOfAnAddressIsNotSent() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        try await withServer(on: .unix(path: path)) { exchange in
            try exchange.respond(text: "\(exchange.request["Host"] ?? "none") \(exchange.request.target)")
        } test: { _, _ in
            let session = Session(configuration: .test())
            for (url, expected) in [
                ("http://[fe80::1%25eth0]:81/a", "[fe80::1]:81 /a"), ("http://[fe80::1%251]/a%25", "[fe80::1] /a%25"),
            ] {
                var request = try Request(.get, url)
                request.unixSocketPath = path
                #expect(try await session.response(for: request, decode: .string).value == expected)
            }
        }
    }

    /// The socket that a request names is for the host of its URL alone.
    @Test func aRedirectDoesNotLeaveTheHostOfAUnixSocket() async throws {
        let path = "/tmp/tern-\(UUID().uuidString.prefix(8)).sock"
        try await withServer(on: .unix(path: path)) { exchange in
            let places = ["/": "/next", "/next": "http://bank.example/"]
            guard let place = places[exchange.request.target] else { return try exchange.respond(text: "reached") }
            try exchange.respond(status: 302, headers: [("Location", place)], text: "")
        } test: { server, _ in
            var request = try Request(.get, "http://docker.invalid/")
            request.unixSocketPath = path
            let session = Session(configuration: .test())
            let error = try await failure { [request] in try await session.response(for: request) }
            #expect(error.kind == .redirect && error.reason.contains("a Unix socket of its own"))
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test func missingUnixSocketIsAConnectionFailure() async throws {
        var request = try Request(.get, "http://localhost/")
        let path = "/tmp/tern-\(UUID().uuidString).sock"
        request.unixSocketPath = path
        let session = Session(configuration: .test())
        let error = try await failure { [request] in try await session.response(for: request) }
        #expect(error.kind == .connectionFailed || error.kind == .connectionRefused)
        #expect(error.reason.contains("the Unix socket \(path)"))
    }

    @Test func tooLongUnixSocketPathIsNamed() async throws {
        var request = try Request(.get, "http://localhost/")
        request.unixSocketPath = "/tmp/" + String(repeating: "x", count: 200)
        let session = Session(configuration: .test())
        let error = try await failure { [request] in try await session.response(for: request) }
        #expect(error.kind == .invalidRequest && error.reason.contains("the path of the Unix socket /tmp/xxx"))
    }
}
#endif
