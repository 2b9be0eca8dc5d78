import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
@Suite("End of a session", .timeLimit(.minutes(1)))
struct SessionEndTests {
    /// Runs a server whose responses to /slow wait for a gate.
    private func withGate(
        _ test: (LoopbackServer, Client, LoopbackServer.Gate) async throws -> Void
    ) async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            if exchange.request.path == "/slow" { try exchange.wait(for: gate) }
            try LoopbackServer.answerDemo(exchange)
        } test: { server, client in
            try await test(server, client, gate)
        }
    }

    @Test func drainedWaitsForKnownTasksOnly() async throws {
        try await withGate { server, client, gate in
            await client.session.drained()
            let slow = client.task(.get, "slow", query: ["count": 1, "interval": 1])
            let drained = LoopbackServer.Gate()
            let waiting = Task {
                await client.session.drained()
                drained.open()
                return slow.state
            }
            try await server.wait { $0.requestsReceived == 1 }
            _ = try await client.get("json")
            #expect(!drained.isOpen)
            gate.open()
            #expect(await waiting.value == .completed)
        }
    }

    @Test func drainedReturnsOnceTheValuesAreThere() async throws {
        try await withDemo { _, client in
            for _ in 0..<50 {
                let tasks = (0..<5).map { client.task(.get, "users/\($0)") }
                await client.session.drained()
                #expect(tasks.allSatisfy { $0.state == .completed })
                #expect(await client.session.tasks.count == 0)
            }
        }
    }

    /// Inherits the session's isolation, so that the drain is queued on the loop when this returns.
    private func startDraining(_ session: isolated Session) -> Task<Void, Never> {
        Task { await session.drained() }
    }

    @Test func taskMadeAfterTheCallIsNotAwaited() async throws {
        try await withGate { server, client, gate in
            let first = client.task(.get, "json", startsImmediately: false)
            let waiting = await startDraining(client.session)
            // The loop runs its jobs in order: the drain has begun.
            _ = await client.session.tasks.count
            let later = client.task(.get, "slow")
            first.resume()
            await waiting.value
            #expect(later.state == .running)
            gate.open()
            _ = try await later.value
        }
    }

    @Test func cancellingTheDrainEndsItsWaitOnly() async throws {
        try await withGate { _, client, gate in
            let task = client.task(.get, "slow")
            let waiting = Task { await client.session.drained() }
            waiting.cancel()
            await waiting.value
            #expect(task.state == .running)
            gate.open()
            _ = try await task.value
        }
    }

    @Test func finishingCompletesLiveTasksAndRefusesNewOnes() async throws {
        try await withGate { server, client, gate in
            let events = client.session.tasks.events
            let task = client.task(.get, "slow", query: ["count": 1, "interval": 1])
            try await server.wait { $0.requestsReceived == 1 }
            let finished = LoopbackServer.Gate()
            let finishing = Task {
                await client.session.finishTasksAndInvalidate()
                finished.open()
            }
            while client.task(.get, "json", startsImmediately: false).state != .failed { await Task.yield() }
            #expect(!finished.isOpen)
            gate.open()
            await finishing.value
            #expect(task.state == .completed)
            let last = await events.collected().last
            guard case .sessionInvalidated(client.session.id)? = last else {
                Issue.record("the last event is \(String(describing: last))")
                return
            }
        }
    }

    @Test func cancellingTheSessionEndsLiveTasks() async throws {
        try await withGate { server, client, _ in
            let tasks = (0..<5).map { _ in client.task(.get, "slow") }
            let fresh = client.task(.get, "json", startsImmediately: false)
            let stream = client.stream("stall")
            _ = try await stream.response
            try await server.wait { $0.requestsReceived == 6 }
            await client.session.invalidateAndCancel()
            #expect(tasks.allSatisfy { $0.state == .cancelled })
            #expect(fresh.state == .cancelled)
            #expect(stream.task.state == .cancelled)
            #expect(try await failure { for try await _ in stream.chunks {} }.isCancelled)
        }
    }

    @Test func endedSessionFailsEveryStart() async throws {
        try await withDemo { server, client in
            let session = client.session
            await session.finishTasksAndInvalidate()
            await session.finishTasksAndInvalidate()
            await session.invalidateAndCancel()
            await session.drained()
            let request = try client.request(.get, "json")
            let errors = [
                try await failure { try await client.get("json") },
                try await failure { try await session.response(for: request) },
                try await session.task(for: request).failure(),
                try await session.download(request, destination: nil).failure(),
                try await failure { try await session.stream(request).response },
            ]
            for error in errors {
                #expect(error.kind == .sessionInvalidated)
                #expect(error.sessionID == session.id)
                #expect(error.request?.urlString == request.urlString)
            }
            #expect(server.requests.isEmpty)
        }
    }

    /// The end comes at a moment unknown to the tasks: each of them has its value or an error of the end, the end is
    /// published last, and no accepted task outlives it.
    @Test func endDuringStartsLosesNoTask() async throws {
        try await withDemo { _, client in
            for round in 0..<40 {
                let session = Session(configuration: .test())
                let request = try client.request(.get, "json")
                let events = session.tasks.events
                let outcomes = await withTaskGroup(of: Result<Int, any Error>.self) { group in
                    for _ in 0..<8 {
                        group.addTask { await Task { try await session.response(for: request).status }.result }
                    }
                    if round % 4 != 0 { await Task.yield() }
                    await session.finishTasksAndInvalidate()
                    var outcomes: [Result<Int, any Error>] = []
                    for await outcome in group { outcomes.append(outcome) }
                    return outcomes
                }
                var accepted = 0
                for outcome in outcomes {
                    switch outcome {
                    case .success(let status):
                        #expect(status == 200)
                        accepted += 1
                    case .failure(let error):
                        #expect((error as? NetworkError)?.kind == .sessionInvalidated)
                    }
                }
                var ends = 0
                var isInvalidated = false
                for await event in events {
                    #expect(!isInvalidated)
                    if case .completed = event { ends += 1 }
                    if case .sessionInvalidated = event { isInvalidated = true }
                }
                #expect(isInvalidated)
                #expect(ends == accepted)
            }
        }
    }

    // MARK: A session without references

    @Test func droppedSessionIsReleasedAfterItsTasks() async throws {
        try await withGate { server, _, gate in
            weak var context: TaskRegistry?
            var task: SessionTask<Response<Data>>?
            do {
                let session = Session(configuration: .test { $0.headers["X-From"] = "the session" })
                context = session.tasks
                let request = try Request(.get, url: server.url("slow?count=1&interval=1"))
                task = session.task(for: request, startsImmediately: true)
            }
            try await server.wait { $0.requestsReceived == 1 }
            #expect(context != nil)
            gate.open()
            #expect(try await task?.value.status == 200)
            task = nil
            // The connection is closed with the session's pool.
            try await server.wait { $0.openConnections == 0 }
            while context != nil { await Task.yield() }
        }
    }

    @Test func callOfADroppedSessionFinishes() async throws {
        try await withGate { server, _, gate in
            let request = try Request(.get, url: server.url("slow?count=1&interval=1"))
            async let response = Session(configuration: .test()).response(for: request)
            try await server.wait { $0.requestsReceived == 1 }
            gate.open()
            #expect(try await response.status == 200)
            try await server.wait { $0.openConnections == 0 }
        }
    }

    @Test func eventsEndWithTheLastTaskOfADroppedSession() async throws {
        try await withGate { server, _, gate in
            var session: Session? = Session(configuration: .test())
            let request = try Request(.get, url: server.url("slow?count=1&interval=1"))
            let events = try #require(session?.tasks.events)
            let task = session?.task(for: request, startsImmediately: true)
            session = nil
            try await server.wait { $0.requestsReceived == 1 }
            gate.open()
            let told = await events.collected()
            #expect(told.count == 2)
            #expect(task?.state == .completed)
        }
    }

    @Test func aDroppedTaskThatNeverStartedLeaksNothing() async throws {
        try await withDemo { server, client in
            let isReleased = LoopbackServer.Gate()
            do {
                let probe = Probe(isReleased)
                let decoder = BodyDecoder { _, _ in probe.touch() }
                _ = client.session.task(for: try client.request(.get, "json"), decode: decoder)
            }
            try await isReleased.wait()
            #expect(await client.session.tasks.count == 0)
            // The task can no longer start: a drain does not wait for it.
            await client.session.drained()
        }
    }

    @Test func droppedUnstartedTaskEndsTheDrain() async throws {
        try await withDemo { _, client in
            var task: SessionTask<Data>? = client.task(.get, "json", startsImmediately: false)
            #expect(task?.state == .suspended)
            let waiting = Task { await client.session.finishTasksAndInvalidate() }
            for _ in 0..<20 { await Task.yield() }
            task = nil
            await waiting.value
        }
    }

    @Test func repeatedSessionsLeaveNoResources() async throws {
        try await withDemo { server, _ in
            let request = try Request(.get, url: server.url("json"))
            for _ in 0..<50 {
                weak var context: TaskRegistry?
                do {
                    let session = Session(configuration: .test())
                    context = session.tasks
                    let events = session.tasks.events
                    let task = session.task(for: request, startsImmediately: true)
                    _ = try await task.value
                    _ = session.task(for: request)
                    _ = events
                }
                while context != nil { await Task.yield() }
            }
            try await server.wait { $0.openConnections == 0 }
        }
    }
}
#endif
