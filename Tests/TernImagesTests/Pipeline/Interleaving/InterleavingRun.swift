import Tern
import TernCache
import TernConcurrency
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One random history of a pipeline, from its seed: loads begin, change their rank, are cancelled, succeed and fail,
/// while time passes, views scroll and memory is emptied.
final class InterleavingRun {
    private var random: SplitMix
    private let clock = ManualClock()
    private let folder: ScratchFolder?
    let kit: PipelineKit
    private var live: [ImageTask] = []
    private var witnesses: [Task<[String], Never>] = []

    init(seed: UInt64) throws {
        random = SplitMix(state: seed)
        let folder = seed % 3 == 0 ? try ScratchFolder() : nil
        let server = try ColorServer(seed: seed, clock: clock)
        let clock = clock
        kit = PipelineKit(server.stub, disk: folder.map { .folder($0.url) } ?? .none) { configuration in
            configuration.clock = clock
            configuration.maximumFetches = 2
            configuration.failureLifetime = .seconds(5)
            configuration.diskContent = [.original, .automatic, .processed, .all][Int(seed / 3 % 4)]
            // Without the counting one there are previews.
            if seed % 2 == 0 { configuration.decoders = ImageDecoders() }
            if seed % 5 == 0 { configuration.rateLimit = ImagePipeline.RateLimit(perSecond: 2, burst: 3) }
            configuration.order = seed % 4 < 2 ? .firstInFirstOut : .lastInFirstOut
        }
        self.folder = folder
    }

    private func request(_ number: Int) throws -> ImageRequest {
        var request = ImageRequest(try ColorServer.url(number))
        switch Int.random(in: 0..<3, using: &random) {
        case 0: break
        case 1: request.targetSize = PixelSize(width: 16, height: 16)
        default: request.processors = [.rotate(degrees: 90)]
        }
        request.priority = Request.Priority.allCases.randomElement(using: &random) ?? .normal
        request.isVisible = Bool.random(using: &random)
        switch Int.random(in: 0..<12, using: &random) {
        case 0: request.options.progressive = .scans
        case 1: request.options.waitsForScrolling = true
        case 2: request.options.revalidation = .always
        case 3: request.options.retriesFailed = true
        case 4: request.caching = .reload
        case 5: request.caching = .memoryOnly
        case 6: request.options.includesData = true
        case 7: request.options.waitsForStore = true
        case 8: request.caching = .cacheOnly
        default: break
        }
        return request
    }

    private func start() throws {
        let number = Int.random(in: 0..<ColorServer.count, using: &random)
        let task = kit.pipeline.task(for: try request(number))
        live.append(task)
        let witness = Task<[String], Never> { await InterleavingRun.watch(task, number) }
        witnesses.append(witness)
    }

    /// All that is wrong with what a task told.
    private static func watch(_ task: ImageTask, _ number: Int) async -> [String] {
        var (faults, ends, pictures) = ([String](), 0, 0)
        func look(_ image: RasterImage, _ what: String) {
            let seen = ColorServer.number(of: image)
            if seen != number { faults.append("\(what) of \(seen.map(String.init) ?? "nobody") for \(number)") }
        }
        for await event in task.events {
            if ends > 0 { faults.append("an event after the end") }
            switch event {
            case .progress: break
            case .preview(let image): look(image, "preview")
            case .response(let response):
                pictures += 1
                look(response.image, "picture")
            case .finished(let error):
                ends += 1
                if error == nil, pictures == 0 { faults.append("the end without a picture or an error") }
            }
        }
        if ends != 1 { faults.append("\(ends) ends") }
        if !task.isFinished || task.current == nil { faults.append("over, and not finished") }
        return faults
    }

    func step() async throws {
        live.removeAll(where: \.isFinished)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<45: try start()
        case 45..<65: live.randomElement(using: &random)?.cancel()
        case 65..<72: live.randomElement(using: &random)?.priority = .veryHigh
        case 72..<77: live.randomElement(using: &random)?.isVisible = Bool.random(using: &random)
        case 77..<80: kit.pipeline.memory.removeAll()
        case 80..<84: kit.pipeline.setScrolling(Bool.random(using: &random))
        case 84..<86: try await kit.pipeline.remove(request(Int.random(in: 0..<ColorServer.count, using: &random)))
        case 86..<94: clock.advance(by: .milliseconds(Int.random(in: 50...2_000, using: &random)))
        default: await kit.pipeline.waitForMessages()
        }
        for _ in 0..<Int.random(in: 0..<4, using: &random) { await Task.yield() }
    }

    /// Lets time pass until all have ended; gives what was wrong.
    func finish() async -> [String] {
        kit.pipeline.setScrolling(false)
        while live.contains(where: { !$0.isFinished }) {
            clock.advance(by: .seconds(1))
            await kit.pipeline.waitForMessages()
        }
        var faults: [String] = []
        for witness in witnesses { faults += await witness.value }
        return faults
    }
}
