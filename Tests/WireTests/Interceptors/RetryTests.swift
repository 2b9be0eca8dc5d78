import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("Retry", .timeLimit(.minutes(1)))
struct RetryTests {
    private func session(_ clock: ManualClock, _ stub: StubTransport, budget: RetryBudget = RetryBudget()) -> Session {
        var configuration = Session.Configuration()
        configuration.interceptors = [RetryInterceptor(budget: budget, clock: clock)]
        return Session(configuration: configuration, stub: stub)
    }

    @Test func failedRequestIsSentAgainAfterItsWait() async throws {
        let clock = ManualClock()
        let stub = StubTransport { call in call.index < 2 ? .status(503) : .text("at last") }
        let client = try Client(baseURL: "https://a.example", session: session(clock, stub))
        let task = Task { try await client.get("x", as: String.self) }
        for count in 1...2 {
            try await stub.waitForCalls(count)
            try await clock.waitForSleepers(1)
            #expect(stub.calls.count == count)
            clock.advance(by: .seconds(2))
        }
        #expect(try await task.value == "at last")
        #expect(stub.calls.count == 3)
    }

    @Test func lastFailureIsTheError() async throws {
        let clock = ManualClock()
        let stub = StubTransport { call in .status(call.index < 2 ? 503 : 502) }
        let client = try Client(baseURL: "https://a.example", session: session(clock, stub))
        let task = Task { try await client.get("x") }
        for _ in 1...2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(2))
        }
        let error = try await failure { try await task.value }
        #expect(error.status == 502 && stub.calls.count == 3)
    }

    @Test func noRetryBeginsAfterItsTime() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .status(503, headers: ["Retry-After": "3"]) }
        var policy = RetryPolicy()
        policy.limit = 9
        let interceptor = RetryInterceptor(policy, retriesBeginWithin: .seconds(5), clock: clock)
        var configuration = Session.Configuration()
        configuration.interceptors = [interceptor]
        let session = Session(configuration: configuration, stub: stub)
        let client = try Client(baseURL: "https://a.example", session: session)
        let task = Task { try await client.get("x") }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(4))
        // The next delay would end after 7 seconds.
        let error = try await failure { try await task.value }
        #expect(error.status == 503 && error.attempts == 2 && error.attemptsDuration == .seconds(4))
        #expect(error.reason.contains("not tried again: an attempt after 3."), "\(error)")
        let limit = "would begin later than the limit retriesBeginWithin, 5.0 seconds, permits"
        #expect(error.reason.contains(limit), "\(error)")
        #expect(stub.calls.count == 2)
    }

    @Test func aRetryThatWouldComeTooLateIsNotWaitedFor() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .status(503, headers: ["Retry-After": "30"]) }
        var configuration = Session.Configuration()
        configuration.interceptors = [RetryInterceptor(clock: clock)]
        configuration.timeouts.total = .seconds(20)
        let client = try Client(
            baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
        let error = try await failure { try await client.get("x") }
        #expect(error.status == 503 && stub.calls.count == 1)
        #expect(error.reason.contains("would begin after the end of Timeouts.total"), "\(error)")
    }

    @Test func lastFailureListsAllAttempts() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .status(503) }
        let client = try Client(baseURL: "https://a.example", session: session(clock, stub))
        let task = Task { try await client.get("x") }
        for _ in 1...2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .milliseconds(2_005))
        }
        let error = try await failure { try await task.value }
        #expect(error.attempts == 3 && error.attemptsDuration == .milliseconds(4_010))
        #expect(error.description.hasSuffix("3 attempts failed in 4.010 seconds"))
        #expect(!error.description.contains("not tried again"))
        let single = try await failure { try await client.post("x") }
        #expect(single.attempts == 1 && single.attemptsDuration == nil && !single.reason.contains("attempts"))
    }

    @Test func cancellingEndsTheWait() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .status(503) }
        let client = try Client(baseURL: "https://a.example", session: session(clock, stub))
        let task = client.task(.get, "x")
        try await clock.waitForSleepers(1)
        task.cancel()
        let error = try await failure { try await task.value }
        #expect(error.isCancelled && stub.calls.count == 1)
    }

    @Test func postIsNotSentAgain() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .status(503) }
        let client = try Client(baseURL: "https://a.example", session: session(clock, stub))
        let error = try await failure { try await client.post("x", body: .text("y")) }
        #expect(error.status == 503 && stub.calls.count == 1)
    }

    @Test func emptyBudgetMeansNoRetries() async throws {
        let clock = ManualClock()
        let stub = StubTransport { _ in .status(503) }
        let client = try Client(
            baseURL: "https://a.example", session: session(clock, stub, budget: RetryBudget(ratio: 0, reserve: 0)))
        _ = try await failure { try await client.get("x") }
        #expect(stub.calls.count == 1)
    }
}

@Suite("Authentication refresh", .timeLimit(.minutes(1)))
struct AuthenticationRefreshTests {
    /// Issues numbers as tokens; the server accepts the newest. The refresh call uses the same session.
    private final class Tokens: Authenticator {
        /// The session owns its interceptors, and the interceptors own this provider.
        private struct Unowning {
            weak var session: Session?
        }

        private let session = Mutex(Unowning())
        let refreshes = Mutex(0)
        let fails = Mutex(false)

        func use(_ session: Session) { self.session.withLock { $0.session = session } }

        func apply(_ credential: String, to request: inout Request) {
            request.headers["Authorization"] = "Bearer \(credential)"
        }

        @concurrent func refresh(_ credential: String?) async throws -> String {
            refreshes.withLock { $0 += 1 }
            guard let session = session.withLock({ $0.session }) else { return "none" }
            let request = try Request(.post, "https://a.example/refresh")
            let response = try await session.response(for: request, decode: .string)
            return response.value
        }
    }

    private struct Fixture {
        let tokens = Tokens()
        let stub: StubTransport
        let interceptor: AuthenticationInterceptor<Tokens>
        let client: Client

        init(credential: String?, limit: Int = 5, _ respond: @escaping StubTransport.Respond) throws {
            stub = StubTransport(respond: respond)
            interceptor = AuthenticationInterceptor(tokens, credential: credential, refreshLimit: limit)
            var configuration = Session.Configuration()
            configuration.interceptors = [interceptor]
            let session = Session(configuration: configuration, stub: stub)
            tokens.use(session)
            client = try Client(baseURL: "https://a.example", session: session)
        }
    }

    private static func server(_ call: StubTransport.Call) -> StubTransport.Answer {
        if call.path == "/refresh" { return call.headers.contains("Authorization") ? .status(500) : .text("new") }
        return call.headers["Authorization"] == "Bearer new" ? .text("welcome") : .status(401)
    }

    /// The origin of a redirect never has the credential, so that its refusals say nothing about it.
    @Test func refusalsOfAnotherOriginRefreshNothing() async throws {
        let fixture = try Fixture(credential: "new") { call in
            if call.urlString.hasPrefix("https://b.example") { return .status(401) }
            if call.path == "/away" { return .status(302, headers: ["Location": "https://b.example/"]) }
            return Self.server(call)
        }
        for _ in 0..<7 {
            let error = try await failure { try await fixture.client.get("away", as: String.self) }
            #expect(error.status == 401)
        }
        #expect(fixture.tokens.refreshes.withLock { $0 } == 0)
        #expect(try await fixture.client.get("x", as: String.self) == "welcome")
    }

    @Test func hundredRefusedRequestsRefreshOnce() async throws {
        let fixture = try Fixture(credential: "old") { Self.server($0) }
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<100 {
                group.addTask { try await fixture.client.get("x\(number)", as: String.self) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(values == Array(repeating: "welcome", count: 100))
        #expect(fixture.tokens.refreshes.withLock { $0 } == 1)
        #expect(fixture.stub.calls.count { $0.path == "/refresh" } == 1)
        #expect(fixture.interceptor.credential == "new")
    }

    @Test func firstCredentialIsFetched() async throws {
        let fixture = try Fixture(credential: nil) { Self.server($0) }
        #expect(try await fixture.client.get("x", as: String.self) == "welcome")
        #expect(fixture.stub.calls.map(\.path) == ["/refresh", "/x"])
    }

    @Test func refusalOfTheNewCredentialIsTheError() async throws {
        let fixture = try Fixture(credential: "old") { call in
            call.path == "/refresh" ? .text("worse") : .status(401)
        }
        let error = try await failure { try await fixture.client.get("x") }
        #expect(error.status == 401)
        #expect(fixture.stub.calls.map(\.path) == ["/x", "/refresh", "/x"])
    }

    @Test func failedRefreshFailsWaitingRequests() async throws {
        let fixture = try Fixture(credential: "old") { call in .status(call.path == "/refresh" ? 500 : 401) }
        let error = try await failure { try await fixture.client.get("x") }
        #expect(error.kind == .authentication)
        #expect((error.underlying as? NetworkError)?.status == 500)
        #expect("\(error)".contains("old") == false)
    }

    @Test(arguments: [NetworkError.Kind.dns, .connectionRefused, .connectionLost, .idleTimedOut])
    func refreshThatFindsNoServerIsAnOutage(kind: NetworkError.Kind) async throws {
        let fixture = try Fixture(credential: "old") { call in
            if call.path == "/refresh" { throw StubTransport.Failure(kind) }
            return .status(401)
        }
        let error = try await failure { try await fixture.client.get("x") }
        #expect(error.kind == kind && error.reason.contains("the credential could not be renewed"))
        #expect((error.underlying as? NetworkError)?.kind == kind)
    }

    @Test func endlessRefreshIsStopped() async throws {
        let fixture = try Fixture(credential: "old", limit: 3) { call in
            call.path == "/refresh" ? .text("worse") : .status(401)
        }
        for _ in 0..<3 { #expect(try await failure { try await fixture.client.get("x") }.status == 401) }
        #expect(try await failure { try await fixture.client.get("x") }.kind == .authentication)
        #expect(fixture.tokens.refreshes.withLock { $0 } == 3)
    }

    @Test func cancelledRequestLeavesTheRefreshToOthers() async throws {
        let gate = LoopbackServer.Gate()
        let fixture = try Fixture(credential: "old") { call in
            if call.path == "/refresh" { try await gate.wait() }
            return Self.server(call)
        }
        let first = fixture.client.task(.get, "x", as: String.self)
        try await fixture.stub.waitForCalls(2)
        let second = fixture.client.task(.get, "y", as: String.self)
        first.cancel()
        #expect(try await failure { try await first.value }.isCancelled)
        gate.open()
        #expect(try await second.value == "welcome")
        #expect(fixture.tokens.refreshes.withLock { $0 } == 1)
    }

    /// The request that waits for the refresh is sent with the credential of the login, not with the refreshed one.
    @Test(arguments: [200, 500]) func aLoginDuringARefreshReplacesItsResult(status: Int) async throws {
        let gate = LoopbackServer.Gate()
        let fixture = try Fixture(credential: "old") { call in
            if call.path == "/refresh" {
                try await gate.wait()
                return status == 200 ? .text("new of old") : .status(status)
            }
            return call.headers["Authorization"] == "Bearer login" ? .text("welcome") : .status(401)
        }
        let waiting = fixture.client.task(.get, "x", as: String.self)
        try await fixture.stub.waitForCalls(2)
        fixture.interceptor.credential = "login"
        // A request that begins now does not wait for the refresh.
        #expect(try await fixture.client.get("y", as: String.self) == "welcome")
        gate.open()
        #expect(try await waiting.value == "welcome")
        #expect(fixture.interceptor.credential == "login")
        let sent = fixture.stub.calls.filter { $0.path != "/refresh" }.map { $0.headers["Authorization"] }
        #expect(sent == ["Bearer old", "Bearer login", "Bearer login"])
        #expect(fixture.tokens.refreshes.withLock { $0 } == 1)
    }

    @Test func aLogoutDuringARefreshLetsWaitingRequestsFetchAgain() async throws {
        let gate = LoopbackServer.Gate()
        let fixture = try Fixture(credential: "old") { call in
            if call.path == "/refresh" { try await gate.wait() }
            return Self.server(call)
        }
        let waiting = fixture.client.task(.get, "x", as: String.self)
        try await fixture.stub.waitForCalls(2)
        fixture.interceptor.credential = nil
        gate.open()
        #expect(try await waiting.value == "welcome")
        #expect(fixture.tokens.refreshes.withLock { $0 } == 2)
    }
}

@Suite("Logging")
struct LoggingTests {
    @Test func curlCommandHoldsNoSecret() throws {
        var request = try Request(.post, "https://user:pass@a.example/it's?key=s3cret&page=2")
        request.headers = ["Authorization": "Bearer s3cret", "X-Session-Token": "s3cret", "Accept": "it's"]
        request.body = .json(["password": "s3cret"])
        let text = request.curlDescription
        #expect(!text.contains("s3cret") && !text.contains("pass@"))
        #expect(text.hasPrefix("curl --request 'POST' --header 'Authorization: <redacted>'"))
        #expect(text.contains("--header 'Accept: it'\\''s'") && text.contains("--data-binary @-"))
    }

    @Test func aFailureShowsTheFieldsOfItsResponse() async throws {
        let entries = Mutex<[String]>([])
        var configuration = Session.Configuration()
        configuration.interceptors = [
            LoggingInterceptor(.headers, revealing: ["page"]) { entry in entries.withLock { $0.append(entry) } }
        ]
        let stub = StubTransport { _ in .status(503, headers: ["X-Request-ID": "r7", "Set-Cookie": "a=s3cret"]) }
        let session = Session(configuration: configuration, stub: stub)
        let client = try Client(baseURL: "https://a.example", session: session)
        _ = try await failure { try await client.get("x?page=2&key=s3cret") }
        let texts = entries.withLock { $0 }
        #expect(texts.count == 2 && texts.allSatisfy { $0.contains("?page=2&key=<redacted>") })
        #expect(!texts.joined().contains("s3cret"))
        #expect(texts.last?.contains("\n    X-Request-ID: r7") == true, "\(texts)")
        #expect(texts.last?.contains("\n    Set-Cookie: <redacted>") == true, "\(texts)")
    }

    @Test func linesDescribeRequestAndReplyWithoutSecrets() async throws {
        let entries = Mutex<[String]>([])
        var configuration = Session.Configuration()
        configuration.interceptors = [
            LoggingInterceptor(.headers, redacting: ["X-Own"]) { entry in entries.withLock { $0.append(entry) } }
        ]
        let stub = StubTransport { call in
            call.path == "/ok"
                ? .text("hello", headers: ["Set-Cookie": "a=s3cret"]) : .status(500)
        }
        let client = try Client(
            baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
        _ = try await client.get(
            "ok", query: ["key": "s3cret"], headers: ["Authorization": "Bearer s3cret", "X-Own": "s3cret"])
        _ = try await failure { try await client.get("bad") }
        let text = entries.withLock { $0 }
        #expect(text.count == 4 && !text.joined().contains("s3cret"))
        #expect(text[0].hasPrefix("→") && text[0].contains("GET https://a.example/ok"))
        #expect(text[1].hasPrefix("←") && text[1].contains(" 200 in ") && text[1].contains("5 bytes"))
        #expect(text[3].hasPrefix("✗") && text[3].contains("500"))
    }
}
