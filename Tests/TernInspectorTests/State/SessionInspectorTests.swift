import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernInspector

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks what an inspector keeps of the tasks of a session.
@Suite("Inspector: observer", .timeLimit(.minutes(1))) struct SessionInspectorTests {
    private final class Owner: Sendable {}
    private enum OwnerKey: Request.UserInfoKey { typealias Value = Owner }

    private func session(_ inspector: SessionInspector, _ stub: StubTransport) -> Session {
        var configuration = Session.Configuration()
        configuration.observers = [inspector]
        return Session(configuration: configuration, stub: stub)
    }

    @Test func objectsOfTheCallerAreNotKept() async throws {
        let inspector = SessionInspector()
        let session = session(inspector, StubTransport { _ in .text("x") })
        weak var kept: Owner?
        do {
            let owner = Owner()
            kept = owner
            var request = try Request(.post, "https://example.com/", body: .data(Data(count: 1_000), contentType: nil))
            request.userInfo[OwnerKey.self] = owner
            _ = try await session.response(for: request)
        }
        await session.finishTasksAndInvalidate()
        #expect(inspector.endedTasks.count == 1 && kept == nil)
    }

    @Test func longHeadsAreCut() async throws {
        let inspector = SessionInspector()
        let long = String(repeating: "v", count: 10_000)
        let session = session(
            inspector,
            StubTransport { _ in
                .text("x", headers: ["X-One": long, "X-Two": long, "X-Three": "3"])
            })
        let headers: Headers = ["X-First": long, "X-Second": long]
        _ = try await session.response(for: Request(.get, "https://example.com/", headers: headers))
        await session.finishTasksAndInvalidate()
        let task = try #require(inspector.endedTasks.first)
        let attempt = try #require(task.attempts.first)
        #expect(attempt.headers.map(\.name) == ["X-First"])
        for head in [attempt.response, task.end?.response] {
            let names = try #require(head).headers.map(\.name)
            #expect(names.contains("X-One") && !names.contains("X-Two"))
        }
    }

    @Test func tasksOfManyCallersAreKept() async throws {
        let inspector = SessionInspector(limit: 250)
        let session = session(inspector, StubTransport { _ in .text("x") })
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    _ = try await session.response(for: Request(.get, "https://example.com/\(number)"))
                }
            }
            try await group.waitForAll()
        }
        await session.finishTasksAndInvalidate()
        let changes = inspector.changes(since: 0, limit: 1_000)
        #expect(inspector.endedTasks.count == 200 && changes.totals.ended == 200 && changes.totals.started == 200)
        #expect(changes.tasks.allSatisfy { $0.end?.response?.status == 200 && $0.attempts.count == 1 })
        #expect(changes.tasks.allSatisfy { $0.attempts.first?.metrics != nil })
    }

    @Test func challengesAreNamed() async throws {
        let inspector = SessionInspector()
        let stub = StubTransport { call in
            call.headers.contains("Authorization")
                ? .text("x") : .text("no", status: 401, headers: ["WWW-Authenticate": "Basic realm=\"a\""])
        }
        var configuration = Session.Configuration()
        configuration.observers = [inspector]
        configuration.credentials = try FixedCredentials(["https://example.com": .user("ada", password: "s3cret")])
        let session = Session(configuration: configuration, stub: stub)
        _ = try await session.response(for: Request(.get, "https://example.com/"))
        await session.finishTasksAndInvalidate()
        let task = try #require(inspector.endedTasks.first)
        #expect(task.attempts.map(\.cause) == [.first, .challenge])
        #expect(task.attempts.map { $0.response?.status } == [401, 200])
    }
}
