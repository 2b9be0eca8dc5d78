import Foundation
import Tern
import TernConcurrency
import TernHTTPCache
import TernTesting
import Testing

/// Stored responses through every way to make a request, and the registry of their tasks.
@Suite("HTTP cache: tasks", .timeLimit(.minutes(1)))
struct CachedTaskTests {
    private static var body: Data { Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }) }

    private static func large(_ exchange: LoopbackServer.Exchange) throws {
        try exchange.respond(headers: [("Cache-Control", "max-age=60")], body: Array(body))
    }

    private static func withStoredBody(
        _ session: (inout Session.Configuration) -> Void = { _ in }, test: (CachedServer) async throws -> Void
    ) async throws {
        try await withCache(session: session, handler: large) { cached in
            #expect(try await cached.get().value == body)
            try await test(cached)
            #expect(cached.requestCount == 1)
            await cached.finish()
        }
    }

    @Test func verbsReceiveStoredResponses() async throws {
        try await Self.withStoredBody { cached in
            #expect(try await cached.client.fetch("a").value == Self.body)
            let head = try await cached.client.head("a")
            #expect(head.status == 200)
            #expect(head.headers["Content-Length"] == "700000")
            #expect(head.cacheTrace?.source == .stored)
            let part = try await cached.get(headers: ["Range": "bytes=10-19"])
            #expect(part.status == 206)
            #expect(part.value == Self.body[10..<20])
            let unchanged = try? await cached.get(headers: ["If-None-Match": "*"])
            #expect(unchanged == nil, "a 304 is refused by the validation")
        }
    }

    @Test func aTaskWithAHandleReportsItsHeadItsProgressAndItsMetrics() async throws {
        try await Self.withStoredBody { cached in
            let request = try cached.client.request(.get, "a")
            let task = cached.client.session.task(for: request, startsImmediately: false)
            #expect(task.state == .suspended)
            task.resume()
            task.pause()
            task.resume()
            #expect(try await task.value.value == Self.body)
            #expect(task.state == .completed)
            #expect(await task.response?.cacheTrace?.source == .stored)
            let last = await task.progress.reduce(into: [Session.Progress]()) { $0.append($1) }.last
            #expect(last?.completedBytes == 700_000)
            #expect(last?.totalBytes == 700_000)
            #expect(last?.isFinished == true)
            #expect(task.metrics?.transactions == 0)
            #expect(task.metrics?.receivedBytes == 0)

            let cancelled = cached.client.session.task(for: request, startsImmediately: false)
            cancelled.cancel()
            cancelled.resume()
            let waiting = Task { try await cancelled.value }
            #expect(await waiting.kind == .cancelled)
            #expect(cancelled.state == .cancelled)
        }
    }

    @Test func aDownloadReceivesAStoredBody() async throws {
        try await Self.withStoredBody { cached in
            let file = FileManager.default.temporaryDirectory.appending(path: "tern-\(UUID().uuidString)")
            // A leftover does no harm.
            defer { try? FileManager.default.removeItem(at: file) }
            let task = cached.client.session.download(try cached.client.request(.get, "a"), to: file)
            #expect(try await task.value == file)
            #expect(try Data(contentsOf: file) == Self.body)
            #expect(await task.response?.cacheTrace?.source == .stored)
        }
    }

    @Test func aStreamOfAStoredBodyCanBeCancelledAndDropped() async throws {
        try await Self.withStoredBody { (cached) async throws in
            let stream = cached.client.stream("a")
            var chunks = stream.chunks.makeAsyncIterator()
            #expect(try await chunks.next()?.count == 256 << 10)
            #expect(await cached.client.session.tasks.count == 1)
            stream.task.cancel()
            let rest = Task { [chunks] in
                var chunks = chunks
                return try await chunks.next()
            }
            #expect(await rest.kind == .cancelled)
            #expect(stream.task.state == .cancelled)
            do {
                let dropped = cached.client.stream("a")
                #expect(try await dropped.response.status == 200)
            }
            await cached.waitForTasks(0)
        }
    }

    @Test func eventsAndObserversLearnOfStoredResponses() async throws {
        let observer = Recorder()
        try await Self.withStoredBody {
            $0.observers = [observer]
        } test: { cached in
            let events = cached.client.session.tasks.events
            observer.clear()
            _ = try await cached.get()
            #expect(observer.log == ["resumed", "head 200 stored", "completed"])
            observer.clear()
            for try await _ in cached.client.stream("a").chunks {}
            await cached.waitForTasks(0)
            #expect(observer.log == ["resumed", "head 200 stored", "completed"])
            await cached.client.session.finishTasksAndInvalidate()
            let kinds = await events.reduce(into: [String]()) { $0.append(Recorder.name(of: $1)) }
            #expect(kinds == ["resumed", "completed", "resumed", "completed", "invalidated"])
        }
    }

    @Test func nothingRemainsOfManyStoredResponses() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=600")])) { cached in
            let session = cached.client.session
            _ = try await cached.get()
            for _ in 0..<10_000 { _ = try await cached.get() }
            #expect(await session.tasks.count == 0)
            for _ in 0..<10_000 { _ = try await cached.get() }
            await session.finishTasksAndInvalidate()
            #expect(await cached.failure() == .sessionInvalidated)
            #expect(cached.cache.statistics.hits == 20_000)
            #expect(cached.requestCount == 1)
        }
    }

    @Test func storedResponsesAreAnsweredWhileTheSessionEnds() async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=600")])) { cached in
            _ = try await cached.get()
            for _ in 0..<50 {
                let client = try cached.client { $0.cookies = .none }
                _ = try await client.fetch("a")
                let readers = (0..<8).map { _ in
                    Task {
                        var count = 0
                        // The error says that the session was invalidated.
                        while (try? await client.fetch("a")) != nil { count += 1 }
                        return count
                    }
                }
                await client.session.finishTasksAndInvalidate()
                for reader in readers { _ = await reader.value }
            }
        }
    }

    @Test(arguments: [true, false])
    func theEventsEndWithASessionThatIsReleased(subscribesFirst: Bool) async throws {
        try await withCache(handler: numbered([("Cache-Control", "max-age=600")])) { cached in
            let request = try cached.client.request(.get, "a")
            var session: Session? = Session(configuration: .cached(cached.cache) { $0.cookies = .none })
            let registry = try #require(session?.tasks)
            var events = subscribesFirst ? registry.events : nil
            for _ in 0..<10 { _ = try await session?.response(for: request) }
            if !subscribesFirst { events = registry.events }
            session = nil
            var count = 0
            if let events { for await _ in events { count += 1 } }
            #expect(count == (subscribesFirst ? 20 : 0))
        }
    }

    @Test func requestsThatOpenTheFolderAllUseIt() async throws {
        try await withCache(.disk, handler: numbered([("Cache-Control", "max-age=600")])) { (cached) async throws in
            let tasks = (0..<8).map { number in Task { try await cached.get("\(number)").cacheTrace } }
            for task in tasks { #expect(try await task.value?.storing != "store-unavailable") }
            await cached.finish()
        }
    }

    @Test func aFolderThatCouldNotBeOpenedIsTriedAgainForItsContents() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tern-http-\(UUID().uuidString)")
        // A leftover does no harm.
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("a file".utf8).write(to: folder)
        try await withCache(handler: numbered([("Cache-Control", "max-age=600")])) { cached in
            let client = try cached.client { $0.cache = .disk(folder: folder) }
            let cache = try #require(client.session.configuration.cache)
            #expect(try await client.fetch("a").cacheTrace?.storing == "store-unavailable")
            try FileManager.default.removeItem(at: folder)
            try await cache.clear(client.session)
            #expect(try await client.fetch("a").cacheTrace?.storing != "store-unavailable")
            await client.session.finishTasksAndInvalidate()
        }
    }
}

/// Records the calls of an observer.
private final class Recorder: SessionObserver {
    private let entries = Lock<[String]>([])

    var log: [String] { entries.withLock { $0 } }

    func clear() { entries.withLock { $0 = [] } }

    func willSend(_ request: Tern.Request, of task: AnySessionTask) { entries.withLock { $0.append("send") } }

    func didReceive(_ response: ResponseHead, of task: AnySessionTask) {
        let source = response.cacheTrace?.source.rawValue ?? "none"
        entries.withLock { $0.append("head \(response.status) \(source)") }
    }

    func didObserve(_ event: TaskRegistry.Event) { entries.withLock { $0.append(Self.name(of: event)) } }

    static func name(of event: TaskRegistry.Event) -> String {
        switch event {
        case .resumed: "resumed"
        case .suspended: "suspended"
        case .completed: "completed"
        case .sessionInvalidated: "invalidated"
        default: "other"
        }
    }
}
