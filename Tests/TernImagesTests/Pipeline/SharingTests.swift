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

/// Tests which requests share a fetch, a decode and a cached image, by their properties beside the URL.
@Suite(.timeLimit(.minutes(1))) struct SharingTests {
    private func held(_ picture: Data) -> (LoopbackServer.Gate, StubTransport) {
        let gate = LoopbackServer.Gate()
        return (
            gate,
            StubTransport { _ in
                try await gate.wait()
                return .data(picture)
            }
        )
    }

    @Test func requestsWithAndWithoutCookiesNeverShare() async throws {
        let (gate, stub) = held(try Pictures.png())
        let kit = PipelineKit(stub)
        let plain = ImageRequest(try url("https://a.example/1.png"))
        var known = plain
        known.options.handlesCookies = true
        let tasks = [plain, known, known, plain].map { kit.pipeline.task(for: $0) }
        await kit.pipeline.waitForMessages()
        gate.open()
        for task in tasks { _ = try await task.image }
        #expect(stub.calls.count == 2)
        kit.pipeline.memory.removeAll()
        _ = try await kit.pipeline.image(from: known)
        #expect(kit.pipeline.cachedImage(for: plain) == nil)
    }

    @Test func aRequestWithCredentialsOfItsOwnSharesNothingWithAnother() async throws {
        struct Nobody: CredentialProvider {
            @concurrent func credential(
                for challenge: AuthenticationChallenge, of request: Request
            ) async throws -> Credential? { nil }
        }
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache))
        var request = try Request(.get, "https://a.example/1.png")
        request.credentials = Nobody()
        let (ada, grace) = (ImageRequest(.request(request)), ImageRequest(.request(request)))
        _ = try await kit.pipeline.image(from: ada)
        #expect(kit.pipeline.cachedImage(for: ada) != nil)
        #expect(kit.pipeline.cachedImage(for: grace) == nil)
        #expect(kit.pipeline.cachedImage(for: ImageRequest(try url("https://a.example/1.png"))) == nil)
        try await kit.pipeline.flush()
        #expect(try await cache.usage.count == 0)
        _ = try await kit.pipeline.image(from: grace)
        #expect(kit.stub.calls.count == 2)
        _ = try await kit.pipeline.image(from: ada)
        #expect(kit.stub.calls.count == 2)
    }

    @Test func aTaskThatDoesNotWaitForScrollingStartsTheSharedLoad() async throws {
        let clock = ManualClock()
        let kit = PipelineKit(picture: try Pictures.png()) { $0.clock = clock }
        kit.pipeline.setScrolling(true)
        var patient = ImageRequest(try url("https://a.example/1.png"))
        patient.options.waitsForScrolling = true
        var other = ImageRequest(try url("https://a.example/1.png"), targetSize: PixelSize(width: 10, height: 10))
        other.options.waitsForScrolling = true
        let tasks = [kit.pipeline.task(for: patient), kit.pipeline.task(for: other)]
        await kit.pipeline.waitForMessages()
        #expect(kit.stub.calls.isEmpty)
        let eager = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.png")))
        _ = try await eager.image
        for task in tasks { _ = try await task.image }
        #expect(kit.stub.calls.count == 1)
        await kit.expectNothingLeft()
    }

    @Test func optionsOfTheResultDoNotPreventSharing() async throws {
        let (gate, stub) = held(try Pictures.png())
        let kit = PipelineKit(stub)
        let plain = ImageRequest(try url("https://a.example/1.png"))
        var (moving, background, processed) = (plain, plain, plain)
        moving.options.requiresAnimation = true
        background.options.continuesInBackground = true
        processed.options.processesAnimations = true
        let tasks = [plain, background, processed].map { kit.pipeline.task(for: $0) }
        let refused = kit.pipeline.task(for: moving)
        await kit.pipeline.waitForMessages()
        gate.open()
        for task in tasks { _ = try await task.image }
        let error = await #expect(throws: ImageError.self) { _ = try await refused.image }
        #expect(error?.kind == .unsupported)
        #expect(kit.decoder.decodes == 1)
        #expect(stub.calls.count == 1)
    }

    @Test func aTaskThatJoinsAFetchGetsItsProgress() async throws {
        let picture = try Pictures.png(200, 200)
        let clock = ManualClock()
        let half = picture.count / 2
        let stub = StubTransport(clock: clock) { _ in
            .chunks(
                [picture.prefix(half), picture.suffix(from: half)], interval: .seconds(1),
                headers: ["Content-Length": "\(picture.count)"])
        }
        let kit = PipelineKit(stub)
        let request = ImageRequest(try url("https://a.example/1.png"))
        let first = kit.pipeline.task(for: request)
        for await progress in first.progress where progress.completedBytes == half { break }
        // No further bytes arrive until the clock moves.
        let sizes = [nil, PixelSize(width: 10, height: 10)]
        let joiners = sizes.map { size in
            var request = request
            request.targetSize = size
            return kit.pipeline.task(for: request)
        }
        for joiner in joiners {
            for await progress in joiner.progress where progress.completedBytes == half { break }
        }
        // The first half was reported; the wait of the server comes after it.
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
        for joiner in joiners { _ = try await joiner.image }
        for await progress in first.progress where progress.isFinished {
            #expect(progress.completedBytes == picture.count)
            #expect(progress.fractionCompleted == 1)
        }
    }
}
