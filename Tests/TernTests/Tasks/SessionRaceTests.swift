import TernConcurrency
import TernTesting
import Testing

@testable import Tern

/// Tasks that begin and end on several threads, while others wait for them and end the session. Random, and also run
/// under the thread sanitizer.
@Suite("Races at the end of a session", .timeLimit(.minutes(2)))
struct SessionRaceTests {
    /// The executor of the session's actors.
    enum Place: CaseIterable {
        /// A queue.
        case queue
        /// The event loop of the system, if there is one.
        case loop
    }

    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private func makeSession(_ place: Place) -> Session {
        place == .loop ? Session() : Session(stub: StubTransport([:]))
    }

    private func pause(_ random: inout Generator) async {
        for _ in 0..<Int.random(in: 0..<4, using: &random) { await Task.yield() }
    }

    private func startTask(in registry: TaskRegistry) throws -> TaskRecord {
        let prepared = try PreparedRequest(
            Request(.get, "http://127.0.0.1:1/"), registry: registry, delivery: .collected)
        let record = TaskRecord(id: registry.nextID(), registry: registry, request: prepared, valueType: Void.self)
        #expect(record.startInCaller())
        return record
    }

    /// Starts and ends tasks, of which nothing is sent. Returns the number of those that the session took.
    private func work(_ registry: TaskRegistry, _ count: Int, _ seed: UInt64) async throws -> Int {
        var random = Generator(state: seed)
        let request = try Request(.get, "http://127.0.0.1:1/")
        var taken = 0
        for _ in 0..<count {
            let prepared = try PreparedRequest(request, registry: registry, delivery: .collected)
            if Bool.random(using: &random) {
                let record = TaskRecord(
                    id: registry.nextID(), registry: registry, request: prepared, valueType: Void.self)
                guard record.startInCaller() else { continue }
                await pause(&random)
                record.end(nil)
                taken += 1
            } else {
                let task: SessionTask<Int> = registry.makeTask(prepared, startsImmediately: false) { _ in 1 }
                await pause(&random)
                guard task.state != .failed, Bool.random(using: &random) else { continue }
                task.resume()
                await pause(&random)
                _ = try await task.value
                taken += 1
            }
        }
        return taken
    }

    /// Drains a session now and then. After each drain, the tasks from before it have left.
    private func drain(_ session: Session, _ seed: UInt64) async {
        var random = Generator(state: seed)
        for _ in 0..<5 {
            let known = session.tasks.live.tasks.map(\.id)
            let isCancelled = Bool.random(using: &random)
            let draining = Task { await session.drained() }
            if isCancelled { draining.cancel() }
            await draining.value
            let haveLeft = known.allSatisfy { session.tasks.live.task($0) == nil }
            #expect(haveLeft || isCancelled)
            await pause(&random)
        }
    }

    private func endEvents(of events: AsyncStream<TaskRegistry.Event>) async -> (ends: Int, isInvalidated: Bool) {
        var (ends, isInvalidated) = (0, false)
        for await event in events {
            #expect(!isInvalidated)
            if case .completed = event { ends += 1 }
            if case .sessionInvalidated = event { isInvalidated = true }
        }
        return (ends, isInvalidated)
    }

    @Test(arguments: Place.allCases) func noEndAndNoWaiterIsLost(place: Place) async throws {
        for round in 0..<UInt64(40) {
            let session = makeSession(place)
            let events = round % 2 == 0 ? session.tasks.events : nil
            let taken = try await withThrowingTaskGroup(of: Int.self) { group in
                for worker in 0..<UInt64(4) {
                    group.addTask { try await work(session.tasks, 20, round * 100 + worker) }
                }
                for drain in 0..<UInt64(2) {
                    group.addTask {
                        await self.drain(session, round * 100 + 50 + drain)
                        return 0
                    }
                }
                group.addTask {
                    var random = Generator(state: round)
                    for _ in 0..<Int(round) { await pause(&random) }
                    if round % 3 == 0 {
                        await session.invalidateAndCancel()
                    } else {
                        await session.finishTasksAndInvalidate()
                    }
                    let isIdle = session.tasks.live.isEmpty
                    #expect(isIdle)
                    return 0
                }
                return try await group.reduce(0, +)
            }
            #expect(await session.isInvalidated)
            #expect(await session.tasks.count == 0)
            guard let events else { continue }
            let end = await endEvents(of: events)
            // A cancellation ends tasks that nobody has resumed, too.
            #expect(end.isInvalidated && (round % 3 == 0 ? end.ends >= taken : end.ends == taken))
        }
    }

    /// The session is released while tasks run: their events end with the last one.
    @Test(arguments: Place.allCases) func theEventsOfAReleasedSessionEnd(place: Place) async throws {
        for round in 0..<UInt64(40) {
            var session: Session? = makeSession(place)
            let tasks = try #require(session?.tasks)
            let events = tasks.events
            // Live until the others have ended, so that the events do not end before.
            let last = try startTask(in: tasks)
            let taken = try await withThrowingTaskGroup(of: Int.self) { group in
                for worker in 0..<UInt64(3) { group.addTask { try await work(tasks, 20, round * 10 + worker) } }
                await Task.yield()
                session = nil
                return try await group.reduce(0, +)
            }
            last.end(nil)
            let end = await endEvents(of: events)
            #expect(end.ends == taken + 1 && !end.isInvalidated)
        }
    }

    /// A session that finishes is kept until its last task has ended, even if nobody waits for it.
    @Test(arguments: Place.allCases) func aFinishingSessionIsInvalidatedWithoutItsCaller(place: Place) async throws {
        var session: Session? = makeSession(place)
        let tasks = try #require(session?.tasks)
        let events = tasks.events
        let task = try startTask(in: tasks)
        do {
            let finishing = Task { [session] in await session?.finishTasksAndInvalidate() }
            while tasks.live.isOpen { await Task.yield() }
            finishing.cancel()
            await finishing.value
        }
        weak let released = session
        session = nil
        task.end(nil)
        let end = await endEvents(of: events)
        #expect(end.ends == 1 && end.isInvalidated)
        while released != nil { await Task.yield() }
    }
}
