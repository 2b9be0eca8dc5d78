import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
/// Checks redirects over the wire: in every form of a task, with policies, and against hostile servers.
@Suite("Wire: redirects", .timeLimit(.minutes(1)))
struct RedirectTests {
    /// `/to/N` answers with N redirects, the last of which leads to `/end`.
    private static let handler: LoopbackServer.Handler = { exchange in
        let path = exchange.request.path
        if let count = path.split(separator: "/").last.flatMap({ Int($0) }) {
            let next = count == 1 ? "/end" : "/to/\(count - 1)"
            try exchange.respond(status: 302, headers: [("Location", next)], text: "moved")
        } else if path == "/loop" {
            try exchange.respond(status: 302, headers: [("Location", "/loop")])
        } else if path.hasPrefix("/status") {
            let body = try exchange.readBody()
            try exchange.respond(
                status: Int(path.dropFirst("/status".count)) ?? 302, headers: [("Location", "/echo")],
                text: "\(body.count)")
        } else if path == "/echo" {
            let body = try exchange.readBody()
            try exchange.respond(text: "\(exchange.request.method) \(String(decoding: body, as: UTF8.self))")
        } else {
            try exchange.respond(text: "the end")
        }
    }

    @Test func responseListsItsRedirects() async throws {
        try await withServer(Self.handler) { server, client in
            let response = try await client.session.response(for: client.request(.get, "/to/3"))
            #expect(String(decoding: response.value, as: UTF8.self) == "the end")
            #expect(response.head.redirects.map(\.status) == [302, 302, 302])
            #expect(response.head.redirects.map { $0.url?.path } == ["/to/3", "/to/2", "/to/1"])
            #expect(response.head.url?.path == "/end")
            #expect(server.requestCount("/end") == 1)
        }
    }

    @Test func everyFormOfATaskFollowsRedirects() async throws {
        try await withServer(Self.handler) { _, client in
            #expect(try await client.task(.get, "/to/2", as: String.self).value == "the end")
            var lines: [String] = []
            for try await line in client.stream("/to/2").lines { lines.append(line) }
            #expect(lines == ["the end"])
            try await inTestFolder { folder in
                let file = try await client.download("/to/2", to: folder.url("file")).value
                #expect(try Data(contentsOf: file) == Data("the end".utf8))
            }
            let task = client.task(.get, "/to/1", as: String.self)
            #expect(await task.response?.status == 200)
        }
    }

    @Test(arguments: [(301, "GET "), (302, "GET "), (303, "GET "), (307, "POST body"), (308, "POST body")])
    func bodyIsSentAgainIfTheStatusRequiresIt(status: Int, echo: String) async throws {
        try await withServer(Self.handler) { _, client in
            let answer = try await client.post("/status\(status)", body: .text("body"), as: String.self)
            #expect(answer == echo)
        }
    }

    @Test func bodyThatCanBeSentOnlyOnceIsNotSentAgain() async throws {
        try await withServer(Self.handler) { server, client in
            let chunks = AsyncStream { continuation in
                continuation.yield(Data("body".utf8))
                continuation.finish()
            }
            let error = try await failure {
                try await client.post("/status307", body: .stream(chunks, length: 4), as: String.self)
            }
            #expect(error.kind == .redirect && error.status == 307)
            #expect(server.requestCount("/echo") == 0)
        }
    }

    @Test(arguments: ["data", "json", "form", "multipart", "file"])
    func everyBodyButAStreamIsSentAgain(kind: String) async throws {
        try await inTestFolder { folder in
            try folder.write("body", to: "file")
            var form = MultipartForm()
            form.append("body", named: "text")
            let body: Request.Body =
                switch kind {
                case "data": .data(Data("body".utf8))
                case "json": .json(["text": "body"])
                case "form": .form(["text": "body"])
                case "multipart": .multipart(form)
                default: .file(folder.url("file"))
                }
            try await withServer(Self.handler) { server, client in
                let answer = try await client.post("/status308", body: body, as: String.self)
                #expect(answer.hasPrefix("POST ") && answer.contains("body"))
                #expect(server.requestCount("/status308") == 1 && server.requestCount("/echo") == 1)
            }
        }
    }

    @Test func policyCanReplaceAOneShotBody() async throws {
        struct Again: SessionPolicy {
            @concurrent func replacementBody(
                for request: Request, of task: AnySessionTask
            ) async throws -> Request.Body? {
                .text("again")
            }
        }
        try await withServer(configuration: .test { $0.policy = Again() }, Self.handler) { _, client in
            let chunks = AsyncStream { continuation in
                continuation.yield(Data("body".utf8))
                continuation.finish()
            }
            let answer = try await client.post("/status308", body: .stream(chunks), as: String.self)
            #expect(answer == "POST again")
        }
    }

    @Test func policyCanStopARedirect() async throws {
        struct Stop: SessionPolicy {
            @concurrent func redirect(
                to proposed: Request, after response: ResponseHead, of task: AnySessionTask
            ) async throws -> RedirectDecision? { .stop }
        }
        try await withServer(configuration: .test { $0.policy = Stop() }, Self.handler) { server, client in
            let response = try await client.session.response(for: client.request(.get, "/to/3"))
            #expect(response.status == 302 && response.headers["Location"] == "/to/2")
            #expect(String(decoding: response.value, as: UTF8.self) == "moved")
            #expect(server.counts.requestsReceived == 1)
        }
    }

    @Test func policyOfTheSessionRunsBeforeThatOfTheRequest() async throws {
        struct Send: SessionPolicy {
            let path: String?
            @concurrent func redirect(
                to proposed: Request, after response: ResponseHead, of task: AnySessionTask
            ) async throws -> RedirectDecision? {
                guard let path, let url = proposed.url?.deletingLastPathComponent().appending(path: path) else {
                    return nil
                }
                return .follow(try Request(url: url))
            }
        }
        for (session, own, expected) in [("a", "b", "/a"), (nil, "b", "/b"), (nil, nil, "/end")] {
            try await withServer(configuration: .test { $0.policy = Send(path: session) }, Self.handler) { _, client in
                var request = try client.request(.get, "/to/1")
                request.policy = Send(path: own)
                #expect(try await client.session.response(for: request).head.url?.path == expected)
            }
        }
    }

    @Test func failingPolicyFailsTheTask() async throws {
        struct Broken: Error {}
        struct Fails: SessionPolicy {
            @concurrent func redirect(
                to proposed: Request, after response: ResponseHead, of task: AnySessionTask
            ) async throws -> RedirectDecision? { throw Broken() }
        }
        try await withServer(configuration: .test { $0.policy = Fails() }, Self.handler) { _, client in
            let error = try await failure { try await client.get("/to/1") }
            #expect(error.kind == .policy && error.underlying is Broken)
        }
    }

    @Test func endlessRedirectsFailAtTheLimit() async throws {
        try await withServer(Self.handler) { server, client in
            let loop = try await failure { try await client.get("/loop") }
            #expect(loop.kind == .redirectLoop && server.requestCount("/loop") == 21)
            let long = try await failure { try await client.get("/to/50") }
            #expect(long.kind == .tooManyRedirects)
            _ = try await client.get("/to/20")
        }
    }

    @Test func secretsAreNotSentToAnotherOrigin() async throws {
        let seen = Mutex<[String]>([])
        let other = try LoopbackServer { exchange in
            seen.withLock { $0 = exchange.request.headers.map { $0.name.lowercased() } }
            try exchange.respond(text: "other")
        }
        defer { other.stop() }
        let url = other.url.absoluteString
        let configuration = Session.Configuration.test {
            $0.headers["Authorization"] = "Bearer session"
            $0.secretHeaderOrigins = .all
        }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(status: 307, headers: [("Location", url)])
        } test: { _, client in
            _ = try await client.get("/", headers: ["Cookie": "a=b", "X-Own": "1"])
            let names = seen.withLock { $0 }
            #expect(!names.contains("authorization") && !names.contains("cookie") && names.contains("x-own"))
        }
    }

    @Test func redirectedBodyIsNotKeptOrCounted() async throws {
        // The connection is used again after a small body, and closed after a large one.
        try await withServer { exchange in
            if exchange.request.path == "/big" {
                try exchange.writeHead(status: 302, headers: [("Location", "/end"), ("Content-Length", "100000000")])
                try? exchange.streamZeros(count: 100_000_000)
            } else {
                try exchange.respond(text: "the end")
            }
        } test: { _, client in
            var size = 0
            for try await chunk in client.stream("/big").chunks { size += chunk.count }
            #expect(size == 7)
        }
    }

    @Test func theTotalTimeLimitHoldsOverAllRedirects() async throws {
        // Each response arrives in time; all of them together do not.
        try await withServer { exchange in
            try exchange.pause(for: .milliseconds(150))
            let number = Int(exchange.request.path.dropFirst()) ?? 0
            try exchange.respond(status: 302, headers: [("Location", "/\(number + 1)")], text: "")
        } test: { server, client in
            var request = try client.request(.get, "0")
            request.timeouts = Timeouts(total: .milliseconds(400))
            let error = try await failure { [request] in try await client.response(for: request) }
            #expect(error.kind == .totalTimedOut)
            #expect(error.reason.contains("0.4 seconds"))
            #expect(server.counts.requestsReceived < 5)
        }
    }

    @Test func theFragmentIsOnTheResponseAndNeverSent() async throws {
        try await withServer { exchange in
            if exchange.request.path == "/a" {
                try exchange.respond(status: 302, headers: [("Location", "/b")], text: "")
            } else {
                try exchange.respond(text: exchange.request.target)
            }
        } test: { server, client in
            let response = try await client.response(
                for: Request(.get, server.url("/a").absoluteString + "#part"), as: String.self)
            #expect(response.head.fragment == "part")
            #expect(response.value == "/b")
        }
    }
}
#endif
