// For Linux only: URLSession has a limit of its own.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Glibc
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

    /// Over HTTP/2, the stream of a refused request stays open until the response ends.
    @Test func aBodyRefusedOverHTTP2IsNotSentAfterTheLimit() async throws {
        let server = try RefusingServer(endsAfter: .milliseconds(400))
        let session = Session(configuration: .test { $0.usesHTTP2WithoutTLS = true })
        let client = try Client(baseURL: "http://127.0.0.1:\(server.port)", session: session)
        let request = try upload(client, limit: .milliseconds(100))
        let error = try await failure { try await client.response(for: request) }
        #expect(error.status == 413 && error.metrics?.httpVersion == .http2, "\(error)")
        await session.invalidateAndCancel()
        let types = await server.frameTypes.first { _ in true }
        // The head of the request, and at the end the RST_STREAM of its stream; no DATA.
        #expect(types?.filter { $0 == 0 || $0 == 1 || $0 == 3 } == [1, 3], "\(types ?? [])")
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

/// A server over HTTP/2 that answers the head of a request with a status of 413, and ends that response later.
private final class RefusingServer: Sendable {
    let port: Int
    /// The types of the frames of the connection, as one element at its end.
    let frameTypes: AsyncStream<[UInt8]>

    init(endsAfter time: Duration) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        port = try LoopbackPort.bind(listener)
        try #require(listen(listener, 1) == 0)
        let (stream, source) = AsyncStream.makeStream(of: [UInt8].self)
        frameTypes = stream
        Thread.detachNewThread {
            let descriptor = Glibc.accept(listener, nil, nil)
            close(listener)
            source.yield(Self.serve(descriptor, time))
            source.finish()
            close(descriptor)
        }
    }

    private static func serve(_ descriptor: Int32, _ time: Duration) -> [UInt8] {
        guard read(descriptor, count: 24) != nil else { return [] }
        send(descriptor, type: 4, flags: 0, stream: 0)
        var types: [UInt8] = []
        while let head = read(descriptor, count: 9) {
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard read(descriptor, count: length) != nil else { break }
            types.append(head[3])
            if head[3] == 4, head[4] == 0 { send(descriptor, type: 4, flags: 1, stream: 0) }
            guard head[3] == 1 else { continue }
            // A literal field without indexing, whose name is that of entry 8, `:status`.
            send(descriptor, type: 1, flags: 4, stream: head[8], payload: [8, 3] + Array("413".utf8))
            // The client must do nothing in this time, so there is no event to wait for.
            usleep(UInt32(time.components.attoseconds / 1_000_000_000_000))
            send(descriptor, type: 0, flags: 1, stream: head[8])
        }
        return types
    }

    private static func send(
        _ descriptor: Int32, type: UInt8, flags: UInt8, stream: UInt8, payload: [UInt8] = []
    ) {
        let frame = [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
        _ = unsafe Glibc.send(descriptor, frame, frame.count, Int32(MSG_NOSIGNAL))
    }

    /// Returns so many bytes; nil at the end.
    private static func read(_ descriptor: Int32, count: Int) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: count)
        let got = count == 0 ? 0 : unsafe recv(descriptor, &buffer, count, Int32(MSG_WAITALL))
        return got == count ? buffer : nil
    }
}
#endif
