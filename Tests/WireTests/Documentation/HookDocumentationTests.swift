import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// The examples of Documentation/Hooks.md and Documentation/Retry.md, word for word.

private struct Tagged: RequestAdapter {
    func adapt(_ request: Request) throws -> Request {
        var request = request
        request.headers["X-Request-ID"] = UUID().uuidString
        return request
    }
}

private struct Timed: Interceptor {
    var waitsOnlyInNext: Bool { true }

    func intercept(_ request: Request, next: Next) async throws -> Reply {
        let start = ContinuousClock.now
        defer { print(request, start.duration(to: .now)) }
        return try await next(request)
    }
}

private struct StayHome: SessionPolicy {
    @concurrent func redirect(
        to proposed: Request, after response: ResponseHead, of task: AnySessionTask
    ) async throws -> RedirectDecision? {
        proposed.url?.host() == response.url?.host() ? nil : .stop
    }
}

private struct LargeToFile: SessionPolicy {
    let folder: URL

    @concurrent func disposition(
        of response: ResponseHead, for task: AnySessionTask
    ) async throws -> ResponseDisposition? {
        guard (response.contentLength ?? 0) > 10_000_000 else { return nil }
        return .becomeDownload(to: folder.appending(path: response.suggestedFilename))
    }
}

private struct Journal: SessionObserver {
    func didReceive(_ response: ResponseHead, of task: AnySessionTask) {
        print(task.id, response.status)
    }
}

private struct Tokens: Authenticator {
    let login: Client

    func apply(_ credential: String, to request: inout Request) {
        request.headers["Authorization"] = "Bearer \(credential)"
    }

    func refresh(_ credential: String?) async throws -> String {
        try await login.post("token", as: String.self)
    }
}

@Suite("Documentation: hooks", .timeLimit(.minutes(1)))
struct HookDocumentationTests {
    @Test func hooksMatchTheirArticle() async throws {
        let stub = StubTransport { call in
            switch call.path {
            case "/away": .status(302, headers: ["Location": "https://elsewhere.example/"])
            case "/near": .status(302, headers: ["Location": "/end"])
            default: .text(call.headers["X-Request-ID"] ?? "none")
            }
        }
        var configuration = Session.Configuration()
        configuration.interceptors = [Tagged(), Timed(), RetryInterceptor()]
        configuration.policy = StayHome()
        configuration.observers = [Journal()]
        let session = Session(configuration: configuration, stub: stub)
        let client = try Client(baseURL: "https://a.example", session: session)
        #expect(try await client.get("near", as: String.self).count == 36)
        #expect(try await session.response(for: client.request(.get, "away")).status == 302)
    }

    @Test func aLargeResponseIsReadFromItsFile() async throws {
        let stub = StubTransport { call in
            .data(Data(repeating: 1, count: call.path == "/large.bin" ? 10_000_001 : 3))
        }
        try await inTestFolder { folder in
            var configuration = Session.Configuration()
            configuration.policy = LargeToFile(folder: URL(filePath: folder.path))
            let session = Session(configuration: configuration, stub: stub)
            for (path, count) in [("large.bin", 10_000_001), ("small.bin", 3)] {
                let request = try Request(.get, "https://a.example/\(path)")
                let response = try await session.response(for: request)
                let data =
                    if let file = response.file {
                        try Data(contentsOf: file, options: .alwaysMapped)
                    } else {
                        response.value
                    }
                #expect(data.count == count)
            }
            #expect(try folder.names == ["large.bin"])
        }
    }

    @Test func retryAndRefreshMatchTheirArticle() async throws {
        let clock = ManualClock()
        let stub = StubTransport { call in
            if call.path == "/token" { return .text("new") }
            if call.headers["Authorization"] != "Bearer new" { return .status(401) }
            return call.index < 3 ? .status(503) : .text("done")
        }
        let client = try Client(baseURL: "https://a.example", session: Session(stub: stub))
        var policy = RetryPolicy()
        policy.limit = 4
        policy.methods.insert(.post)
        var configuration = Session.Configuration()
        let tokens = AuthenticationInterceptor(Tokens(login: client))
        configuration.interceptors = [
            RetryInterceptor(policy, budget: RetryBudget(ratio: 0.1, reserve: 20), clock: clock), tokens,
        ]
        let own = try Client(baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
        let task = own.task(.post, "x", body: .text("y"), as: String.self)
        for _ in 0..<2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(60))
        }
        #expect(try await task.value == "done")
    }

    @Test func readmeExampleSendsItsCredential() async throws {
        let secret = "s3cret"
        let stub = StubTransport { call in
            call.headers.contains("Authorization")
                ? .text("in") : .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
        }
        var configuration = Session.Configuration()
        configuration.interceptors = [RetryInterceptor(), LoggingInterceptor { print($0) }]
        configuration.credentials = try FixedCredentials(["https://api.example.com": .user("ada", password: secret)])
        configuration.cookies = .none
        let session = Session(configuration: configuration, stub: stub)
        let client = try Client(baseURL: "https://api.example.com", session: session)
        #expect(try await client.get("x", as: String.self) == "in")
    }
}
