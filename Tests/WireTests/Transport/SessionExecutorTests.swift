#if os(Linux) && !TERN_URLSESSION
import Foundation
import TernEngine
import TernTesting
import Testing

@testable import Tern

/// Checks calls of tasks that run on the event loop of their session.
@Suite("Wire: calls on the session's executor", .timeLimit(.minutes(1)))
struct SessionExecutorTests {
    private let server: LoopbackServer
    private let client: Client

    init() throws {
        server = try LoopbackServer { exchange in
            switch exchange.request.path {
            case "/silent": try exchange.waitForClientToClose()
            case "/large": try exchange.respond(body: Data(repeating: 7, count: 4 << 20))
            default: try exchange.respond(text: exchange.request.path)
            }
        }
        client = Client(baseURL: server.url)
    }

    private var executor: any TaskExecutor { client.session.executor }

    @concurrent private func runsOnLoop() async -> Bool { EventLoops.all.contains { $0.isCurrent } }

    @Test func aCallContinuesOnTheLoop() async throws {
        let (text, wasOnLoop) = try await withTaskExecutorPreference(executor) {
            let text = try await client.get("hello", as: String.self)
            return (text, await runsOnLoop())
        }
        #expect(text == "/hello")
        #expect(wasOnLoop)
    }

    @Test func manyCallsAtOnceGetTheirOwnResponses() async throws {
        let texts = try await withTaskExecutorPreference(executor) {
            try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for number in 0..<2_000 {
                    group.addTask { (number, try await client.get("\(number)", as: String.self)) }
                }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
        }
        #expect(texts.count == 2_000)
        #expect(texts.allSatisfy { $0.value == "/\($0.key)" })
    }

    @Test func aLargeBodyIsReadOnTheLoop() async throws {
        let count = try await withTaskExecutorPreference(executor) {
            var count = 0
            for try await chunk in client.stream("large").chunks { count += chunk.count }
            return count
        }
        #expect(count == 4 << 20)
    }

    @Test func cancellingATaskOnTheLoopEndsItsCall() async throws {
        let call = Task(executorPreference: executor) { try await client.get("silent", as: String.self) }
        try await server.wait { $0.requestsReceived == 1 }
        call.cancel()
        let result = await call.result
        #expect(throws: NetworkError.self) { try result.get() }
    }

    @Test func theExecutorOutlivesItsSession() async throws {
        var session: Session? = Session()
        let executor = try #require(session?.executor)
        session = nil
        #expect(await withTaskExecutorPreference(executor) { await runsOnLoop() })
    }

    @Test func theNumberOfLoopsIsFixedOnceASessionExists() throws {
        let count = Session.eventLoopCount
        #expect(count >= 1)
        #expect(throws: Session.EventLoopError.self) { try Session.setEventLoopCount(count + 1) }
        #expect(Session.eventLoopCount == count)
    }

    @Test(arguments: [0, -1, 65, Int.max]) func anImpossibleNumberOfLoopsIsRefused(count: Int) {
        #expect(throws: Session.EventLoopError.self) { try Session.setEventLoopCount(count) }
    }
}
#endif
