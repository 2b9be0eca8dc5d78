import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
/// The interceptors that wait only in `next` have no Swift task of their own: the end of the task ends their waits.
@Suite("Wire: waits of interceptors", .timeLimit(.minutes(1)))
struct InterceptorWaitTests {
    /// Waits for a token that never comes.
    private struct NoToken: Authenticator {
        let isWaiting: LoopbackServer.Gate

        func apply(_ credential: String, to request: inout Request) {}

        @concurrent func refresh(_ credential: String?) async throws -> String {
            isWaiting.open()
            try await Task.sleep(for: .seconds(1_000))
            return ""
        }
    }

    /// Waits in the ways that end with the task.
    private struct Sleeps: Interceptor {
        let isWaiting: LoopbackServer.Gate
        var work: (@Sendable () async throws -> Void)?

        var waitsOnlyInNext: Bool { true }

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            isWaiting.open()
            if let work { try await next.cancellable(work) } else { try await next.sleep(for: .seconds(1_000)) }
            return try await next(request)
        }
    }

    /// Opens a gate when a server's answer asks for a wait.
    private struct Announces: Interceptor {
        let isWaiting: LoopbackServer.Gate

        var waitsOnlyInNext: Bool { true }

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            defer { isWaiting.open() }
            return try await next(request)
        }
    }

    private static func interceptors(_ kind: String, _ isWaiting: LoopbackServer.Gate) -> [any Interceptor] {
        switch kind {
        case "retry": [RetryInterceptor(), Announces(isWaiting: isWaiting)]
        case "token": [AuthenticationInterceptor(NoToken(isWaiting: isWaiting))]
        case "sleep": [Sleeps(isWaiting: isWaiting)]
        default: [Sleeps(isWaiting: isWaiting) { try await Task.sleep(for: .seconds(1_000)) }]
        }
    }

    @Test(arguments: ["retry", "token", "sleep", "work"], ["caller", "handle", "registry", "end", "before"])
    func theEndOfATaskEndsTheWait(kind: String, way: String) async throws {
        let isWaiting = LoopbackServer.Gate()
        let configuration = Session.Configuration.test { $0.interceptors = Self.interceptors(kind, isWaiting) }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(status: 503, headers: [("Retry-After", "50")], text: "later")
        } test: { server, client in
            let error: NetworkError
            if way == "handle" {
                let task = client.task(.get, "/")
                try await isWaiting.wait()
                task.cancel()
                error = try await failure { try await task.value }
            } else {
                let task = Task {
                    if way == "before" { while !Task.isCancelled { await Task.yield() } }
                    return try await client.get("/")
                }
                if way == "before" { task.cancel() } else { try await isWaiting.wait() }
                switch way {
                case "caller": task.cancel()
                case "registry":
                    // The registry knows a task that was never sent.
                    #expect(await client.session.tasks.count == 1)
                    await client.session.tasks.cancelAll()
                case "end": await client.session.invalidateAndCancel()
                default: break
                }
                error = try await failure { try await task.value }
            }
            #expect(error.isCancelled, "\(error)")
            #expect(server.counts.requestsReceived <= (kind == "retry" && way != "before" ? 1 : 0))
            await client.session.drained()
            #expect(await client.session.tasks.count == 0)
        }
    }

    @Test(arguments: ["caller", "registry"]) func theEndOfATaskEndsItsTurn(way: String) async throws {
        let configuration = Session.Configuration.test {
            $0.interceptors = [RateLimitInterceptor(requestsPerSecond: 0.001)]
        }
        try await withDemo(configuration: configuration) { server, client in
            try await client.get("json")
            let task = Task { try await client.get("json") }
            // It joins the registry before it waits.
            while await client.session.tasks.count == 0 { await Task.yield() }
            if way == "caller" { task.cancel() } else { await client.session.tasks.cancelAll() }
            let error = try await failure { try await task.value }
            #expect(error.isCancelled && server.requestCount("/json") == 1)
        }
    }

    /// Answers at once, and sends the request in the background when a gate opens.
    private struct AnswersFirst: Interceptor {
        let gate: LoopbackServer.Gate
        let sent: LoopbackServer.Gate

        var waitsOnlyInNext: Bool { true }

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            Task {
                try await gate.wait()
                _ = try? await next(request)
                sent.open()
            }
            return Reply(to: request, body: Data("first".utf8))
        }
    }

    @Test func anEndedTaskNeverJoinsTheRegistry() async throws {
        let (gate, sent) = (LoopbackServer.Gate(), LoopbackServer.Gate())
        let configuration = Session.Configuration.test { $0.interceptors = [AnswersFirst(gate: gate, sent: sent)] }
        try await withDemo(configuration: configuration) { _, client in
            let text = try await client.get("json", as: String.self)
            #expect(text == "first")
            gate.open()
            try await sent.wait()
            #expect(await client.session.tasks.count == 0)
            await client.session.drained()
            await client.session.finishTasksAndInvalidate()
        }
    }

    /// Pauses its task before it sends the request.
    private struct Pauses: Interceptor {
        var waitsOnlyInNext: Bool { true }

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            next.task.pause()
            return try await next(request)
        }
    }

    @Test func aTaskThatIsPausedBeforeItsFirstAttemptIsListed() async throws {
        let configuration = Session.Configuration.test { $0.interceptors = [Pauses()] }
        try await withDemo(configuration: configuration) { server, client in
            let task = Task { try await client.get("json") }
            while await client.session.tasks.count == 0 { await Task.yield() }
            await client.session.invalidateAndCancel()
            let error = try await failure { try await task.value }
            #expect(error.isCancelled && server.counts.requestsReceived == 0)
        }
    }

    /// Waits for ever in a policy and in a provider of credentials.
    private struct NeverDecides: SessionPolicy, CredentialProvider {
        let isWaiting: LoopbackServer.Gate

        @concurrent func disposition(
            of response: ResponseHead, for task: AnySessionTask
        ) async throws -> ResponseDisposition? {
            isWaiting.open()
            try await Task.sleep(for: .seconds(1_000))
            return nil
        }

        @concurrent func credential(
            for challenge: AuthenticationChallenge, of request: Request
        ) async throws -> Credential? {
            isWaiting.open()
            try await Task.sleep(for: .seconds(1_000))
            return nil
        }
    }

    @Test(arguments: ["policy", "provider"], [false, true])
    func theEndOfATaskEndsTheWaitOfItsHooks(kind: String, hasRetries: Bool) async throws {
        let isWaiting = LoopbackServer.Gate()
        let configuration = Session.Configuration.test {
            if hasRetries { $0.interceptors = [RetryInterceptor()] }
            if kind == "policy" { $0.policy = NeverDecides(isWaiting: isWaiting) }
            if kind == "provider" { $0.credentials = NeverDecides(isWaiting: isWaiting) }
        }
        try await withServer(configuration: configuration) { exchange in
            let challenge = [("WWW-Authenticate", "Basic realm=\"r\"")]
            try exchange.respond(status: kind == "policy" ? 200 : 401, headers: challenge, text: "x")
        } test: { _, client in
            let task = Task { try await client.get("/") }
            try await isWaiting.wait()
            await client.session.invalidateAndCancel()
            let error = try await failure { try await task.value }
            #expect(error.isCancelled, "\(error)")
        }
    }

    /// The check of a refused response is asked once.
    @Test func aRefusedResponseIsCheckedOnce() async throws {
        let count = Counter()
        let configuration = Session.Configuration.test {
            $0.validation = ResponseValidation(check: { _ in
                count.add()
                throw NetworkError(.status, reason: "no")
            })
        }
        try await withDemo(configuration: configuration) { _, client in
            _ = try await failure { try await client.get("json") }
            #expect(count.value == 1)
        }
    }

    // MARK: Adapters

    private struct Named: RequestAdapter {
        let name: String

        func adapt(_ request: Request) -> Request {
            var request = request
            request.headers.append(name: "X-Way", value: name)
            return request
        }
    }

    /// The same as an interceptor.
    private struct Waiting: Interceptor {
        let name: String

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            try await next(Named(name: name).adapt(request))
        }
    }

    @Test func adaptersActInTheOrderOfTheirLists() async throws {
        let configuration = Session.Configuration.test {
            $0.interceptors = [Named(name: "a"), Waiting(name: "b"), Named(name: "c")]
        }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(
                text: exchange.request.headers.filter { $0.name == "X-Way" }.map(\.value).joined(separator: ","))
        } test: { _, client in
            let value1 = try await client.get("/", as: String.self)
            #expect(value1 == "a,b,c")
            var request = try client.request(.get, "/")
            request.interceptors = [Named(name: "d"), Waiting(name: "e")]
            let value2 = try await client.session.response(for: request, decode: .string).value
            #expect(value2 == "a,b,c,d,e")
            let value3 = try await client.task(.get, "/", as: String.self).value
            #expect(value3 == "a,b,c")
            var streamed = Data()
            for try await chunk in client.stream("/").chunks { streamed += chunk }
            #expect(String(decoding: streamed, as: UTF8.self) == "a,b,c")
        }
    }

    @Test func anAdapterIsCalledForEachAttempt() async throws {
        var policy = RetryPolicy()
        policy.firstDelay = .zero
        let configuration = Session.Configuration.test { [policy] in
            $0.interceptors = [RetryInterceptor(policy), Named(name: "a")]
        }
        try await withServer(configuration: configuration) { exchange in
            let isFirst = exchange.request.requestIndex == 0
            let way = exchange.request.headers.filter { $0.name == "X-Way" }.map(\.value).joined(separator: ",")
            try exchange.respond(status: isFirst ? 503 : 200, text: way)
        } test: { server, client in
            let value4 = try await client.get("/", as: String.self)
            #expect(value4 == "a")
            #expect(server.counts.requestsReceived == 2)
        }
    }

    @Test(arguments: [true, false]) func anAdaptersErrorFailsTheTask(isOwn: Bool) async throws {
        struct Refusal: Error {}
        struct Refuses: RequestAdapter {
            let isOwn: Bool

            func adapt(_ request: Request) throws -> Request {
                throw isOwn ? NetworkError(.authentication, reason: "no token") as any Error : Refusal()
            }
        }
        let configuration = Session.Configuration.test { $0.interceptors = [Refuses(isOwn: isOwn)] }
        try await withDemo(configuration: configuration) { server, client in
            let error = try await failure { try await client.get("json") }
            #expect(error.kind == (isOwn ? .authentication : .interceptor))
            #expect(isOwn || error.underlying is Refusal)
            #expect(error.taskID != nil && server.counts.requestsReceived == 0)
        }
    }

    @Test func anAdapterInTheChainOfAnInterceptorIsOne() async throws {
        let configuration = Session.Configuration.test { $0.interceptors = [Named(name: "a")] }
        try await withServer(configuration: configuration) { exchange in
            try exchange.respond(
                text: exchange.request.headers.filter { $0.name == "X-Way" }.map(\.value).joined(separator: ","))
        } test: { _, client in
            // Its `intercept` does the same, for a caller that has it as any interceptor.
            struct Wraps: Interceptor {
                let inner: any Interceptor

                func intercept(_ request: Request, next: Next) async throws -> Reply {
                    try await inner.intercept(request, next: next)
                }
            }
            var request = try client.request(.get, "/")
            request.interceptors = [Wraps(inner: Named(name: "b"))]
            let value5 = try await client.session.response(for: request, decode: .string).value
            #expect(value5 == "a,b")
        }
    }
}
#endif
