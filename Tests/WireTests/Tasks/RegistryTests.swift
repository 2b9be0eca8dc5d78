import Tern
import TernTesting
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if !TERN_URLSESSION
@Suite("TaskRegistry", .timeLimit(.minutes(1)))
struct RegistryTests {
    /// Returns an event as text that is easy to compare, with the number of its task.
    private func text(_ event: TaskRegistry.Event) -> String {
        switch event {
        case .resumed(let task): "resumed \(task.id)"
        case .suspended(let task): "suspended \(task.id)"
        case .fileMoved(let task, let file): "moved \(task.id) to \(file.lastPathComponent)"
        case .moveFailed(let task, let error): "move failed \(task.id): \(error.kind)"
        case .completed(let end): "completed \(end.task.id)" + (end.error.map { ": \($0.kind)" } ?? "")
        case .sessionInvalidated: "invalidated"
        case .dropped(let count): "dropped \(count)"
        }
    }

    private func texts(_ events: [TaskRegistry.Event]) -> [String] { events.map { text($0) } }

    /// Returns all events until the session is invalidated.
    private func events(
        of client: Client, during work: () async throws -> Void
    ) async throws -> [TaskRegistry.Event] {
        let stream = client.session.tasks.events
        try await work()
        await client.session.finishTasksAndInvalidate()
        return await stream.collected()
    }

    @Test func eventsOfATaskFollowItsLifecycle() async throws {
        try await withHalf(of: 1_000_000) { _, client, gate in
            let task = client.task(.get, "half", startsImmediately: false)
            let events = try await events(of: client) {
                task.pause()
                task.resume()
                task.resume()
                await task.wait(forBytes: 1)
                for _ in 0..<2 {
                    task.pause()
                    task.pause()
                    task.resume()
                    task.resume()
                }
                gate.open()
                _ = try await task.value
                task.resume()
                task.pause()
                task.cancel()
            }
            let id = task.id
            #expect(
                texts(events) == [
                    "resumed \(id)", "suspended \(id)", "resumed \(id)", "suspended \(id)", "resumed \(id)",
                    "completed \(id)", "invalidated",
                ])
        }
    }

    @Test func callsWithoutAHandlePublishEvents() async throws {
        try await withDemo { _, client in
            let events = try await events(of: client) {
                _ = try await client.get("json")
                _ = try? await client.get("status/404")  // Only its event matters.
            }
            #expect(
                texts(events) == ["resumed #1", "completed #1", "resumed #2", "completed #2: status", "invalidated"])
        }
    }

    @Test func completedEventHasTheEndAndTheHandleHasTheBody() async throws {
        try await withDemo { server, client in
            var request = try client.request(.get, "json")
            request.label = "the user"
            let task = client.session.task(for: request, decode: BodyDecoder.string, startsImmediately: false)
            let events = try await events(of: client) {
                task.resume()
                _ = try await task.value
            }
            guard case .completed(let end)? = events.dropLast().last else {
                Issue.record("no end: \(texts(events))")
                return
            }
            #expect(end.task.id == task.id)
            #expect(end.task.sessionID == client.session.id)
            #expect(end.task.label == "the user")
            #expect(end.response?.status == 200)
            #expect(end.error == nil)
            #expect(end.file == nil)
            let isRight = end.valueType == Response<String>.self
            #expect(isRight)
            #expect((end.metrics?.receivedBytes ?? 0) > 0)
            let response = try await end.task.value(as: Response<String>.self)
            #expect(response.value.contains("Ada"))
            await #expect(throws: NetworkError.self) { try await end.task.value(as: Int.self) }
        }
    }

    @Test func completedEventFollowsRemovalAndValue() async throws {
        try await withDemo { _, client in
            for number in 0..<100 {
                let stream = client.session.tasks.events
                let path = number % 2 == 0 ? "json" : "status/500"
                let task = client.task(.get, path)
                for await event in stream {
                    guard case .completed(let end) = event else { continue }
                    #expect(await client.session.tasks.task(end.task.id) == nil)
                    #expect(await client.session.tasks.count == 0)
                    #expect(end.task.state == (number % 2 == 0 ? .completed : .failed))
                    break
                }
                // The value is there already: a caller that is cancelled, and cannot wait, receives it.
                let value = Task {
                    while !Task.isCancelled { await Task.yield() }
                    return try await task.value
                }
                value.cancel()
                let result = await value.result
                #expect((try? result.get()) != nil || number % 2 == 1)  // The next line checks the failure's kind.
                if case .failure(let error as NetworkError) = result { #expect(error.kind == .status) }
            }
        }
    }

    @Test func downloadPublishesItsFileBeforeItsEnd() async throws {
        try await withDemo { _, client in
            try await withFolder { folder in
                let task = client.download("bytes/1000", to: folder.appending(path: "a"), startsImmediately: false)
                let events = try await events(of: client) {
                    task.resume()
                    _ = try await task.value
                }
                #expect(
                    texts(events) == [
                        "resumed \(task.id)", "moved \(task.id) to a", "completed \(task.id)", "invalidated",
                    ])
                if case .completed(let end)? = events.dropLast().last {
                    #expect(end.file?.lastPathComponent == "a")
                    let isURL = end.valueType == URL.self
                    #expect(isURL)
                }
            }
        }
    }

    @Test func failedMoveIsPublishedAndFailsTheTask() async throws {
        try await withDemo { _, client in
            try await withFolder { folder in
                let file = folder.appending(path: "taken")
                try Data("old".utf8).write(to: file)
                let options = Download.Options(existing: .fail)
                let task = client.download("bytes/1000", to: file, options: options, startsImmediately: false)
                let events = try await events(of: client) {
                    task.resume()
                    let error = try await task.failure()
                    #expect(error.kind == .fileSystem)
                }
                let id = task.id
                #expect(
                    texts(events) == [
                        "resumed \(id)", "move failed \(id): file-system", "completed \(id): file-system",
                        "invalidated",
                    ])
                #expect(try Data(contentsOf: file) == Data("old".utf8))
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["taken"])
            }
        }
    }

    @Test func eachSubscriberHasItsOwnStream() async throws {
        try await withDemo { _, client in
            let streams = (0..<3).map { _ in client.session.tasks.events }
            _ = try await client.get("json")
            let late = client.session.tasks.events
            _ = try await client.get("json")
            await client.session.finishTasksAndInvalidate()
            for stream in streams { #expect(await stream.collected().count == 5) }
            #expect(await texts(late.collected()) == ["resumed #2", "completed #2", "invalidated"])
            #expect(await client.session.tasks.events.collected().isEmpty)
        }
    }

    @Test func slowSubscriberReceivesTheNumberOfDroppedEvents() async throws {
        try await withDemo { _, client in
            let stream = client.session.tasks.events
            let isReleased = LoopbackServer.Gate()
            let request = try client.request(.get, "json")
            do {
                let probe = Probe(isReleased)
                let decoder = BodyDecoder { _, _ in probe }
                let response = try await client.session.task(for: request, decode: decoder, startsImmediately: true)
                    .value
                response.value.touch()
            }
            try await isReleased.wait()
            for _ in 0..<600 { _ = try await client.session.response(for: request) }
            await client.session.finishTasksAndInvalidate()
            let events = await stream.collected()
            #expect(events.count == 1_025)
            // 601 tasks with two events each, and the session's end.
            #expect(events.last.map { text($0) } == "dropped \(601 * 2 + 1 - 1_024)")
        }
    }

    @Test func statesOfATaskAreAvailableInTheRegistry() async throws {
        try await withHalf(of: 1_000) { _, client, gate in
            let task = client.task(.get, "half", startsImmediately: false)
            let early = await client.session.tasks.states(of: task.id)
            var seen: [Session.TaskState] = []
            for await state in early {
                seen.append(state)
                if state == .suspended { task.resume() }
                // A slow reader receives only the newest value: the end waits until this one was received.
                if state == .running { gate.open() }
            }
            #expect(seen == [.suspended, .running, .completed])
            #expect(await task.states.collected() == [.completed])
            #expect(await client.session.tasks.states(of: task.id).collected().isEmpty)
        }
    }

    @Test func snapshotDescribesEveryLiveTask() async throws {
        try await withDemo { _, client in
            var request = try client.request(.get, "stall")
            request.label = "first"
            request.priority = .high
            let first = client.session.task(for: request, startsImmediately: true)
            _ = await first.response
            let second = client.session.task(for: try client.request(.post, "echo", body: .data(Data(count: 9))))
            second.label = "second"
            second.priority = .low
            let snapshot = await client.session.tasks.snapshot
            #expect(snapshot.map(\.id) == [first.id, second.id])
            #expect(snapshot.map(\.label) == ["first", "second"])
            #expect(snapshot.map(\.state) == [.running, .suspended])
            #expect(snapshot.map(\.priority) == [.high, .low])
            #expect(snapshot.map(\.request?.method) == [.get, .post])
            #expect(snapshot.allSatisfy { $0.sessionID == client.session.id })
            #expect(await client.session.tasks.all.map(\.id) == [first.id, second.id])
            #expect(await client.session.tasks.count == 2)
            await client.session.tasks.cancelAll()
            #expect(try await first.failure().isCancelled)
            #expect(try await second.failure().isCancelled)
            await client.session.drained()
            #expect(await client.session.tasks.count == 0)
        }
    }

    @Test func labelAndSessionDistinguishTasks() async throws {
        try await withDemo { server, client in
            let other = Client(baseURL: server.url, session: Session(configuration: .test()))
            #expect(client.session.id != other.session.id)
            for (label, session) in [("a", client.session), ("b", other.session)] {
                var request = try client.request(.get, "status/500")
                request.label = label
                let events = session.tasks.events
                let task = session.task(for: request, startsImmediately: true)
                // Both sessions count from one.
                #expect(task.id.number == 1)
                let error = try await task.failure()
                #expect(error.label == label)
                #expect(error.sessionID == session.id)
                #expect(error.taskID == task.id)
                for await event in events {
                    guard case .completed(let end) = event else { continue }
                    #expect(end.task.label == label)
                    #expect(end.task.sessionID == session.id)
                    #expect(end.error?.label == label)
                    break
                }
            }
        }
    }

    @Test func laterLabelAppearsInTheError() async throws {
        try await withDemo { _, client in
            let task = client.task(.get, "status/500", startsImmediately: false)
            task.label = "renamed"
            task.resume()
            let error = try await task.failure()
            #expect(error.label == "renamed")
            #expect("\(error)".contains("renamed"))
        }
    }

    @Test func concurrentPausesArePublishedInOrder() async throws {
        try await withDemo { _, client in
            let task = client.task(.get, "stall", startsImmediately: false)
            let events = try await events(of: client) {
                task.resume()
                await withTaskGroup { group in
                    for _ in 0..<4 {
                        group.addTask {
                            for _ in 0..<60 {
                                task.pause()
                                task.resume()
                            }
                        }
                    }
                }
                task.cancel()
                _ = try await task.failure()
            }
            // The states alternate strictly, however the calls interleave, and the end comes last.
            let told = texts(events).dropLast(2)
            #expect(texts(events).suffix(2) == ["completed \(task.id): cancelled", "invalidated"])
            let expected = told.indices.map { "\($0 % 2 == 0 ? "resumed" : "suspended") \(task.id)" }
            #expect(Array(told) == expected)
        }
    }

    @Test func tenThousandConcurrentTasksHaveUniqueIDs() async throws {
        let session = Session(configuration: .test())
        let request = try Request(.get, "http://127.0.0.1:1/")
        let ids = await withTaskGroup { group in
            for _ in 0..<10 {
                group.addTask { (0..<1_000).map { _ in session.task(for: request).id } }
            }
            var ids: Set<TaskID> = []
            for await some in group { ids.formUnion(some) }
            return ids
        }
        #expect(ids.count == 10_000)
        await session.drained()
    }
}
#endif
