import Dispatch
import Synchronization
import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks that `Timeouts.total` ends a task wherever it waits, and `Timeouts.attempt` one attempt.
@Suite("Wire: deadlines", .timeLimit(.minutes(1)))
struct DeadlineTests {
    /// Waits until it is cancelled.
    private struct Waiting: Interceptor {
        var waitsOnlyInNext = false
        let wait: @Sendable (Next) async throws -> Void

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            try await wait(next)
            return try await next(request)
        }
    }

    /// Waits in every question of one kind until it is cancelled.
    private struct WaitingPolicy: SessionPolicy {
        func disposition(of response: ResponseHead, for task: AnySessionTask) async throws -> ResponseDisposition? {
            try await Task.sleep(for: .seconds(3_600))
            return nil
        }
    }

    private struct WaitingProvider: CredentialProvider {
        func credential(for challenge: AuthenticationChallenge, of request: Request) async throws -> Credential? {
            try await Task.sleep(for: .seconds(3_600))
            return nil
        }
    }

    private struct WaitingAuthenticator: Authenticator {
        func apply(_ credential: String, to request: inout Request) { request.headers["Authorization"] = credential }
        func refresh(_ credential: String?) async throws -> String {
            try await Task.sleep(for: .seconds(3_600))
            return ""
        }
    }

    private static let limit = Duration.milliseconds(150)

    private func client(
        _ stub: StubTransport, _ configure: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> Client {
        var configuration = Session.Configuration()
        configuration.timeouts.total = Self.limit
        configure(&configuration)
        return try Client(baseURL: "https://a.example", session: Session(configuration: configuration, stub: stub))
    }

    /// The failure of a call, of a handle and of a stream that have the time limit of their session.
    private func expectEnds(
        _ client: Client, sends requests: Int? = 0, _ stub: StubTransport,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await client.get("x") },
            { _ = try await client.task(.get, "x").value },
            { for try await _ in client.stream("x") {} },
        ]
        for (number, call) in calls.enumerated() {
            let sent = stub.calls.count
            let start = ContinuousClock.now
            let error = try await failure { try await call() }
            #expect(
                error.kind == .totalTimedOut && error.timeoutPhase == .total && !error.isCancelled,
                "\(number): \(error)", sourceLocation: sourceLocation)
            #expect(error.reason.contains("\(Self.limit)"), "\(number): \(error)", sourceLocation: sourceLocation)
            #expect(start.duration(to: .now) >= Self.limit, sourceLocation: sourceLocation)
            if let requests { #expect(stub.calls.count == sent + requests, sourceLocation: sourceLocation) }
        }
        #expect(await client.session.tasks.count == 0, sourceLocation: sourceLocation)
    }

    // MARK: Waits

    @Test func anInterceptorThatWaitsAnywhereEnds() async throws {
        let stub = StubTransport { _ in .text("never") }
        let waiting = Waiting { _ in try await Task.sleep(for: .seconds(3_600)) }
        try await expectEnds(try client(stub) { $0.interceptors = [waiting] }, stub)
    }

    @Test func anInterceptorThatWaitsInNextEnds() async throws {
        let stub = StubTransport { _ in .text("never") }
        for waiting in [
            Waiting(waitsOnlyInNext: true) { try await $0.sleep(for: .seconds(3_600)) },
            Waiting(waitsOnlyInNext: true) { next in
                _ = try await next.cancellable { try await Task.sleep(for: .seconds(3_600)) }
            },
        ] {
            try await expectEnds(try client(stub) { $0.interceptors = [waiting] }, stub)
        }
    }

    /// The error reaches the interceptor, which knows the time that is left.
    @Test func anInterceptorLearnsThatTheTimeIsOver() async throws {
        let stub = StubTransport { _ in .text("never") }
        let seen = Mutex<[String]>([])
        let waiting = Waiting(waitsOnlyInNext: true) { next in
            let left = next.timeLeft
            do {
                try await next.sleep(for: .seconds(3_600))
            } catch {
                let kind = (error as? NetworkError)?.kind.rawValue ?? "\(error)"
                let isLess = left.map { $0 > .zero && $0 <= Self.limit } ?? false
                let isOver = next.timeLeft == .zero
                seen.withLock { $0.append("\(kind) \(isLess) \(isOver)") }
                // It tries to go on, and nothing is sent.
            }
        }
        let client = try client(stub) { $0.interceptors = [waiting] }
        let error = try await failure { try await client.get("x") }
        #expect(error.kind == .totalTimedOut && stub.calls.isEmpty, "\(error)")
        #expect(seen.withLock { $0 } == ["total-timed-out true true"])
        var endless = try client.request(.get, "x")
        endless.timeouts.total = nil
        let task = client.session.task(for: endless, startsImmediately: true)
        while task.state != .running { await Task.yield() }
        task.cancel()
        #expect(try await task.failure().isCancelled)
    }

    @Test func aPolicyThatWaitsEnds() async throws {
        let stub = StubTransport { _ in .text("answer") }
        try await expectEnds(try client(stub) { $0.policy = WaitingPolicy() }, sends: 1, stub)
    }

    @Test func aCredentialProviderThatWaitsEnds() async throws {
        let stub = StubTransport { _ in .status(401, headers: ["WWW-Authenticate": "Basic realm=\"a\""]) }
        try await expectEnds(try client(stub) { $0.credentials = WaitingProvider() }, sends: 1, stub)
    }

    @Test func aTokenThatIsNotRenewedEndsTheTaskAlone() async throws {
        let stub = StubTransport { _ in .text("never") }
        let tokens = AuthenticationInterceptor(WaitingAuthenticator())
        try await expectEnds(try client(stub) { $0.interceptors = [tokens] }, stub)
    }

    @Test func theRateLimitEndsInTime() async throws {
        let stub = StubTransport { _ in .text("answer") }
        let client = try client(stub) { $0.interceptors = [RateLimitInterceptor(requestsPerSecond: 0.001)] }
        _ = try await client.get("x")
        try await expectEnds(client, stub)
    }

    @Test func aTransportThatDoesNotAnswerEnds() async throws {
        let stub = StubTransport { _ in .text("late").delayed(by: .seconds(3_600)) }
        let client = try client(stub)
        let error = try await client.task(.get, "x").failure()
        #expect(error.kind == .totalTimedOut && error.reason.contains("after 1 request"), "\(error)")
    }

    /// The head came in time, and code of the caller holds it for longer than the limit. The chunks that have arrived
    /// are not handed out afterwards, one by one.
    @Test func aStreamThatIsHeldTooLongAfterItsHeadIsNotRead() async throws {
        struct Holding: Interceptor {
            func intercept(_ request: Request, next: Next) async throws -> Reply {
                let reply = try await next(request)
                while next.timeLeft != .zero { await pause() }
                // The task is stopped a moment later.
                while !Task.isCancelled { await pause() }
                return reply
            }

            /// Waits for a moment, cancelled or not.
            private func pause() async { await Task { try? await Task.sleep(for: .milliseconds(5)) }.value }
        }
        let stub = StubTransport { _ in .text("a\nb\n") }
        let client = try client(stub) { $0.interceptors = [Holding()] }
        let stream = client.stream("x")
        var lines: [String] = []
        do {
            for try await line in stream.lines { lines.append(line) }
            Issue.record("the stream ended without an error")
        } catch {
            #expect(error.kind == .totalTimedOut && lines.isEmpty, "\(error), after \(lines)")
        }
        #expect(stream.task.state == .failed)
    }

    // MARK: Attempts

    /// The wait that a server asks for is longer than the time: its response is the error, at once.
    @Test func aRetryThatWouldBeginTooLateIsNotWaitedFor() async throws {
        let stub = StubTransport { _ in .status(503, headers: ["Retry-After": "30"]) }
        let client = try client(stub) {
            $0.interceptors = [RetryInterceptor()]
            $0.timeouts.total = .seconds(20)
        }
        let error = try await failure { try await client.get("x") }
        #expect(error.status == 503 && stub.calls.count == 1, "\(error)")
    }

    #if os(Linux) && !TERN_URLSESSION
    @Test func allAttemptsHaveTheTotalLimitTogether() async throws {
        let server = try LoopbackServer { try $0.waitForClientToClose() }
        defer { server.stop() }
        var policy = RetryPolicy()
        (policy.limit, policy.firstDelay) = (100, .milliseconds(1))
        let configuration = Session.Configuration.test { [policy] in
            $0.interceptors = [RetryInterceptor(policy, budget: RetryBudget(reserve: 100))]
            $0.timeouts = Timeouts(attempt: .milliseconds(50), total: .milliseconds(400))
        }
        let client = Client(baseURL: server.url, session: Session(configuration: configuration))
        let start = ContinuousClock.now
        let error = try await failure { try await client.get("x") }
        // The last attempt ends at the limit on the whole, or the next one would begin after it.
        let kinds: Set<NetworkError.Kind> = [.attemptTimedOut, .totalTimedOut]
        #expect(kinds.contains(error.kind) && error.attempts > 1 && error.attempts <= 9, "\(error)")
        #expect(error.attemptsDuration.map { $0 >= .milliseconds(350) } == true, "\(error)")
        #expect(start.duration(to: .now) >= .milliseconds(350))
    }

    @Test func anAttemptHasItsOwnLimit() async throws {
        let server = try LoopbackServer { try $0.waitForClientToClose() }
        defer { server.stop() }
        let client = Client(
            baseURL: server.url, session: Session(configuration: .test { $0.timeouts.attempt = Self.limit }))
        let error = try await failure { try await client.get("x") }
        #expect(error.kind == .attemptTimedOut && error.timeoutPhase == .attempt, "\(error)")
        #expect(error.reason.contains("the attempt was not done within \(Self.limit)"), "\(error)")
    }
    #endif

    // MARK: The whole

    @Test func aPauseDoesNotCount() async throws {
        let stub = StubTransport { _ in .text("answer") }
        let isWaiting = Mutex(false)
        let mayGoOn = Mutex(false)
        let waiting = Waiting(waitsOnlyInNext: true) { next in
            isWaiting.withLock { $0 = true }
            while !mayGoOn.withLock({ $0 }) { try await next.sleep(for: .milliseconds(5)) }
        }
        let client = try client(stub) {
            $0.interceptors = [waiting]
            $0.timeouts.total = .seconds(2)
        }
        let task = client.task(.get, "x")
        while !isWaiting.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
        task.pause()
        try await Task.sleep(for: .milliseconds(2_300))
        #expect(task.state == .suspended)
        task.resume()
        mayGoOn.withLock { $0 = true }
        #expect(try await task.value == Data("answer".utf8))
    }

    /// Decoding alone would end in time.
    @Test func aValueThatIsDecodedTooLateIsNotReturned() async throws {
        struct Slow: Decodable {
            init(from decoder: any Decoder) throws {
                // Holds the thread up, as a decoder that computes does.
                _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 0.3)
            }
        }
        let stub = StubTransport { _ in .data(Data("{}".utf8), contentType: "application/json") }
        let waiting = Waiting(waitsOnlyInNext: true) { try await $0.sleep(for: .milliseconds(300)) }
        let client = try client(stub) {
            $0.interceptors = [waiting]
            $0.timeouts.total = .milliseconds(500)
        }
        let error = try await failure { try await client.get("x", as: Slow.self) }
        #expect(error.kind == .totalTimedOut, "\(error)")
    }

    @Test func aCancellationStaysACancellation() async throws {
        let stub = StubTransport { _ in .text("never") }
        let waiting = Waiting { _ in try await Task.sleep(for: .seconds(3_600)) }
        let client = try client(stub) {
            $0.interceptors = [waiting]
            $0.timeouts.total = .seconds(60)
        }
        let task = client.task(.get, "x")
        task.cancel()
        #expect(try await task.failure().isCancelled)
        let call = Task { try await client.get("x") }
        call.cancel()
        let error = try await failure { try await call.value }
        #expect(error.isCancelled && task.state == .cancelled)
    }

    @Test(arguments: [Duration.zero, .nanoseconds(1)])
    func noTimeAtAllSendsNothing(limit: Duration) async throws {
        let stub = StubTransport { _ in .text("never") }
        let client = try client(stub) { $0.timeouts.total = limit }
        let error = try await failure { try await client.get("x") }
        #expect(error.kind == .totalTimedOut && stub.calls.isEmpty, "\(error)")
    }

    @Test func theLongestLimitIsNone() async throws {
        let stub = StubTransport { _ in .text("answer") }
        let waiting = Waiting(waitsOnlyInNext: true) { try await $0.sleep(for: .milliseconds(1)) }
        let client = try client(stub) {
            $0.interceptors = [waiting]
            $0.timeouts.total = .seconds(Int64.max)
        }
        #expect(try await client.get("x") == Data("answer".utf8))
        #expect(try await client.task(.get, "x").value == Data("answer".utf8))
    }
}
