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

/// Tests that loads keep their subscribers, their inputs and their places together, whenever a subscriber leaves.
@Suite(.timeLimit(.minutes(1))) struct JobTests {
    private let small = PixelSize(width: 10, height: 10)

    // MARK: One waiter leaves

    @Test(arguments: HeldStage.allCases)
    func cancellingOneWaiterKeepsTheOther(at stage: HeldStage) async throws {
        let hold = try StageHold(stage)
        let tasks = try await hold.tasks(2)
        tasks[0].cancel()
        await hold.kit.pipeline.waitForMessages()
        if stage == .delivery {
            // The load has ended: the image stays.
            #expect(try await tasks[0].image.size.width == 40)
        } else {
            let error = await #expect(throws: ImageError.self) { _ = try await tasks[0].image }
            #expect(error?.kind == .cancelled)
        }
        try await hold.release()
        #expect(try await tasks[1].image.size.width == 40)
        #expect(hold.fetches == 1)
        #expect(hold.decoder.decodes == (stage.isQueue ? 2 : 1))
        #expect(hold.processes.value == (stage.isQueue ? 2 : 1))
        await hold.kit.expectNothingLeft()
    }

    @Test(arguments: HeldStage.allCases)
    func theWorkStopsWithTheLastWaiter(at stage: HeldStage) async throws {
        let hold = try StageHold(stage)
        let tasks = try await hold.tasks(2)
        for task in tasks { task.cancel() }
        await hold.kit.pipeline.waitForMessages()
        // The load of the other image remains.
        #expect(await hold.kit.pipeline.loadedSources().allSatisfy { $0.hasSuffix("/blocker") })
        try await hold.release()
        await hold.kit.expectNothingLeft()
        let others = stage.isQueue ? 1 : 0
        let isFetched = ![.scrolling, .fetchQueue].contains(stage)
        #expect(hold.fetches == (isFetched ? 1 : 0))
        let isDecoded = isFetched && stage != .fetch && stage != .decodeQueue
        #expect(hold.decoder.decodes == others + (isDecoded ? 1 : 0))
        let isProcessed = stage == .process || stage == .delivery
        #expect(hold.processes.value == others + (isProcessed ? 1 : 0))
        // A later request begins anew.
        #expect(try await hold.kit.pipeline.image(from: try hold.request()).size.width == 40)
    }

    @Test(arguments: [1, 2])
    func aTaskThatIsCancelledBeforeItsLoadBeginsStartsNone(count: Int) async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let request = ImageRequest(try url("https://a.example/1.png"))
        let tasks = await kit.pipeline.cancelFirst(of: count, request)
        #expect(tasks[0].isFinished)
        if count == 2 { #expect(try await tasks[1].image.size.width == 40) }
        await kit.expectNothingLeft()
        #expect(kit.stub.calls.count == count - 1)
    }

    // MARK: Two image loads over one load of bytes

    private struct Fork {
        let kit: PipelineKit
        let gate = LoopbackServer.Gate()
        let whole: ImageTask
        let small: ImageTask

        /// Two sizes of one image, of which the second has the higher priority, and whose fetch is held.
        init(_ size: PixelSize) async throws {
            let (picture, gate) = (try Pictures.png(), gate)
            kit = PipelineKit(
                StubTransport { _ in
                    try await gate.wait()
                    return .data(picture)
                })
            let address = try url("https://a.example/1.png")
            whole = kit.pipeline.task(for: ImageRequest(address, priority: .low))
            small = kit.pipeline.task(for: ImageRequest(address, targetSize: size, priority: .high))
            while await kit.pipeline.dependents() != [2] { await Task.yield() }
            try await kit.stub.waitForCalls(1)
        }
    }

    @Test func oneOfTwoImageLoadsLeavesTheBytesToTheOther() async throws {
        let fork = try await Fork(small)
        #expect(await fork.kit.pipeline.dataPriorities() == [LoadPriority(.high, isVisible: false)])
        fork.small.cancel()
        await fork.kit.pipeline.waitForMessages()
        #expect(await fork.kit.pipeline.dependents() == [1])
        #expect(await fork.kit.pipeline.imagePriorities().count == 1)
        #expect(await fork.kit.pipeline.dataPriorities() == [LoadPriority(.low, isVisible: false)])
        fork.gate.open()
        #expect(try await fork.whole.image.size.width == 40)
        #expect(fork.kit.stub.calls.count == 1)
        #expect(fork.kit.decoder.decodes == 1)
        await fork.kit.expectNothingLeft()
    }

    @Test func theFetchStopsWithTheLastOfTwoImageLoads() async throws {
        let fork = try await Fork(small)
        fork.small.cancel()
        fork.whole.cancel()
        // The gate stays closed: the fetch ends because it is cancelled.
        await fork.kit.expectNothingLeft()
        #expect(fork.kit.decoder.decodes == 0)
    }

    @Test func aDataCallerAndAnImageLoadShareTheBytes() async throws {
        let (picture, gate) = (try Pictures.png(), LoopbackServer.Gate())
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            })
        let request = ImageRequest(try url("https://a.example/1.png"), priority: .high)
        let caller = Task { try await kit.pipeline.data(for: request) }
        while await kit.pipeline.dependents() != [1] { await Task.yield() }
        #expect(await kit.pipeline.dataPriorities() == [LoadPriority(.high, isVisible: false)])
        var low = request
        low.priority = .low
        let task = kit.pipeline.task(for: low)
        while await kit.pipeline.dependents() != [2] { await Task.yield() }
        caller.cancel()
        let error = await #expect(throws: ImageError.self) { _ = try await caller.value }
        #expect(error?.kind == .cancelled)
        #expect(await kit.pipeline.dependents() == [1])
        #expect(await kit.pipeline.dataPriorities() == [LoadPriority(.low, isVisible: false)])
        gate.open()
        #expect(try await task.image.size.width == 40)
        #expect(kit.stub.calls.count == 1)
        await kit.expectNothingLeft()
    }

    // MARK: Priority

    @Test func aRaisedPriorityReachesTheFetchThroughAllLoads() async throws {
        let (picture, gate) = (try Pictures.png(), LoopbackServer.Gate())
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            })
        let counter = Counter()
        let processors = ["a", "b"].map { CountingProcessor(name: $0, counter: counter) }
        let task = kit.pipeline.task(
            for: ImageRequest(try url("https://a.example/1.png"), processors: processors, priority: .low))
        try await kit.stub.waitForCalls(1)
        let low = LoadPriority(.low, isVisible: false)
        #expect(await kit.pipeline.imagePriorities() == [low, low, low])
        task.priority = .veryHigh
        task.isVisible = true
        await kit.pipeline.waitForMessages()
        let raised = LoadPriority(.veryHigh, isVisible: true)
        #expect(await kit.pipeline.imagePriorities() == [raised, raised, raised])
        #expect(await kit.pipeline.dataPriorities() == [raised])
        gate.open()
        _ = try await task.image
        await kit.expectNothingLeft()
    }

    @Test(arguments: [HeldStage.fetchQueue, .decodeQueue, .processQueue])
    func aLoadThatIsRaisedInAQueueGoesBeforeTheOthers(_ stage: HeldStage) async throws {
        let hold = try StageHold(stage)
        let first = try await hold.tasks(1)[0]
        let second = hold.kit.pipeline.task(for: try hold.request("2"))
        let queue = try #require(stage.loadStage)
        while await hold.kit.pipeline.waitingCount(at: queue) != 2 { await Task.yield() }
        second.priority = .high
        await hold.kit.pipeline.waitForMessages()
        // The next to be admitted is the raised one.
        let next = await hold.kit.pipeline.nextSource(at: queue)
        #expect(next == second.loadKey?.imageKey.source)
        try await hold.release()
        for task in [first, second] { _ = try await task.image }
        await hold.kit.expectNothingLeft()
    }

    // MARK: Release

    @Test(arguments: [false, true])
    func endedLoadsAreReleased(isCancelled: Bool) async throws {
        let (picture, gate) = (try Pictures.png(), LoopbackServer.Gate())
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            })
        let task = kit.pipeline.task(
            for: ImageRequest(try url("https://a.example/1.png"), processors: [.rotate(degrees: 90)]))
        try await kit.stub.waitForCalls(1)
        #expect(
            await kit.pipeline.releasesJobs {
                if isCancelled { task.cancel() } else { gate.open() }
            })
        #expect(task.isFinished)
    }
}

extension ImagePipeline {
    /// Begins tasks and cancels the first one before the pipeline handles a message: the actor is busy until this
    /// returns.
    func cancelFirst(of count: Int, _ request: ImageRequest) -> [ImageTask] {
        let tasks = (0..<count).map { _ in task(for: request) }
        tasks[0].cancel()
        return tasks
    }

    /// The number of image loads that wait for each load of bytes.
    func dependents() -> [Int] { dataJobs.values.map(\.subscribers.count) }

    func dataPriorities() -> [LoadPriority] { dataJobs.values.map(\.priority) }

    func imagePriorities() -> [LoadPriority] { imageJobs.values.map(\.priority) }

    /// The sources of the images that are loaded.
    func loadedSources() -> [String] { imageJobs.keys.map(\.imageKey.source.text) }

    /// The source of the load that a queue admits next.
    func nextSource(at stage: LoadStage) -> SourceKey? {
        var queue = queues[stage.rawValue]
        queue.leave()
        return queue.next()?.key.imageKey.source
    }

    /// Returns true once the running loads are released after the closure was called. The time limit of the test ends
    /// it.
    func releasesJobs(after end: @Sendable () -> Void) async -> Bool {
        let jobs = weakJobs()
        guard jobs.count == 3 else { return false }
        end()
        while jobs.contains(where: { $0.job != nil }) {
            if Task.isCancelled { return false }
            await Task.yield()
        }
        return true
    }

    private func weakJobs() -> [WeakJob] { imageJobs.values.map(WeakJob.init) + dataJobs.values.map(WeakJob.init) }
}

private struct WeakJob {
    weak var job: LoadJob?

    init(_ job: LoadJob) { self.job = job }
}
