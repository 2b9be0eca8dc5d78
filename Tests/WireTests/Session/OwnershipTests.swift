#if os(Linux) && !TERN_URLSESSION
import Foundation
import Tern
import TernConcurrency
import TernTesting
import Testing

/// Tests which object holds a task at which time, and the order of the messages between them.
@Suite("ownership of tasks", .timeLimit(.minutes(1)))
struct OwnershipTests {
    @Test func callsThatFollowACreationOrAnEndSeeIt() async throws {
        try await withDemo { _, client in
            let tasks = client.session.tasks
            for _ in 0..<200 {
                let task = client.task(.get, "json", startsImmediately: false)
                #expect(await tasks.count == 1)
                #expect(await tasks.task(task.id)?.id == task.id)
                task.resume()
                _ = try await task.value
                #expect(await tasks.count == 0)
                _ = try await client.get("json")
                #expect(await tasks.count == 0)
            }
        }
    }

    @Test func aCallIsInTheRegistryWhileItsResponseIsAwaited() async throws {
        let gate = LoopbackServer.Gate()
        try await withServer { exchange in
            try exchange.wait(for: gate)
            try exchange.respond(text: "done")
        } test: { server, client in
            async let text = client.get("slow", as: String.self)
            try await server.wait { $0.requestsReceived == 1 }
            let snapshot = await client.session.tasks.snapshot
            #expect(snapshot.map(\.state) == [.running])
            #expect(snapshot.first?.request?.urlString.hasSuffix("/slow") == true)
            gate.open()
            #expect(try await text == "done")
            #expect(await client.session.tasks.count == 0)
        }
    }

    /// The call has no attempt yet.
    @Test func aCallIsInTheRegistryWhileItsBodyIsPrepared() async throws {
        try await withDemo { server, _ in
            let slow = QueueExecutor("slow disk")
            let (isAsked, mayAnswer) = (LoopbackServer.Gate(), DispatchSemaphore(value: 0))
            slow.submit {
                isAsked.open()
                mayAnswer.wait()
            }
            try await isAsked.wait()
            let session = Session(
                configuration: .test(), transport: Session(configuration: .test()).tasks.transport,
                files: FileStore(PosixFileSystem(), executor: slow))
            let client = Client(baseURL: server.url, session: session)
            let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
            try Data("file".utf8).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }  // A leftover does no harm.
            let call = Task { try await client.post("echo", body: .file(file)) }
            while await session.tasks.count == 0 { await Task.yield() }
            #expect(server.requestCount("/echo") == 0)
            mayAnswer.signal()
            #expect(try await call.value == Data("file".utf8))
            #expect(await session.tasks.count == 0)
        }
    }

    /// The end of a call does not wake the loop, except for somebody who waits for it.
    @Test func aDrainMissesNoEndThatComesAtTheSameTime() async throws {
        try await withDemo { _, client in
            for _ in 0..<300 {
                async let response = client.get("json")
                async let drain: Void = client.session.drained()
                _ = try await response
                await drain
            }
        }
    }

    @Test func eventsThatBeginDuringACallHaveItsEnd() async throws {
        try await withDemo { _, client in
            for _ in 0..<300 {
                async let response = client.get("json")
                let events = client.session.tasks.events
                _ = try await response
                // A second call tells whether the events of the first one are all here.
                let task = client.task(.get, "json")
                for await event in events {
                    if case .completed(let end) = event, end.task.id == task.id { break }
                }
            }
        }
    }

    /// Records events, and whether they came on the session's executor.
    private final class Observer: SessionObserver {
        let executor = Lock<(any MessageExecutor)?>(nil)
        let seen = Lock<[String]>([])
        let wasOnExecutor = Lock(false)

        func didObserve(_ event: TaskRegistry.Event) {
            if executor.withLock({ $0 })?.isIsolatingCurrentContext() != false { wasOnExecutor.withLock { $0 = true } }
            switch event {
            case .completed: seen.withLock { $0.append("completed") }
            case .sessionInvalidated: seen.withLock { $0.append("invalidated") }
            default: break
            }
        }
    }

    @Test func observersKnowTheInvalidationLastAndOffTheLoop() async throws {
        try await withDemo { server, _ in
            for _ in 0..<50 {
                let observer = Observer()
                let session = Session(configuration: .test { $0.observers = [observer] })
                observer.executor.withLock { $0 = session.tasks.transport.executor }
                let client = Client(baseURL: server.url, session: session)
                let tasks = (0..<3).map { _ in client.task(.get, "json") }
                await session.finishTasksAndInvalidate()
                #expect(tasks.allSatisfy { $0.state == .completed })
                #expect(observer.seen.withLock { $0 } == ["completed", "completed", "completed", "invalidated"])
                #expect(!observer.wasOnExecutor.withLock { $0 })
            }
        }
    }

    /// A call that was taken just before the end is waited for.
    @Test func theEndOfASessionWaitsForEachCallThatItTook() async throws {
        try await withDemo { server, _ in
            for round in 0..<60 {
                let session = Session(configuration: .test())
                let client = Client(baseURL: server.url, session: session)
                let isRunning = LoopbackServer.Gate()
                let calls = (0..<4).map { _ in
                    Task {
                        isRunning.open()
                        let result = await Task { try await client.get("json") }.result
                        if case .failure(let error) = result {
                            let kind = (error as? NetworkError)?.kind
                            #expect(kind == .sessionInvalidated || kind == .cancelled && round % 2 == 0)
                        }
                    }
                }
                if round % 3 != 0 { try await isRunning.wait() }
                if round % 2 == 0 {
                    await session.invalidateAndCancel()
                } else {
                    await session.finishTasksAndInvalidate()
                }
                let isIdle = session.tasks.live.isEmpty
                #expect(isIdle)
                #expect(await session.tasks.count == 0)
                for call in calls { await call.value }
            }
        }
    }
}
#endif
