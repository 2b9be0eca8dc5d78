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

    /// The work of a handle and of a call runs on the loop; code of the caller does not.
    @Test(arguments: ["handle", "call"]) func codeOfTheCallerRunsElsewhere(way: String) async throws {
        let decoder = BodyDecoder<Bool> { _, _ in EventLoops.all.contains { $0.isCurrent } }
        let request = try client.request(.get, "hello")
        let isOnLoop =
            way == "handle"
            ? try await client.session.task(for: request, decode: decoder, startsImmediately: true).value.value
            : try await client.session.response(for: request, decode: decoder).value
        #expect(!isOnLoop)
    }

    /// The registry knows a task whose work begins where it is created, and knows its end.
    @Test func aHandleIsListedUntilItsEnd() async throws {
        let task = client.task(.get, "silent")
        #expect(await client.session.tasks.count == 1)
        let quick = client.task(.get, "hello")
        _ = try await quick.value
        #expect(await client.session.tasks.all.map(\.id) == [task.id])
        #expect(await client.session.tasks.task(quick.id) == nil)
        task.cancel()
        _ = await task.states.first { $0.isTerminal }
        #expect(await client.session.tasks.count == 0)
        await client.session.drained()
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
