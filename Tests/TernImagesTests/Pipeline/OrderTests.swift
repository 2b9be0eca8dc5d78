import Tern
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the order of fetches, with one fetch at a time.
@Suite(.timeLimit(.minutes(1))) struct OrderTests {
    private struct Line {
        let kit: PipelineKit
        let gate = LoopbackServer.Gate()
        let first: ImageTask

        /// One fetch is blocked, and all others wait.
        init(_ order: ImagePipeline.Order = .firstInFirstOut) async throws {
            let picture = try Pictures.png()
            let gate = gate
            kit = PipelineKit(
                StubTransport { call in
                    if call.path == "/first" { try await gate.wait() }
                    return .data(picture)
                }
            ) { configuration in
                configuration.maximumFetches = 1
                configuration.order = order
            }
            first = kit.pipeline.task(for: ImageRequest(try url("https://a.example/first")))
            try await kit.stub.waitForCalls(1)
        }

        func task(_ name: String, _ priority: Request.Priority = .normal, visible: Bool = false) throws -> ImageTask {
            var request = ImageRequest(try url("https://a.example/\(name)"), priority: priority)
            request.isVisible = visible
            return kit.pipeline.task(for: request)
        }

        /// Returns the order in which the others are fetched, once this number of them wait.
        func order(_ tasks: [ImageTask], waiting: Int? = nil) async throws -> [String] {
            let count = waiting ?? tasks.count
            // The count may pass the expected number on the way.
            await kit.pipeline.waitForMessages()
            while await kit.pipeline.waitingCount(at: .fetch) != count { await Task.yield() }
            gate.open()
            for task in tasks where !task.isFinished { _ = try? await task.image }
            return kit.stub.calls.dropFirst().map { String($0.path.dropFirst()) }
        }
    }

    @Test func theOldestGoesFirst() async throws {
        let line = try await Line()
        let tasks = try ["a", "b", "c"].map { try line.task($0) }
        #expect(try await line.order(tasks) == ["a", "b", "c"])
    }

    @Test func theNewestGoesFirstWithLastInFirstOut() async throws {
        let line = try await Line(.lastInFirstOut)
        let tasks = try ["a", "b", "c"].map { try line.task($0) }
        #expect(try await line.order(tasks) == ["c", "b", "a"])
    }

    @Test func prioritiesGoBeforeAgeAndTheVisibleBeforeTheirEquals() async throws {
        let line = try await Line()
        let tasks = [
            try line.task("low", .low), try line.task("normal"), try line.task("seen", visible: true),
            try line.task("high", .high), try line.task("lowest", .veryLow), try line.task("highest", .veryHigh),
        ]
        #expect(try await line.order(tasks) == ["highest", "high", "seen", "normal", "low", "lowest"])
    }

    @Test func aPriorityCanBeChangedWhileATaskWaits() async throws {
        let line = try await Line()
        let tasks = try ["a", "b", "c"].map { try line.task($0) }
        while await line.kit.pipeline.waitingCount(at: .fetch) != 3 { await Task.yield() }
        tasks[2].priority = .veryHigh
        tasks[1].isVisible = true
        await line.kit.pipeline.waitForMessages()
        #expect(try await line.order(tasks) == ["c", "b", "a"])
    }

    @Test func aLoadHasTheHighestPriorityOfItsSubscribers() async throws {
        let line = try await Line()
        var tasks = [try line.task("a"), try line.task("b", .low)]
        tasks.append(try line.task("b", .high))
        #expect(try await line.order(tasks, waiting: 2) == ["b", "a"])
    }

    @Test func aLoadCancelledInTheQueueIsNeverFetched() async throws {
        let line = try await Line()
        let tasks = try ["a", "b", "c"].map { try line.task($0) }
        tasks[1].cancel()
        #expect(try await line.order(tasks, waiting: 2) == ["a", "c"])
    }

    @Test func scrollingHoldsBackLoadsThatWaitForIt() async throws {
        let clock = ManualClock()
        let kit = PipelineKit(picture: try Pictures.png()) { $0.clock = clock }
        kit.pipeline.setScrolling(true)
        var patient = ImageRequest(try url("https://a.example/patient"))
        patient.options.waitsForScrolling = true
        let task = kit.pipeline.task(for: patient)
        _ = try await kit.pipeline.image(from: try url("https://a.example/eager"))
        #expect(kit.stub.calls.map(\.path) == ["/eager"])
        // The load begins once scrolling has settled, and new scrolling restarts the wait.
        kit.pipeline.setScrolling(false)
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(100))
        kit.pipeline.setScrolling(true)
        kit.pipeline.setScrolling(false)
        try await clock.waitForSleepers(2)
        clock.advance(by: .milliseconds(50))
        #expect(kit.stub.calls.count == 1)
        clock.advance(by: .milliseconds(100))
        _ = try await task.image
        #expect(kit.stub.calls.map(\.path) == ["/eager", "/patient"])
    }

    @Test func fetchesBeginAtTheRateThatIsAllowed() async throws {
        let clock = ManualClock()
        let kit = PipelineKit(picture: try Pictures.png()) { configuration in
            configuration.clock = clock
            configuration.rateLimit = ImagePipeline.RateLimit(perSecond: 10, burst: 2)
        }
        let tasks = try (0..<4).map { kit.pipeline.task(for: ImageRequest(try url("https://a.example/\($0)"))) }
        _ = try await tasks[0].image
        _ = try await tasks[1].image
        try await clock.waitForSleepers(1)
        #expect(kit.stub.calls.count == 2)
        clock.advance(by: .milliseconds(100))
        _ = try await tasks[2].image
        #expect(kit.stub.calls.count == 3)
        try await clock.waitForSleepers(1)
        clock.advance(by: .milliseconds(100))
        _ = try await tasks[3].image
    }

    @Test func theRateAdmitsTheFirstInTheQueueAndSkipsCancelledLoads() async throws {
        let clock = ManualClock()
        let kit = PipelineKit(picture: try Pictures.png()) { configuration in
            configuration.clock = clock
            configuration.rateLimit = ImagePipeline.RateLimit(perSecond: 10, burst: 1)
        }
        func task(_ name: String, _ priority: Request.Priority = .normal) throws -> ImageTask {
            kit.pipeline.task(for: ImageRequest(try url("https://a.example/\(name)"), priority: priority))
        }
        _ = try await task("first").image
        let passing = try (0..<50).map { try task("gone\($0)") }
        let patient = try task("patient")
        await kit.pipeline.waitForMessages()
        for task in passing { task.cancel() }
        let urgent = try task("urgent", .veryHigh)
        // Exactly the two remaining loads; before, any two may wait.
        await kit.pipeline.waitForMessages()
        while await kit.pipeline.waitingCount(at: .fetch) != 2 { await Task.yield() }
        try await clock.waitForSleepers(1)
        for task in [urgent, patient] {
            clock.advance(by: .milliseconds(100))
            _ = try await task.image
            if task === urgent { try await clock.waitForSleepers(1) }
        }
        #expect(kit.stub.calls.map(\.path) == ["/first", "/urgent", "/patient"])
        await kit.expectNothingLeft()
    }

    @Test func aRequestIsSentWithItsCurrentPriority() async throws {
        let seen = Lock<[String: Request.Priority]>([:])
        let gate = LoopbackServer.Gate()
        let picture = try Pictures.png()
        let stub = StubTransport { call in
            if call.path == "/first" { try await gate.wait() }
            return .data(picture)
        }
        let kit = PipelineKit(stub) { configuration in
            configuration.maximumFetches = 1
            configuration.hooks.prepare = { request in
                seen.withLock { $0[request.urlString] = request.priority }
                return request
            }
        }
        let first = kit.pipeline.task(for: ImageRequest(try url("https://a.example/first")))
        try await stub.waitForCalls(1)
        let second = kit.pipeline.task(for: ImageRequest(try url("https://a.example/second"), priority: .low))
        while await kit.pipeline.waitingCount(at: .fetch) != 1 { await Task.yield() }
        second.priority = .veryHigh
        await kit.pipeline.waitForMessages()
        gate.open()
        _ = try await first.image
        _ = try await second.image
        #expect(seen.withLock { $0["https://a.example/second"] } == .veryHigh)
    }
}
