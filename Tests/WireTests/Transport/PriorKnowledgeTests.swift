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

    private func client(of server: TwoVersionServer) throws -> Client {
        try Client(
            baseURL: "http://127.0.0.1:\(server.port)", session: Session(configuration: Self.configuration))
    }

    /// REFUSED_STREAM (RFC 9113 §7).
    private static let refusal = TwoVersionServer.Answer.error(7)

    @Test func aRefusedStreamIsSentAgainForEveryMethod() async throws {
        let server = try TwoVersionServer([Self.refusal, .status("204")])
        defer { server.stop() }
        let client = try client(of: server)
        let response = try await client.response(for: client.request(.post, "a", body: .text("once")))
        #expect(response.status == 204 && response.metrics.transactions == 2)
        #expect(server.log == ["HTTP/2", "HTTP/2"] && server.connections == 2)
    }
}
#endif
