#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks the request after 421 (Misdirected Request): the same one, once, on a new connection.
@Suite("Wire: misdirected requests", .timeLimit(.minutes(1)))
struct MisdirectedRequestTests {
    /// Answers 421 on the first connection, and on every connection to `/never`.
    private static let handler: LoopbackServer.Handler = { exchange in
        let body = try exchange.readBody()
        guard exchange.request.path == "/never" || exchange.request.connectionIndex == 0 else {
            return try exchange.respond(text: "\(exchange.request.method) \(String(decoding: body, as: UTF8.self))")
        }
        try exchange.respond(status: 421, text: "wrong connection")
    }

    @Test(arguments: [Request.Method.get, .post, .put, .delete])
    func requestIsSentOnceMoreOnANewConnection(method: Request.Method) async throws {
        try await withServer(Self.handler) { server, client in
            let body: Request.Body = method == .post || method == .put ? .text("body") : .none
            let response = try await client.response(for: client.request(method, "a", body: body), as: String.self)
            #expect(response.value == (body.isNone ? "\(method) " : "\(method) body"))
            #expect(server.counts.acceptedConnections == 2)
            #expect(server.requests.map(\.connectionIndex) == [0, 1])
        }
    }

    @Test func secondAnswerOf421IsTheResponse() async throws {
        try await withServer(Self.handler) { server, client in
            let error = try await failure { try await client.get("never") }
            #expect(error.kind == .status && error.status == 421)
            #expect(error.body == Data("wrong connection".utf8))
            #expect(server.requests.count == 2)
        }
    }

    @Test func bodyThatCanBeSentOnceIsNotSentAgain() async throws {
        try await withServer(Self.handler) { server, client in
            let parts = AsyncStream { continuation in
                continuation.yield(Data("once".utf8))
                continuation.finish()
            }
            let error = try await failure { try await client.post("a", body: .stream(parts)) }
            #expect(error.kind == .status && error.status == 421)
            #expect(server.requests.count == 1)
        }
    }

    @Test func redirectAfterwardsUsesAnyConnection() async throws {
        let handler: LoopbackServer.Handler = { exchange in
            switch (exchange.request.path, exchange.request.connectionIndex) {
            case ("/a", 0): try exchange.respond(status: 421)
            case ("/a", _): try exchange.respond(status: 302, headers: [("Location", "/b")])
            default: try exchange.respond(text: "end")
            }
        }
        try await withServer(handler) { server, client in
            let response = try await client.response(for: client.request(.get, "a"), as: String.self)
            #expect(response.value == "end")
            #expect(server.counts.acceptedConnections == 2)
        }
    }
}
#endif
