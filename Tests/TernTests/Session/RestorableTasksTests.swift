#if TERN_URLSESSION || !os(Linux)
import TernConcurrency
@testable import Tern
import Foundation
import Testing

/// A task that the system kept, and the calls that it received.
private final class FakeTask: SystemTask {
    let taskIdentifier: Int
    let taskDescription: String?
    let isDownload: Bool
    let countOfBytesReceived: Int64
    let countOfBytesExpectedToReceive: Int64 = 100
    let target: Target?
    let method = Request.Method.get
    private let asked = Lock<[String]>([])
    private let place = Lock(URLSessionRequest.priority(.low))

    init(_ identifier: Int, label: String? = nil, isDownload: Bool = true, received: Int64 = 0, url: String? = nil) {
        taskIdentifier = identifier
        taskDescription = label
        self.isDownload = isDownload
        countOfBytesReceived = received
        // A task without a URL that can be read is one of the cases.
        target = try? Target(absolute: url ?? "http://localhost/files/\(identifier)")
    }

    var priority: Float {
        get { place.withLock { $0 } }
        set { place.withLock { $0 = newValue } }
    }

    var calls: [String] { asked.withLock { $0 } }
    func resume() { asked.withLock { $0.append("resume") } }
    func suspend() { asked.withLock { $0.append("suspend") } }
    func cancel() { asked.withLock { $0.append("cancel") } }
}

/// A system that already holds tasks at the first query.
private struct FakeSystem: RestorableTasks {
    let tasks: [FakeTask]
    func all() async -> [any SystemTask] { tasks }
}

@Suite("URLSession: tasks that the system kept", .timeLimit(.minutes(1)))
struct URLSessionKeptTasksTests {
    private let hub = URLSessionHub(
        URLSessionSettings(Session.Configuration()), mode: URLSessionHub.Mode(identifier: "test", usesFiles: true),
        abilities: URLSessionAbilities(suspends: true, measures: true, streamsBodies: true))

    private func tell(_ task: FakeTask, _ events: SystemEvent...) {
        hub.post { hub in for event in events { hub.handle(event, task) } }
    }

    /// Returns a file that holds this text, as the system delivers it.
    private func systemFile(_ text: String) throws -> String {
        let path = URLSessionHub.temporaryPath
        try Data(text.utf8).write(to: URL(filePath: path))
        return path
    }

    private func response(_ status: Int = 200) -> SystemResponse {
        SystemResponse(status: status, fields: ["Content-Length": "5"])
    }

    /// Returns this many completions.
    private func completions(
        _ count: Int, _ events: AsyncStream<TaskRegistry.Event>
    ) async -> [TaskID: TaskRegistry.Completion] {
        var completions: [TaskID: TaskRegistry.Completion] = [:]
        for await event in events {
            if case .completed(let completion) = event { completions[completion.task.id] = completion }
            if completions.count == count { break }
        }
        return completions
    }

    private func open(
        _ tasks: [FakeTask], destination: Download.Destination? = nil, prepare: (Session) -> Void = { _ in }
    ) async -> Session {
        var configuration = Session.Configuration()
        configuration.destination = destination
        return await Session.background(
            configuration: configuration, hub: hub, restoring: FakeSystem(tasks: tasks), prepare: prepare)
    }

    @Test func keptTasksAreRegisteredBeforeTheFirstEvent() async throws {
        let tasks = [FakeTask(7, label: "b", received: 40), FakeTask(3, label: "a")]
        var known: Task<[String?], Never>?
        var events: AsyncStream<TaskRegistry.Event>?
        let prepare = { (session: Session) in
            events = session.tasks.events
            known = Task { await session.tasks.all.map(\.label) }
        }
        let session = await open(tasks, prepare: prepare)
        #expect(await known?.value == ["a", "b"])
        let all = await session.tasks.all
        #expect(all.map(\.label) == ["a", "b"])
        #expect(all.allSatisfy { $0.request == nil && $0.priority == .low && $0.valueType == URL.self })
        var first: [String?] = []
        let stream = try #require(events)
        for await event in stream {
            if case .resumed(let task) = event { first.append(task.label) }
            if first.count == 2 { break }
        }
        #expect(first == ["a", "b"])
        for await progress in all[1].progress where progress.completedBytes == 40 { break }
        for task in all { task.cancel() }
        await session.drained()
    }

    @Test func theEndOfTheSystemsEventsIsReported() async {
        let deliveries = Lock(0)
        let mode = URLSessionHub.Mode(identifier: "test", usesFiles: true) { deliveries.withLock { $0 += 1 } }
        let hub = URLSessionHub(URLSessionSettings(Session.Configuration()), mode: mode)
        #expect(deliveries.withLock { $0 } == 0)
        hub.urlSessionDidFinishEvents(forBackgroundURLSession: hub.openSession())
        #expect(deliveries.withLock { $0 } == 1)
    }

    @Test func keptDownloadsUseTheDestinationOfTheSession() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // A test's own folder: nothing depends on it.
        let task = FakeTask(1, label: "kept")
        var events: AsyncStream<TaskRegistry.Event>?
        let destination: Download.Destination = { _, response in
            folder.appending(path: "\(response.suggestedFilename).\(response.status)")
        }
        let session = await open([task], destination: destination, prepare: { events = $0.tasks.events })
        tell(task, .wrote(5, of: 5), .file(try systemFile("hello")), .completed(nil, response()))
        let stream = try #require(events)
        let ended = await completions(1, stream)
        let completion = try #require(ended.values.first)
        let file = try #require(completion.file)
        #expect(file.lastPathComponent == "1.200")
        #expect(try Data(contentsOf: file) == Data("hello".utf8))
        #expect(completion.error == nil)
        #expect(completion.task.label == "kept")
        let count = await session.tasks.count
        #expect(count == 0)
        #expect(task.calls == ["resume"])
    }

    @Test func fileWithoutADestinationStaysInPlace() async throws {
        let task = FakeTask(1)
        var events: AsyncStream<TaskRegistry.Event>?
        let session = await open([task], prepare: { events = $0.tasks.events })
        let path = try systemFile("hello")
        tell(task, .file(path), .completed(nil, response()))
        let stream = try #require(events)
        let ended = await completions(1, stream)
        let completion = try #require(ended.values.first)
        #expect(completion.file?.path == path)
        try FileManager.default.removeItem(atPath: path)
        await session.drained()
    }

    @Test func eventsBeforeTheFirstSubscriberAreKept() async throws {
        let early = FakeTask(1, label: "ended before")
        let path = try systemFile("hello")
        tell(early, .file(path), .completed(nil, response()))
        await withCheckedContinuation { continuation in hub.post { _ in continuation.resume() } }
        var events: AsyncStream<TaskRegistry.Event>?
        let session = await open([], prepare: { events = $0.tasks.events })
        let stream = try #require(events)
        let ended = await completions(1, stream)
        let completion = try #require(ended.values.first)
        #expect(completion.task.label == "ended before")
        #expect(completion.file?.path == path)
        try FileManager.default.removeItem(atPath: path)
        await session.drained()
    }

    @Test func aRefusedStatusIsAnErrorAndLeavesNoFile() async throws {
        let task = FakeTask(1)
        var events: AsyncStream<TaskRegistry.Event>?
        let session = await open([task], prepare: { events = $0.tasks.events })
        let path = try systemFile("no such thing")
        tell(task, .file(path), .completed(nil, response(404)))
        let stream = try #require(events)
        let ended = await completions(1, stream)
        let completion = try #require(ended.values.first)
        #expect(completion.error?.status == 404)
        #expect(completion.error?.kind == .status)
        #expect(!FileManager.default.fileExists(atPath: path))
        await session.drained()
    }

    @Test func aKeptUploadGivesTheBodyOfItsResponse() async throws {
        let task = FakeTask(1, isDownload: false)
        let session = await open([task])
        let all = await session.tasks.all
        let handle = try #require(all.first)
        async let value = handle.value(as: Data.self)
        tell(task, .response(response()), .data(Data("hel".utf8)), .data(Data("lo".utf8)), .completed(nil, nil))
        // The value can be lost before anyone reads it: then the registry no longer has the task.
        do {
            let body = try await value
            #expect(body == Data("hello".utf8))
        } catch let error as NetworkError {
            #expect(error.kind == .unsupported)
        }
        await session.drained()
    }

    @Test func failureOfTheSystemFailsTheTask() async throws {
        let task = FakeTask(1)
        var events: AsyncStream<TaskRegistry.Event>?
        let session = await open([task], prepare: { events = $0.tasks.events })
        tell(task, .completed(URLError(.cannotFindHost), nil))
        let stream = try #require(events)
        let ended = await completions(1, stream)
        let completion = try #require(ended.values.first)
        #expect(completion.error?.kind == .dns)
        await session.drained()
    }

    @Test func pauseResumeAndCancelReachTheSystemsTask() async throws {
        let task = FakeTask(1)
        let session = await open([task])
        let all = await session.tasks.all
        let handle = try #require(all.first)
        for await state in handle.states where state == .running { break }
        // The attempt takes over the task some time after the start: the call of resume() shows that it has.
        while task.calls.isEmpty { await Task.yield() }
        handle.pause()
        handle.resume()
        handle.priority = .veryHigh
        handle.cancel()
        await session.drained()
        await withCheckedContinuation { continuation in hub.post { _ in continuation.resume() } }
        #expect(task.calls == ["resume", "suspend", "resume", "cancel"])
        #expect(task.priority == 1)
    }

    @Test func aTaskWhoseURLCannotBeReadIsCancelled() async {
        let task = FakeTask(1, url: "nonsense")
        let session = await open([task])
        let count = await session.tasks.count
        #expect(count == 0)
        #expect(task.calls == ["cancel"])
    }

    #if os(Linux)
    @Test func thisSystemKeepsNoTasks() async throws {
        do {
            _ = try await Session.background("test")
            Issue.record("a background session")
        } catch {
            #expect(error.kind == .unsupported)
        }
    }
    #endif
}
#endif
