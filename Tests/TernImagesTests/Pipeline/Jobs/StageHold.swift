import Dispatch
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

/// A point on the way of an image load, at which a test cancels one of its waiters.
enum HeldStage: CaseIterable, Sendable {
    case scrolling, fetchQueue, fetch, decodeQueue, decode, processQueue, process, delivery

    /// The stage whose queue or slot the load is held in; nil for the others.
    var loadStage: LoadStage? {
        switch self {
        case .fetchQueue, .fetch: .fetch
        case .decodeQueue, .decode: .decode
        case .processQueue, .process: .process
        case .scrolling, .delivery: nil
        }
    }

    /// Whether another load has the only slot.
    var isQueue: Bool { self == .fetchQueue || self == .decodeQueue || self == .processQueue }
}

/// A gate in synchronous work, with the number of callers that have reached it.
final class WorkGate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let isOpen = Lock(false)
    private let callers = Counter()

    var arrived: Int { callers.value }

    /// Blocks the thread until the gate is open.
    func pass() {
        callers.add()
        semaphore.wait()
        semaphore.signal()
    }

    func open() {
        let isFirst = isOpen.withLock { isOpen in
            defer { isOpen = true }
            return !isOpen
        }
        if isFirst { semaphore.signal() }
    }
}

/// A pipeline that holds a load at one stage until `release` is called. The load has one processor.
final class StageHold: Sendable {
    let stage: HeldStage
    let kit: PipelineKit
    let processes = Counter()
    private let clock = ManualClock()
    private let fetchGate = LoopbackServer.Gate()
    private let workGate = WorkGate()
    /// Keeps the slot that the load waits for.
    private let blocker = Lock<ImageTask?>(nil)

    init(_ stage: HeldStage) throws {
        self.stage = stage
        let (picture, gate, work, clock) = (try Pictures.png(), fetchGate, workGate, clock)
        let stub = StubTransport { call in
            let isHeld = stage == .fetch || stage == .fetchQueue && call.path == "/blocker"
            if isHeld { try await gate.wait() }
            return .data(picture)
        }
        let decoder = HeldDecoder(gate: stage.loadStage == .decode ? work : nil)
        kit = PipelineKit(stub) { configuration in
            configuration.clock = clock
            configuration.executor = ImageExecutor(threadCount: 2)
            configuration.decoders = ImageDecoders([decoder])
            if stage.isQueue {
                configuration.maximumFetches = 1
                configuration.maximumDecodes = 1
                configuration.maximumProcesses = 1
            }
        }
        self.decoder = decoder
        if stage == .scrolling { kit.pipeline.setScrolling(true) }
    }

    let decoder: HeldDecoder

    func request(_ name: String = "1") throws -> ImageRequest {
        var request = ImageRequest(try url("https://a.example/\(name)"))
        let gate = stage.loadStage == .process ? workGate : nil
        request.processors = [HeldProcessor(gate: gate, counter: processes)]
        request.options.waitsForScrolling = stage == .scrolling
        return request
    }

    /// Starts loads of one image, and returns once the load is held, or has ended at `.delivery`.
    func tasks(_ count: Int) async throws -> [ImageTask] {
        if stage.isQueue {
            let blocking = kit.pipeline.task(for: try request("blocker"))
            blocker.withLock { $0 = blocking }
            if stage == .fetchQueue { try await kit.stub.waitForCalls(1) } else { await arrive(1) }
        }
        let tasks = try (0..<count).map { _ in kit.pipeline.task(for: try request()) }
        switch stage {
        case .scrolling:
            while await kit.pipeline.scrollingCount == 0 { await Task.yield() }
        case .fetch: try await kit.stub.waitForCalls(1)
        case .fetchQueue, .decodeQueue, .processQueue:
            let queue = stage.loadStage ?? .fetch
            while await kit.pipeline.waitingCount(at: queue) != 1 { await Task.yield() }
        case .decode, .process: await arrive(1)
        case .delivery: for task in tasks { _ = try await task.image }
        }
        await kit.pipeline.waitForMessages()
        return tasks
    }

    private func arrive(_ count: Int) async { while workGate.arrived < count { await Task.yield() } }

    /// Lets all loads go on, and waits for that of the other image.
    func release() async throws {
        if stage == .scrolling {
            kit.pipeline.setScrolling(false)
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
        fetchGate.open()
        workGate.open()
        _ = try await blocker.withLock { $0 }?.image
    }

    /// The number of fetches of the image.
    var fetches: Int { kit.stub.calls.filter { $0.path == "/1" }.count }
}

/// The system's decoder behind a gate, with a count of its calls.
final class HeldDecoder: ImageDecoder {
    private let gate: WorkGate?
    private let decoder = CountingDecoder()

    init(gate: WorkGate?) { self.gate = gate }

    var decodes: Int { decoder.decodes }

    func decodes(_ format: ImageFormat) -> Bool { decoder.decodes(format) }

    func image(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> RasterImage {
        gate?.pass()
        return try decoder.image(from: data, options: options)
    }

    func animation(from data: Data, options: ImageDecodingOptions) throws(ImageError) -> (any ImageFrames)? { nil }
}

/// A processor behind a gate that counts its calls.
struct HeldProcessor: ImageProcessor {
    let gate: WorkGate?
    let counter: Counter
    let identifier = ProcessorIdentity("held")

    func process(_ image: RasterImage) throws(ImageError) -> RasterImage {
        gate?.pass()
        counter.add()
        return image
    }
}
