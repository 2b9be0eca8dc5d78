import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An interceptor that forwards every request unchanged.
struct PassingInterceptor: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Reply { try await next(request) }
}

#if !TERN_URLSESSION
/// A call whose Swift task is cancelled throws like a cancelled request, and returns after its task has left the
/// registry.
@Suite("Cancelled calls", .timeLimit(.minutes(1)))
struct CancelledCallTests {
    enum Call: String, CaseIterable {
        case get, decodedGet, head, send, post, response, streamed

        func callAsFunction(_ client: Client, _ path: String) async throws {
            switch self {
            case .get: _ = try await client.get(path)
            case .decodedGet: _ = try await client.get(path, as: String.self)
            case .head: _ = try await client.head(path)
            case .send: _ = try await client.send(.put, path, body: .text("text"))
            case .post: _ = try await client.post(path, body: .text("text"), as: String.self)
            case .response: _ = try await client.session.response(for: client.request(.get, path))
            case .streamed: for try await _ in client.stream(path).chunks {}
            }
        }
    }

    private static let echo: LoopbackServer.Handler = { exchange in
        _ = try exchange.readBody()
        try exchange.respond(text: "text")
    }

    private func expectCancelled(_ error: NetworkError, _ client: Client) async {
        #expect(error.isCancelled && error.reason == "the task was cancelled")
        #expect(error.taskID != nil && error.sessionID == client.session.id)
        #expect(await client.session.tasks.count == 0)
    }

    private func configuration(_ interceptors: [any Interceptor]) -> Session.Configuration {
        .test { $0.interceptors = interceptors }
    }

    @Test(arguments: Call.allCases, [false, true])
    func aCallCancelledBeforeItBeginsSendsNothing(call: Call, hasInterceptor: Bool) async throws {
        try await withDemo(configuration: configuration(hasInterceptor ? [PassingInterceptor()] : [])) {
            server, client in
            let isCancelled = LoopbackServer.Gate()
            let task = Task {
                // Only the cancellation ends this wait.
                try? await LoopbackServer.Gate().wait()
                isCancelled.open()
                try await call(client, "echo")
            }
            task.cancel()
            await expectCancelled(try await failure { try await task.value }, client)
            #expect(isCancelled.isOpen && server.requestCount("/echo") == 0)
        }
    }

    @Test(arguments: Call.allCases, [false, true])
    func callCancelledBeforeItsHeadLeavesTheRegistry(call: Call, hasInterceptor: Bool) async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: configuration(hasInterceptor ? [PassingInterceptor()] : [])) { exchange in
            try exchange.wait(for: gate)
        } test: { server, client in
            let task = Task { try await call(client, "silent") }
            try await server.wait { $0.requestsReceived == 1 }
            task.cancel()
            await expectCancelled(try await failure { try await task.value }, client)
            gate.open()
        }
    }

    @Test(arguments: Call.allCases, [false, true])
    func aCallCancelledAfterItsEndKeepsItsValue(call: Call, hasInterceptor: Bool) async throws {
        try await withServer(configuration: configuration(hasInterceptor ? [PassingInterceptor()] : []), Self.echo) {
            _, client in
            let isDone = LoopbackServer.Gate()
            let task = Task {
                defer { isDone.open() }
                try await call(client, "echo")
                isDone.open()
                try? await LoopbackServer.Gate().wait()  // Only the cancellation ends this wait.
            }
            try await isDone.wait()
            #expect(await client.session.tasks.count == 0)
            task.cancel()
            try await task.value
        }
    }

    /// An interceptor that waits for its cancellation, before or after the request is sent, and then returns late.
    private struct Lingering: Interceptor {
        struct OwnError: Error {}
        let isWaiting: LoopbackServer.Gate
        let asksFirst: Bool
        var throwsItsOwn = false

        func intercept(_ request: Request, next: Next) async throws -> Reply {
            let reply = asksFirst ? try await next(request) : nil
            isWaiting.open()
            do {
                try await LoopbackServer.Gate().wait()
            } catch {
                for _ in 0..<100 { await Task.yield() }
                throw throwsItsOwn ? OwnError() : error
            }
            return try #require(reply)
        }
    }

    @Test(arguments: Call.allCases, [false, true])
    func aCallCancelledInAnInterceptorWaitsForIt(call: Call, asksFirst: Bool) async throws {
        let isWaiting = LoopbackServer.Gate()
        let interceptor = Lingering(isWaiting: isWaiting, asksFirst: asksFirst)
        try await withServer(configuration: configuration([interceptor]), Self.echo) { _, client in
            let task = Task { try await call(client, "echo") }
            try await isWaiting.wait()
            task.cancel()
            await expectCancelled(try await failure { try await task.value }, client)
        }
    }

    @Test(arguments: Call.allCases)
    func interceptorErrorDuringCancellationIsTheCancellation(call: Call) async throws {
        let isWaiting = LoopbackServer.Gate()
        let interceptor = Lingering(isWaiting: isWaiting, asksFirst: false, throwsItsOwn: true)
        try await withServer(configuration: configuration([interceptor]), Self.echo) { _, client in
            let task = Task { try await call(client, "echo") }
            try await isWaiting.wait()
            task.cancel()
            let error = try await failure { try await task.value }
            await expectCancelled(error, client)
            #expect(error.underlying is Lingering.OwnError)
        }
    }

    @Test func cancelledWaitForADownloadOrUploadEndsWithoutItsTask() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer(configuration: configuration([PassingInterceptor()])) { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "late")
        } test: { server, client in
            try await withFolder { folder in
                let download = client.download("file", to: folder.appending(path: "file"))
                let upload = client.upload("other", body: .text("text"))
                try await server.wait { $0.requestsReceived == 2 }
                let waits = [
                    Task { _ = try await download.value }, Task { _ = try await upload.value },
                ]
                for wait in waits {
                    wait.cancel()
                    let error = try await failure { try await wait.value }
                    #expect(error.isCancelled && error.reason.hasSuffix("the task continues"))
                }
                #expect(download.state == .running && upload.state == .running)
                gate.open()
                #expect(try await String(contentsOf: download.value, encoding: .utf8) == "late")
                #expect(try await upload.value == Data("late".utf8))
            }
        }
    }
}
#endif
