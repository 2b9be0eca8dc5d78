// For Linux only: URLSession decides about its versions of HTTP by itself.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import Testing

/// Checks the one further attempt after a server over HTTP/2 has refused to process a request there.
@Suite("Wire: HTTP/2 servers that require another connection", .timeLimit(.minutes(1)))
struct RequiredHTTP1Tests {
    /// The error codes of RFC 9113 §7.
    private static let required: UInt32 = 13
    private static let refusedStream: UInt32 = 7

    private func client(of server: TwoVersionServer) throws -> Client {
        let configuration = Session.Configuration.test { $0.usesHTTP2WithoutTLS = true }
        return try Client(
            baseURL: "http://127.0.0.1:\(server.port)", session: Session(configuration: configuration))
    }

    @Test(arguments: [Request.Method.get, .post])
    func aRequestThatRequiresHTTP1ArrivesOverHTTP1Once(method: Request.Method) async throws {
        let server = try TwoVersionServer([.error(Self.required)])
        defer { server.stop() }
        let client = try self.client(of: server)
        let body: Request.Body = method == .post ? .text("body") : .none
        let first = try await client.response(for: client.request(method, "a", body: body), as: String.self)
        #expect(first.value == (method == .post ? "POST /a body" : "GET /a "))
        #expect(first.metrics.httpVersion == .http11 && first.metrics.transactions == 2)
        // The server is known from now on.
        let next = try await client.response(for: client.request(.get, "b"), as: String.self)
        #expect(next.value == "GET /b " && next.metrics.isReusedConnection && next.metrics.transactions == 1)
        #expect(server.log == ["HTTP/2", "\(method) /a", "GET /b"])
    }

    @Test func aBodyThatCanBeSentOnceIsNotSentAgain() async throws {
        let server = try TwoVersionServer([.error(Self.required)])
        defer { server.stop() }
        let client = try self.client(of: server)
        let parts = AsyncStream { continuation in
            continuation.yield(Data("once".utf8))
            continuation.finish()
        }
        let error = try await failure { try await client.post("a", body: .stream(parts)) }
        #expect(error.kind == .connectionLost && error.reason.contains("did not process"), "\(error)")
        #expect(error.wasNotProcessed && error.http2Code == Self.required)
        #expect(server.log == ["HTTP/2"])
    }

    /// A reset that does not state that nothing was processed: CANCEL, ENHANCE_YOUR_CALM and an unknown code.
    @Test(arguments: [8, 11, 0x1234_5678] as [UInt32]) func theCodeOfAResetIsKnown(code: UInt32) async throws {
        let server = try TwoVersionServer([.error(code)])
        defer { server.stop() }
        let client = try self.client(of: server)
        let error = try await failure { try await client.post("a", body: .text("body")) }
        #expect(error.kind == .connectionLost && error.http2Code == code && !error.wasNotProcessed, "\(error)")
        #expect(server.log.count == 1)
    }

    @Test func aRequestThatIsRefusedEachTimeFails() async throws {
        let server = try TwoVersionServer([.error(Self.refusedStream)])
        defer { server.stop() }
        let client = try self.client(of: server)
        let error = try await failure { try await client.get("a") }
        #expect(error.kind == .connectionLost && error.wasNotProcessed, "\(error)")
        #expect(error.http2Code == Self.refusedStream)
        // Each connection refuses its only request, and takes no other.
        #expect(server.log.count == 10 && server.connections == 10)
    }

    @Test func aMisdirectedRequestIsSentOnceMoreOnANewConnection() async throws {
        let server = try TwoVersionServer([.status("421"), .status("204")])
        defer { server.stop() }
        let client = try self.client(of: server)
        for path in ["a", "b"] {
            let response = try await client.response(for: client.request(.post, path, body: .text("body")))
            #expect(response.status == 204 && response.metrics.httpVersion == .http2)
        }
        // The first connection carries no further request, and is closed.
        #expect(server.connections == 2 && server.log == ["HTTP/2", "HTTP/2", "HTTP/2"])
        var ends = server.ends.makeAsyncIterator()
        #expect(await ends.next() == 0)
        let never = try TwoVersionServer([.status("421"), .status("421")])
        defer { never.stop() }
        let other = try self.client(of: never)
        let error = try await failure { try await other.get("a") }
        #expect(error.status == 421 && never.log == ["HTTP/2", "HTTP/2"])
    }
}
#endif
