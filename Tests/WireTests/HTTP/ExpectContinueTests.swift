// For Linux only: URLSession has a limit of its own.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

/// Checks bodies that wait for 100 (Continue), over HTTP/1 (RFC 9110 §10.1.1).
@Suite("Wire: Expect: 100-continue", .timeLimit(.minutes(1)))
struct ExpectContinueTests {
    private static var data: Data { Data(repeating: 7, count: 1 << 20) }

    /// A body that can be sent only once.
    private static var sequence: Request.Body {
        let (chunks, source) = AsyncStream.makeStream(of: Data.self)
        source.yield(data)
        source.finish()
        return .stream(chunks)
    }

    private func upload(
        _ client: Client, _ path: String = "", body: Request.Body = .data(data), limit: Duration = .seconds(500)
    ) throws -> Request {
        var request = try client.request(.put, path, body: body)
        request.expectsContinue = true
        request.timeouts = Timeouts(expectContinue: limit)
        return request
    }

    @Test(arguments: [Request.Body.data(data), sequence])
    func aBodyFollowsThePermission(body: Request.Body) async throws {
        try await withServer { exchange in
            #expect(exchange.request["Expect"] == (exchange.request.method == "PUT" ? "100-continue" : nil))
            // The first read sends 100.
            try exchange.respond(text: "\(try exchange.drainBody())")
        } test: { server, client in
            let response = try await client.response(for: try upload(client, body: body), as: String.self)
            #expect(response.value == "1048576")
            #expect(try await client.get("") == Data("0".utf8))
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test(arguments: ["HTTP/1.1", "HTTP/1.0"]) func aBodyFollowsTheLimitIfTheServerIsSilent(
        version: String
    ) async throws {
        try await withServer { exchange in
            exchange.sendsContinue = false
            let count = try exchange.drainBody()
            try exchange.write("\(version) 200 OK\r\nContent-Length: \("\(count)".count)\r\n\r\n\(count)")
        } test: { _, client in
            let start = ContinuousClock.now
            let request = try upload(client, limit: .milliseconds(200))
            #expect(try await client.response(for: request, as: String.self).value == "1048576")
            let time = start.duration(to: .now)
            #expect(time >= .milliseconds(200) && time < .seconds(20))
        }
    }

    /// The server returns only after the client has closed the connection.
    @Test(arguments: [401, 413, 500]) func aRefusedBodyIsNotSent(status: Int) async throws {
        let closed = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.write("HTTP/1.1 \(status) No\r\nContent-Length: 2\r\n\r\nno")
            try exchange.waitForClientToClose()
            closed.open()
        } test: { server, client in
            let error = try await failure { try await client.response(for: try upload(client)) }
            #expect(error.status == status && error.body == Data("no".utf8), "\(error)")
            #expect((error.metrics?.sentBytes ?? .max) < 1_000)
            try await server.wait { $0.openConnections == 0 }
            #expect(closed.isOpen && server.counts.bytesIn < 1_000)
        }
    }

    @Test func aChallengedBodyIsSentOnceWithItsCredential() async throws {
        try await withServer { exchange in
            guard exchange.request["Authorization"] != nil else {
                return try exchange.respond(status: 401, headers: [("WWW-Authenticate", "Basic realm=\"a\"")], text: "")
            }
            try exchange.respond(text: "\(exchange.request["Expect"] ?? "") \(try exchange.drainBody())")
        } test: { server, _ in
            var configuration = Session.Configuration.test()
            configuration.credentials = try FixedCredentials([server.url.absoluteString: .user("a", password: "b")])
            let client = Client(baseURL: server.url, session: Session(configuration: configuration))
            let response = try await client.response(for: try upload(client), as: String.self)
            #expect(response.value == "100-continue 1048576")
            #expect(server.requests.map(\.bodySize) == [0, 1 << 20])
        }
    }

    @Test func aRefusedExpectationIsDroppedOnce() async throws {
        try await withServer { exchange in
            if exchange.request["Expect"] != nil || exchange.request.path == "/always" {
                return try exchange.respond(status: 417, text: "no expectations")
            }
            try exchange.respond(text: "\(try exchange.drainBody())")
        } test: { server, client in
            #expect(try await client.response(for: try upload(client), as: String.self).value == "1048576")
            #expect(server.requests.count == 2)
            // The field of a caller is an expectation, too.
            let own = try client.request(.put, "", headers: ["Expect": "100-continue"], body: .data(Self.data))
            #expect(try await client.response(for: own, as: String.self).value == "1048576")
            #expect(server.requests.count == 4)
            let error = try await failure { try await client.response(for: try upload(client, "always")) }
            #expect(error.status == 417 && server.requests.count == 6)
            // A sequence cannot be sent again.
            let once = try upload(client, body: Self.sequence)
            let delivered = try await failure { try await client.response(for: once) }
            #expect(delivered.status == 417 && server.requests.count == 7)
            // Without an expectation, a 417 is a response like others.
            let plain = try await failure { try await client.put("always", body: .data(Self.data)) }
            #expect(plain.status == 417 && server.requests.count == 8)
        }
    }

    @Test func aRequestWithoutABodyHasNoExpectation() async throws {
        try await withServer { exchange in
            try exchange.respond(text: exchange.request["Expect"] ?? "none")
        } test: { _, client in
            for body in [Request.Body.none, .data(Data())] {
                var request = try client.request(.post, "", body: body)
                request.expectsContinue = true
                #expect(try await client.response(for: request, as: String.self).value == "none")
            }
        }
    }

    @Test func invalidExpectationsAreRefused() async throws {
        try await withServer { exchange in
            try exchange.respond(text: "")
        } test: { server, client in
            let negative = try upload(client, limit: .seconds(-1))
            #expect(try await failure { try await client.response(for: negative) }.kind == .invalidRequest)
            let other = try await failure { try await client.put("", headers: ["Expect": "more"], body: .text("x")) }
            #expect(other.kind == .invalidRequest)
            #expect(server.counts.acceptedConnections == 0)
        }
    }
}
#endif
