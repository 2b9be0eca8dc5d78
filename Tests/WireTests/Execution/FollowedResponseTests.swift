#if os(Linux) && !TERN_URLSESSION
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks the body of a redirect or a challenge that is followed by another request: no caller waits for it, and it
/// never causes a failure.
@Suite("Wire: bodies of followed responses", .timeLimit(.minutes(1)))
struct FollowedResponseTests {
    private typealias Way = CollectedDecompressionTests.Way

    private struct Ada: CredentialProvider {
        @concurrent func credential(
            for challenge: AuthenticationChallenge, of request: Request
        ) async throws -> Credential? { challenge.previousFailures == 0 ? .user("ada", password: "x") : nil }
    }

    private struct Stop: SessionPolicy {
        @concurrent func redirect(
            to proposed: Request, after response: ResponseHead, of task: AnySessionTask
        ) async throws -> RedirectDecision? { .stop }
    }

    private static let configuration = Session.Configuration.test {
        $0.maximumBodySize = 1 << 20
        $0.credentials = Ada()
    }

    /// Redirects `/302/KIND` to `/end`, and answers `/401/KIND` with a challenge; the kind selects the body.
    private static let handler: LoopbackServer.Handler = { exchange in
        let parts = exchange.request.path.split(separator: "/")
        guard parts.count == 2, let status = Int(parts[0]), status == 302 || exchange.request["Authorization"] == nil
        else { return try exchange.respond(text: "the end") }
        let field = status == 302 ? ("Location", "/end") : ("WWW-Authenticate", "Basic realm=\"a\"")
        switch parts[1] {
        case "slow":
            try exchange.writeChunkedHead(status: status, headers: [field])
            try exchange.writeChunk([1])
            try exchange.waitForClientToClose()
        case "endless":
            try exchange.writeChunkedHead(status: status, headers: [field])
            while true { try exchange.writeChunk([UInt8](repeating: 1, count: 8 << 10)) }
        case "large":
            try exchange.writeHead(status: status, headers: [field, ("Content-Length", "\(200 << 20)")])
            try exchange.streamZeros(count: 200 << 20)
        case "cut":
            try exchange.writeHead(status: status, headers: [field, ("Content-Length", "100")])
            try exchange.write("only this")
            exchange.close()
        case "gzip":
            try exchange.respond(status: status, headers: [field, ("Content-Encoding", "gzip")], text: "no gzip")
        case "twice":
            try exchange.respond(status: status, headers: [field, ("Content-Encoding", "gzip, gzip")], text: "no gzip")
        case "medium":
            try exchange.respond(status: status, headers: [field], body: [UInt8](repeating: 1, count: 300 << 10))
        default:
            try exchange.respond(status: status, headers: [field], text: "small")
        }
    }

    @Test(arguments: [302, 401], ["slow", "endless", "large", "cut", "gzip", "twice", "medium", "small"])
    func bodyOfAFollowedResponseDoesNotMatter(status: Int, kind: String) async throws {
        try await withServer(configuration: Self.configuration, Self.handler) { _, client in
            for way in Way.allCases {
                let body = try await way.body(of: "\(status)/\(kind)", client)
                #expect(body == Data("the end".utf8), "\(way)")
            }
        }
    }

    @Test(arguments: [302, 401], CollectedDecompressionTests.Way.allCases)
    func smallBodyOfAFollowedResponseLeavesItsConnection(
        status: Int, way: CollectedDecompressionTests.Way
    ) async throws {
        try await withServer(configuration: Self.configuration, Self.handler) { server, client in
            for _ in 0..<3 { _ = try await way.body(of: "\(status)/small", client) }
            #expect(server.counts.acceptedConnections == 1)
        }
    }

    @Test(arguments: ["small", "medium"])
    func redirectThatIsStoppedDeliversItsBody(kind: String) async throws {
        let count = kind == "small" ? 5 : 300 << 10
        try await withServer(configuration: .test { $0.policy = Stop() }, Self.handler) { _, client async throws in
            for way in Way.allCases where way != .download {
                #expect(try await way.body(of: "302/\(kind)", client).count == count, "\(way)")
            }
        }
    }

    @Test func redirectThatIsStoppedKeepsItsLimits() async throws {
        let configuration = Session.Configuration.test {
            $0.policy = Stop()
            $0.maximumBodySize = 1 << 20
        }
        try await withServer(configuration: configuration, Self.handler) { _, client in
            let large = try await failure { try await client.get("302/large") }
            #expect(large.kind == .tooLarge)
            let cut = try await failure { try await client.get("302/cut") }
            #expect(cut.kind == .truncatedBody && cut.status == 302)
            let broken = try await failure { try await client.get("302/gzip") }
            #expect(broken.kind == .malformedResponse && broken.status == 302)
        }
    }

    @Test func challengeThatIsNotAnsweredKeepsItsBody() async throws {
        try await withServer(configuration: .test(), Self.handler) { server, client in
            for kind in ["small", "gzip", "large"] {
                let error = try await failure { try await client.get("401/\(kind)") }
                #expect(error.kind == .status && error.status == 401)
                if kind == "small" { #expect(error.body == Data("small".utf8)) }
            }
        }
    }
}
#endif
