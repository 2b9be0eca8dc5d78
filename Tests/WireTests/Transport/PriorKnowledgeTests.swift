// For Linux only: URLSession has no such option.
#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernTesting
import Testing

/// Checks HTTP/2 without TLS: with nghttpd, with servers that do not speak it, and with scripted frames.
@Suite("Wire: HTTP/2 without TLS", .timeLimit(.minutes(1)))
struct PriorKnowledgeTests {
    private static let configuration = Session.Configuration.test { $0.usesHTTP2WithoutTLS = true }

    @Test(.enabled(if: Programs.areExpected(["nghttpd"]), "nghttpd is missing; `make test` installs it"))
    func nghttpdServesRequestsWithTheirPriority() async throws {
        try await inTestFolder { folder in try await checkNghttpd(in: folder) }
    }

    private func checkNghttpd(in folder: TestFolder) async throws {
        try folder.write("hello", to: "small")
        let port = try LoopbackPort.free()
        let output = "\(folder.path)/output"
        let child = try Child(
            [
                "nghttpd", "--no-tls", "--verbose", "--address=127.0.0.1", "--htdocs=\(folder.path)", "--echo-upload",
                "\(port)",
            ], output: output)
        defer { withExtendedLifetime(child) {} }
        #expect(await LoopbackPort.wait([port]))
        let client = try Client(
            baseURL: "http://127.0.0.1:\(port)", session: Session(configuration: Self.configuration))
        let first = try await client.response(for: client.request(.get, "small"), as: String.self)
        #expect(first.value == "hello" && first.metrics.httpVersion == .http2 && first.metrics.tls == nil)
        var request = try client.request(.post, "echo", body: .text("back"))
        request.priority = .high
        let second = try await client.response(for: request, as: String.self)
        #expect(second.value == "back" && second.metrics.isReusedConnection)
        let said = try String(contentsOfFile: output, encoding: .utf8)
        #expect(said.contains("priority: u=1"))
        #expect(said.components(separatedBy: "priority: u=").count == 2)
    }

    @Test func aServerOfHTTP1IsNamed() async throws {
        let handler: LoopbackServer.Handler = { try $0.respond(status: 505) }
        try await withServer(configuration: Self.configuration, handler) { _, client in
            let error = try await failure { try await client.get("a") }
            #expect(error.kind == .malformedResponse && "\(error)".contains("HTTP/1"), "\(error)")
        }
    }

    @Test func aServerThatClosesIsNamed() async throws {
        let handler: LoopbackServer.Handler = { $0.close() }
        try await withServer(configuration: Self.configuration, handler) { _, client in
            let error = try await failure { try await client.get("a") }
            #expect(error.kind == .connectionLost && "\(error)".contains("HTTP/2"), "\(error)")
        }
    }

    /// The frames of a server's SETTINGS, RST_STREAM for stream 1 with REFUSED_STREAM, and a response to it.
    private static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0]
    private static let refused: [UInt8] = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7]
    /// HEADERS with `:status: 204`, an entry of HPACK's static table.
    private static let noContent: [UInt8] = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x89]

    @Test func aRefusedStreamIsSentAgainForEveryMethod() async throws {
        // The preface of the client reads as the head of a request.
        let handler: LoopbackServer.Handler = { exchange in
            let isFirst = exchange.request.connectionIndex == 0
            try exchange.write(Self.settings + (isFirst ? Self.refused : Self.noContent))
            try exchange.waitForClientToClose()
        }
        try await withServer(configuration: Self.configuration, handler) { server, client in
            let request = try client.request(.post, "a", body: .text("once"))
            let response = try await client.response(for: request)
            // This server answers the preface. If its refusal arrives before the stream is sent, the connection has failed,
            // and the request goes to another one.
            #expect(response.status == 204 && server.counts.acceptedConnections >= 2)
        }
    }

    @Test func aSecondRefusalIsTheError() async throws {
        let handler: LoopbackServer.Handler = { exchange in
            try exchange.write(Self.settings + Self.refused)
            try exchange.waitForClientToClose()
        }
        try await withServer(configuration: Self.configuration, handler) { server, client in
            let error = try await failure { try await client.get("a") }
            #expect(error.kind == .connectionLost && server.counts.acceptedConnections >= 2, "\(error)")
        }
    }
}
#endif
