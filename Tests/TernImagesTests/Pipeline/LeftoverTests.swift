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

/// Tests that a load leaves no state behind, however it ends.
@Suite(.timeLimit(.minutes(1))) struct LeftoverTests {
    /// A stub that answers once it is released.
    private func held(_ answer: StubTransport.Answer) -> (LoopbackServer.Gate, StubTransport) {
        let gate = LoopbackServer.Gate()
        return (
            gate,
            StubTransport { _ in
                try await gate.wait()
                return answer
            }
        )
    }

    private func progressive(_ text: String) throws -> ImageRequest {
        var request = ImageRequest(try url(text))
        request.options.progressive = .scans
        return request
    }

    @Test func aFailedFetchEndsItsPreviews() async throws {
        let kit = PipelineKit(StubTransport { _ in .status(404) }) { $0.decoders = ImageDecoders() }
        #expect(await kit.pipeline.failure(of: try progressive("https://a.example/1.jpg"))?.network?.status == 404)
        await kit.expectNothingLeft()
    }

    @Test func aRevalidationMakesNoPreviews() async throws {
        let (old, new) = (try Pictures.jpeg(40, 30), try Pictures.jpeg(60, 30))
        let stub = StubTransport { call in
            .data(call.index == 0 ? old : new, headers: ["Cache-Control": "max-age=0", "ETag": "\"\(call.index)\""])
        }
        let kit = PipelineKit(stub) { $0.decoders = ImageDecoders() }
        let request = try progressive("https://a.example/1.jpg")
        _ = try await kit.pipeline.image(from: request)
        let task = kit.pipeline.task(for: request)
        for await _ in task.previews { Issue.record("a preview") }
        #expect(kit.pipeline.cachedImage(for: request)?.size.width == 60)
        await kit.expectNothingLeft()
    }

    @Test func bytesAloneMakeNoPreviews() async throws {
        let picture = try Pictures.jpeg()
        let kit = PipelineKit(picture: picture) { $0.decoders = ImageDecoders() }
        #expect(try await kit.pipeline.data(for: try progressive("https://a.example/1.jpg")) == picture)
        await kit.expectNothingLeft()
    }

    @Test func cancellingADataCallStopsTheFetch() async throws {
        let (gate, stub) = held(.status(200))
        let kit = PipelineKit(stub)
        let request = ImageRequest(try url("https://a.example/1.jpg"))
        let waiting = Task { try await kit.pipeline.data(for: request) }
        try await stub.waitForCalls(1)
        waiting.cancel()
        let error = await #expect(throws: ImageError.self) { _ = try await waiting.value }
        #expect(error?.kind == .cancelled)
        await kit.expectNothingLeft()
        gate.open()
    }

    @Test func aCancelledCallerStartsNoFetch() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let request = ImageRequest(try url("https://a.example/1.jpg"))
        let gate = LoopbackServer.Gate()
        let waiting = Task {
            try? await gate.wait()
            return try await kit.pipeline.data(for: request)
        }
        waiting.cancel()
        await #expect(throws: ImageError.self) { _ = try await waiting.value }
        await kit.expectNothingLeft()
        #expect(kit.stub.calls.isEmpty)
    }

    @Test(arguments: [false, true])
    func aLoadThatIsCancelledWhileTheDiskIsOpenedFetchesNothing(isProcessed: Bool) async throws {
        var (rounds, judged) = (0, 0)
        // Repeats until the cancellation was in time once. The time limit of the test also ends it.
        while judged == 0 || judged < 10 && rounds < 100, !Task.isCancelled {
            rounds += 1
            let folder = try ScratchFolder()
            let kit = PipelineKit(picture: try Pictures.png(), disk: .folder(folder.url)) { $0.diskContent = .all }
            var request = ImageRequest(try url("https://a.example/1.png"))
            if isProcessed { request.processors = [.rotate(degrees: 90)] }
            let task = kit.pipeline.task(for: request)
            await kit.pipeline.waitForMessages()
            task.cancel()
            await kit.pipeline.waitForMessages()
            // The disk was opened before the cancellation, which is another test.
            let wasInTime = !kit.pipeline.disk.isOpen
            _ = await kit.pipeline.disk.cache
            await kit.expectNothingLeft()
            guard wasInTime else { continue }
            judged += 1
            #expect(kit.stub.calls.isEmpty)
        }
        #expect(judged > 0)
    }

    @Test func aFinishedVariantDoesNotKeepTheRevalidation() async throws {
        let (gate, stub) = held(.status(304))
        let kit = PipelineKit(stub)
        let whole = ImageRequest(try url("https://a.example/1.png"))
        var turned = whole
        turned.processors = [.rotate(degrees: 90)]
        let stale = StoredImage(
            image: try gradient(40, 30), animation: nil, data: nil, freshness: ImageFreshness(received: 0, lifetime: 0))
        kit.pipeline.memory.insert(stale, for: kit.pipeline.key(of: whole))
        let tasks = [kit.pipeline.task(for: turned), kit.pipeline.task(for: whole)]
        for task in tasks { #expect(try await task.response.isStale) }
        try await stub.waitForCalls(1)
        for task in tasks { task.cancel() }
        await kit.expectNothingLeft()
        gate.open()
    }

    @Test func aRejectedTaskDoesNotKeepTheRevalidation() async throws {
        let (gate, stub) = held(.status(304))
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(stub, disk: .cache(cache))
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.requiresAnimation = true
        let freshness = ImageFreshness(received: 0, lifetime: 0)
        try await cache.insert(
            try Pictures.png(), for: DiskTier.encodedKey(request.source.key), metadata: freshness.encoded)
        #expect(await kit.pipeline.failure(of: request)?.kind == .unsupported)
        await kit.expectNothingLeft()
        gate.open()
    }

    @Test func callersThatNoLongerWaitAreForgotten() async throws {
        let (gate, stub) = held(.data(try Pictures.png()))
        let kit = PipelineKit(stub)
        let task = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.png")))
        let callers = (0..<20).map { _ in Task { try? await task.image } }
        while task.callerCount < 20 { await Task.yield() }
        for caller in callers.dropFirst() { caller.cancel() }
        for caller in callers.dropFirst() { #expect(await caller.value == nil) }
        #expect(task.callerCount == 1)
        gate.open()
        #expect(await callers[0].value != nil)
        #expect(task.callerCount == 0)
    }

    @Test func aPipelineGoesWithItsLastLoad() async throws {
        weak var released: ImagePipeline?
        do {
            let kit = PipelineKit(picture: try Pictures.png())
            released = kit.pipeline
            _ = try await kit.pipeline.image(from: try url("https://a.example/1.png"))
            kit.pipeline.setScrolling(true)
            #expect(await kit.pipeline.failure(of: ImageRequest(nil))?.kind == .invalidURL)
            await kit.expectNothingLeft()
        }
        // The time limit of the test also ends it.
        while released != nil, !Task.isCancelled { await Task.yield() }
        #expect(released == nil)
    }
}
