import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
/// Checks which redirects a session follows, and how it treats the others.
@Suite("Wire: redirects that are not followed", .timeLimit(.minutes(1)))
struct RedirectConfigurationTests {
    typealias Redirects = Session.Configuration.Redirects

    /// Answers `/to?URL` with a redirect to that URL.
    private static let handler: LoopbackServer.Handler = { exchange in
        let parts = exchange.request.target.split(separator: "?", maxSplits: 1).map(String.init)
        guard parts.count == 2 else { return try exchange.respond(text: "the end") }
        try exchange.respond(status: 302, headers: [("Location", parts[1])], text: "moved")
    }

    private struct Stops: SessionPolicy {
        let decision: RedirectDecision?

        @concurrent func redirect(
            to proposed: Request, after response: ResponseHead, of task: AnySessionTask
        ) async throws -> RedirectDecision? { decision }
    }

    private func answer(
        _ client: Client, _ location: String, _ policy: (any SessionPolicy)? = nil
    ) async throws
        -> Response<Data>
    {
        var request = try client.request(.get, "/to?" + location)
        request.policy = policy
        return try await client.session.response(for: request)
    }

    private static let refused = ["myapp://callback?code=1", "ftp://127.0.0.1/x", "mailto:a@b.example", "http://"]

    @Test(arguments: refused, [false, true])
    func redirectRefusedByTheRulesIsReturnedIfStopped(location: String, isByPolicy: Bool) async throws {
        let configuration = Session.Configuration.test {
            if isByPolicy { $0.policy = Stops(decision: .stop) } else { $0.redirects = .stop }
        }
        try await withServer(configuration: configuration, Self.handler) { server, client in
            let response = try await answer(client, location)
            #expect(response.status == 302 && response.headers["Location"] == location)
            #expect(String(decoding: response.value, as: UTF8.self) == "moved")
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test(arguments: refused)
    func redirectRefusedByTheRulesFailsByDefault(location: String) async throws {
        try await withServer(Self.handler) { _, client in
            #expect(try await failure { try await answer(client, location) }.kind == .redirect)
            // The policy cannot decide about following here.
            let follows = Stops(decision: .follow(try client.request(.get, "/")))
            #expect(try await failure { try await answer(client, location, follows) }.kind == .redirect)
        }
    }

    @Test func redirectThatLeavesTLSIsReturnedIfStopped() async throws {
        let stub = StubTransport { _ in .status(302, headers: ["Location": "http://a.example/"]) }
        for (redirects, policy, isStopped) in [
            (Redirects.follow, nil, false), (.stop, nil, true), (.sameOrigin, nil, true),
            (.follow, Stops(decision: .stop), true), (.follow, Stops(decision: nil), false),
        ] as [(Redirects, Stops?, Bool)] {
            var configuration = Session.Configuration()
            configuration.redirects = redirects
            configuration.policy = policy
            let session = Session(configuration: configuration, stub: stub)
            let request = try Request(.get, "https://a.example/x")
            if isStopped {
                #expect(try await session.response(for: request).status == 302)
            } else {
                #expect(try await failure { try await session.response(for: request) }.kind == .redirect)
            }
        }
    }

    @Test(arguments: [false, true])
    func redirectWithAnUnrepeatableBodyIsReturnedIfStopped(isByPolicy: Bool) async throws {
        let configuration = Session.Configuration.test {
            if isByPolicy { $0.policy = Stops(decision: .stop) } else { $0.redirects = .stop }
        }
        try await withServer(configuration: configuration) { exchange in
            _ = try exchange.readBody()
            try exchange.respond(status: 307, headers: [("Location", "/end")], text: "moved")
        } test: { server, client in
            let chunks = AsyncStream { continuation in
                continuation.yield(Data("body".utf8))
                continuation.finish()
            }
            let body = try await client.post("/to", body: .stream(chunks, length: 4))
            #expect(body == Data("moved".utf8))
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func stoppingSessionFollowsNoRedirect() async throws {
        try await withServer(configuration: .test { $0.redirects = .stop }, Self.handler) { server, client in
            #expect(try await answer(client, "/end").status == 302)
            for try await line in client.stream("/to?/end").lines { #expect(line == "moved") }
            #expect(server.requestCount("/end") == 0)
            let follows = Stops(decision: .follow(try client.request(.get, "/end")))
            #expect(try await answer(client, "/end", follows).status == 200)
        }
    }

    @Test func sameOriginPolicyFollowsWithinTheOrigin() async throws {
        let other = try LoopbackServer { try $0.respond(text: "other") }
        defer { other.stop() }
        try await withServer(configuration: .test { $0.redirects = .sameOrigin }, Self.handler) { _, client in
            let followed = try await answer(client, "/end").value
            #expect(followed == Data("the end".utf8))
            for place in [other.url.absoluteString, "//127.0.0.1:\(other.port)/", "myapp://x"] {
                let status = try await answer(client, place).status
                #expect(status == 302)
            }
            #expect(other.counts.requestsReceived == 0)
            let stops = Stops(decision: .stop)
            let stopped = try await answer(client, "/end", stops).status
            #expect(stopped == 302)
        }
    }
}
#endif
