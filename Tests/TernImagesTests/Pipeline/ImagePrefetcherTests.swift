import Tern
import TernCache
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1))) struct ImagePrefetcherTests {
    private func urls(_ names: [String]) throws -> [URL] { try names.map { try url("https://a.example/\($0)") } }

    @Test func picturesGoIntoMemoryAndTheBatchTellsHowFarItIs() async throws {
        let picture = try Pictures.png()
        let kit = PipelineKit(StubTransport { call in call.path == "/bad" ? .status(404) : .data(picture) })
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline)
        let addresses = try urls(["a", "b", "bad", "c"])
        _ = try await kit.pipeline.image(from: addresses[0])
        let batch = prefetcher.prefetch(addresses)
        var indices: Set<Int> = []
        for await outcome in batch.results {
            indices.insert(outcome.index)
            #expect((outcome.error != nil) == (outcome.index == 2))
            #expect(outcome.isSkipped == (outcome.index == 0))
        }
        #expect(indices == [0, 1, 2, 3])
        let last = await batch.finished()
        #expect([last.total, last.finished, last.skipped, last.failed] == [4, 4, 1, 1])
        #expect(!last.isCancelled)
        #expect(kit.pipeline.cachedImage(for: ImageRequest(addresses[3])) != nil)
        #expect(kit.stub.calls.count == 4)
    }

    @Test func theDiskAloneIsFilledWithoutDecoding() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache))
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline, destination: .disk)
        let requests = try urls(["a", "b"]).map { ImageRequest($0) }
        await prefetcher.prefetch(requests).finished()
        #expect(kit.decoder.decodes == 0)
        #expect(await kit.pipeline.isOnDisk(requests[0]))
        #expect(kit.pipeline.cachedImage(for: requests[0]) == nil)
        let again = await prefetcher.prefetch(requests).finished()
        #expect(again.skipped == 2)
        #expect(kit.stub.calls.count == 2)
    }

    @Test func aPrefetchFailsIfTheDiskDoesNotStoreIt() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline, destination: .disk)
        let last = await prefetcher.prefetch(try urls(["a"])).finished()
        #expect(last.failed == 1)
    }

    @Test func threeAreLoadedAtATimeAndCancellingStopsThem() async throws {
        let gate = LoopbackServer.Gate()
        let picture = try Pictures.png()
        let kit = PipelineKit(
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            })
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline)
        let batch = prefetcher.prefetch(try urls((0..<10).map { "\($0)" }))
        try await kit.stub.waitForCalls(3)
        batch.cancel()
        let last = await batch.finished()
        #expect(last.isCancelled && last.finished == 0)
        // The next item is not blocked by it.
        gate.open()
        let next = await prefetcher.prefetch(try urls(["x"])).finished()
        #expect(next.finished == 1 && next.failed == 0)
        #expect(kit.stub.calls.count == 4)
        for await _ in batch.results { Issue.record("an outcome of a cancelled batch") }
    }

    @Test func aPauseHoldsBackWhatHasNotBegun() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline)
        await prefetcher.pause()
        let batch = prefetcher.prefetch(try urls(["a", "b"]))
        _ = try await kit.pipeline.image(from: try url("https://a.example/mine"))
        #expect(kit.stub.calls.map(\.path) == ["/mine"])
        await prefetcher.resume()
        #expect(await batch.finished().finished == 2)
    }

    @Test func prefetchedLoadsWaitBehindRequestedOnes() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let batch = ImagePrefetcher(pipeline: kit.pipeline).prefetch([
            ImageRequest(try url("https://a.example/a"), priority: .high),
            ImageRequest(try url("https://a.example/b"), priority: .veryLow),
        ])
        #expect(batch.requests.map(\.priority) == [.low, .veryLow])
        await batch.finished()
    }
}
