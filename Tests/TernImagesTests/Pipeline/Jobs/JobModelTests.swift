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

/// Compares the loads of a pipeline with a plain model: a list of tasks.
@Suite(.timeLimit(.minutes(10))) struct JobModelTests {
    /// 30,000 steps in all. TERN_JOB_STEPS=100000 sets another number.
    private static let steps = ProcessInfo.processInfo.environment["TERN_JOB_STEPS"].flatMap { Int($0) } ?? 30_000

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func theLoadsMatchAListOfTasks(seed: UInt64) async throws {
        let run = try JobModelRun(seed: seed)
        for _ in 0..<Self.steps / 8 { try await run.step() }
        try await run.finish()
    }
}

/// A server that answers the fetches of a path when the test says so.
private final class HeldServer: Sendable {
    private struct State {
        var fetches: [String: [Waiter<StubTransport.Answer?>]] = [:]
        var answers: [String: StubTransport.Answer] = [:]
    }

    private let state = Lock(State())

    /// The paths of the fetches that wait. Those of cancelled loads stay for a moment.
    var paths: [String] { state.withLock { $0.fetches.keys.sorted() } }

    func answer(_ path: String) async throws -> StubTransport.Answer {
        let waiter = Waiter<StubTransport.Answer?>()
        let known = state.withLock { state in
            if state.answers[path] == nil { state.fetches[path, default: []].append(waiter) }
            return state.answers[path]
        }
        if let known { return known }
        let answer = await waiter.wait(cancelled: nil)
        state.withLock { state in
            state.fetches[path]?.removeAll { $0 === waiter }
            if state.fetches[path]?.isEmpty == true { state.fetches[path] = nil }
        }
        guard let answer else { throw CancellationError() }
        return answer
    }

    /// Answers the fetches of a path, and those that come until `hold`: one that waits may be of a cancelled load.
    func release(_ path: String, with answer: StubTransport.Answer) {
        let waiters = state.withLock { state in
            state.answers[path] = answer
            return state.fetches.removeValue(forKey: path) ?? []
        }
        for waiter in waiters { waiter.resume(returning: answer) }
    }

    /// Holds all fetches again.
    func hold() { state.withLock { $0.answers = [:] } }
}

/// The loads of a pipeline, as far as they do not depend on the time.
private struct LoadsState: Equatable, Sendable {
    struct Image: Equatable, Sendable {
        /// The numbers of the tasks, in the order in which they joined.
        var tasks: [UInt64] = []
        /// The number of loads that process the image.
        var dependents = 0
        var priority = LoadPriority.lowest
    }

    struct Bytes: Equatable, Sendable {
        var dependents = 0
        var priority = LoadPriority.lowest
    }

    var images: [String: Image] = [:]
    var bytes: [String: Bytes] = [:]
    var running = 0
    var waiting = 0
}

extension ImagePipeline {
    fileprivate func loadsState() -> LoadsState {
        var state = LoadsState(running: queues[0].running, waiting: queues[0].waiting)
        for (key, job) in imageJobs {
            var image = LoadsState.Image(priority: job.priority)
            for subscriber in job.subscribers.all {
                switch subscriber {
                case .task(let task): image.tasks.append(task.id)
                case .job: image.dependents += 1
                }
            }
            let size = key.imageKey.decoding.targetSize == nil ? "whole" : "small"
            state.images["\(key.imageKey.source.text) \(size) \(key.imageKey.processors.count)"] = image
        }
        for (key, job) in dataJobs {
            state.bytes[key.source.text] = LoadsState.Bytes(
                dependents: job.subscribers.count, priority: job.priority)
        }
        return state
    }
}

/// One random history, from its seed: tasks begin, change their priority, are cancelled, and get an image or an error.
private final class JobModelRun {
    private struct Live {
        let task: ImageTask
        let source: String
        let size: String
        let processors: Int
        var priority: LoadPriority
    }

    /// The number of sources, and of fetches at a time: a load waits in the queue only while a cancelled one has a
    /// slot.
    private static let sourceCount = 5
    private let server = HeldServer()
    private let kit: PipelineKit
    private let picture: Data
    private let processors: [any ImageProcessor]
    private var random: SplitMix
    /// The model: the tasks that have not ended, in the order in which they began.
    private var live: [Live] = []
    private var stepCount = 0

    init(seed: UInt64) throws {
        random = SplitMix(state: seed)
        picture = try Pictures.png(8, 8)
        processors = ["a", "b"].map { CountingProcessor(name: $0, counter: Counter()) }
        let server = server
        kit = PipelineKit(StubTransport { call in try await server.answer(call.path) }) { configuration in
            configuration.maximumFetches = Self.sourceCount
            configuration.failureLifetime = .zero
            configuration.order = seed % 2 == 0 ? .firstInFirstOut : .lastInFirstOut
        }
    }

    func step() async throws {
        stepCount += 1
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<42 where live.count < 40: try start()
        case 0..<66: cancel()
        case 66..<90: changePriority()
        default: try await answer()
        }
        if stepCount % 10 == 0 { try await settle() }
    }

    /// Answers all fetches.
    func finish() async throws {
        try await settle()
        while !live.isEmpty { try await answer() }
        await kit.expectNothingLeft()
    }

    private func start() throws {
        let source = "https://a.example/\(Int.random(in: 0..<Self.sourceCount, using: &random))"
        let isSmall = Bool.random(using: &random)
        let count = Int.random(in: 0...2, using: &random)
        var request = ImageRequest(
            try url(source), targetSize: isSmall ? PixelSize(width: 4, height: 4) : nil,
            processors: Array(processors.prefix(count)))
        let priority = randomPriority()
        request.priority = priority.requested
        request.isVisible = priority.isVisible
        request.caching = .none
        let task = kit.pipeline.task(for: request)
        live.append(
            Live(
                task: task, source: source, size: isSmall ? "small" : "whole", processors: count, priority: priority))
    }

    private func randomPriority() -> LoadPriority {
        LoadPriority(.allCases.randomElement(using: &random) ?? .normal, isVisible: Bool.random(using: &random))
    }

    private func cancel() {
        guard let index = live.indices.randomElement(using: &random) else { return }
        let task = live.remove(at: index).task
        task.cancel()
        #expect(kind(of: task) == .cancelled)
    }

    private func changePriority() {
        guard let index = live.indices.randomElement(using: &random) else { return }
        let priority = randomPriority()
        live[index].priority = priority
        live[index].task.priority = priority.requested
        live[index].task.isVisible = priority.isVisible
    }

    /// Answers one fetch: all tasks of its source end, and no other.
    private func answer() async throws {
        try await settle()
        guard let path = server.paths.randomElement(using: &random) else { return }
        let source = "https://a.example\(path)"
        let isFound = Int.random(in: 0..<4, using: &random) > 0
        let ended = live.filter { $0.source == source }
        live.removeAll { $0.source == source }
        server.release(path, with: isFound ? .data(picture) : .status(404))
        try await settle()
        server.hold()
        for entry in ended {
            #expect(entry.task.isFinished)
            #expect(kind(of: entry.task) == (isFound ? nil : .network))
        }
        #expect(live.allSatisfy { !$0.task.isFinished })
    }

    private func kind(of task: ImageTask) -> ImageError.Kind? {
        if case .failure(let error)? = task.current { error.kind } else { nil }
    }

    /// The loads that the pipeline must have for the tasks of the model.
    private var expected: LoadsState {
        var state = LoadsState()
        for entry in live {
            let name = "\(entry.source) \(entry.size)"
            state.images["\(name) \(entry.processors)", default: LoadsState.Image()].tasks.append(entry.task.id)
            // The loads of the image before each processor have the priority too.
            for count in 0...entry.processors {
                let image = state.images["\(name) \(count)", default: LoadsState.Image()]
                state.images["\(name) \(count)"] = image
                state.images["\(name) \(count)"]?.priority = max(image.priority, entry.priority)
            }
            let bytes = state.bytes[entry.source, default: LoadsState.Bytes()]
            state.bytes[entry.source] = LoadsState.Bytes(
                dependents: 0, priority: max(bytes.priority, entry.priority))
        }
        for source in state.bytes.keys {
            for size in ["small", "whole"] where state.images["\(source) \(size) 0"] != nil {
                state.bytes[source]?.dependents += 1
                for count in 1...2 where state.images["\(source) \(size) \(count)"] != nil {
                    state.images["\(source) \(size) \(count - 1)"]?.dependents = 1
                }
            }
        }
        state.running = state.bytes.count
        return state
    }

    /// Waits until the pipeline has the loads of the model. The time limit applies only to failures: the machine may
    /// delay any thread for seconds.
    private func settle() async throws {
        let (expected, clock) = (expected, ContinuousClock())
        var state = LoadsState()
        var rounds = 0
        let end = clock.now + .seconds(20)
        while true {
            await kit.pipeline.waitForMessages()
            state = await kit.pipeline.loadsState()
            if state == expected, server.paths.count == expected.running { return }
            rounds += 1
            await Task.yield()
            if rounds % 64 == 0, clock.now > end { break }
        }
        #expect(state == expected)
        #expect(server.paths.count == expected.running)
        throw CancellationError()
    }
}
