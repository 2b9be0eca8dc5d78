#if os(Linux)
import Tern
import TernTesting
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.timeLimit(.minutes(1))) struct PreviewTests {
    /// A progressive JPEG that arrives in parts, one for each step of the clock.
    private func kit(_ picture: Data, _ clock: ManualClock, pieces: Int = 12) -> PipelineKit {
        let size = picture.count / pieces + 1
        let chunks = stride(from: 0, to: picture.count, by: size).map { picture[$0..<min($0 + size, picture.count)] }
        let stub = StubTransport(clock: clock) { _ in .chunks(chunks, interval: .seconds(1)) }
        return PipelineKit(stub) { $0.decoders = ImageDecoders() }
    }

    /// Releases this number of further parts.
    private func feed(_ clock: ManualClock, _ count: Int) async throws {
        for _ in 0..<count {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
    }

    @Test func previewsComeBeforeThePictureAndTheLastIsTheWhole() async throws {
        let picture = try Pictures.jpeg(320, 240, progressive: true)
        let clock = ManualClock()
        let kit = kit(picture, clock)
        var request = ImageRequest(try url("https://a.example/1.jpg"))
        request.options.progressive = .scans
        let task = kit.pipeline.task(for: request)
        var previews = task.previews.makeAsyncIterator()
        // Each part holds the end of at least one scan: the next is sent only after a preview.
        try await feed(clock, 5)
        var seen = [try #require(await previews.next())]
        try await feed(clock, 5)
        seen.append(try #require(await previews.next()))
        try await feed(clock, 1)
        while let preview = await previews.next() { seen.append(preview) }
        #expect(seen.allSatisfy { $0.metadata.isPartial && $0.size == PixelSize(width: 320, height: 240) })
        let image = try await task.image
        #expect(!image.metadata.isPartial)
        let whole = try CodecImageDecoder().image(from: picture, options: ImageDecodingOptions())
        #expect(image.pixels.bytes == whole.pixels.bytes)
        // Memory holds the whole image.
        #expect(kit.pipeline.cachedImage(for: request)?.metadata.isPartial == false)
    }

    @Test func previewsGoThroughTheProcessorsAndToTheTargetSize() async throws {
        let picture = try Pictures.jpeg(320, 240, progressive: true)
        let clock = ManualClock()
        let kit = kit(picture, clock)
        var request = ImageRequest(
            try url("https://a.example/1.jpg"), targetSize: PixelSize(width: 80, height: 80),
            processors: [.rotate(degrees: 90)])
        request.options.progressive = .scans
        let task = kit.pipeline.task(for: request)
        var previews = task.previews.makeAsyncIterator()
        try await feed(clock, 5)
        #expect(await previews.next()?.size == PixelSize(width: 60, height: 80))
        try await feed(clock, 6)
        while let preview = await previews.next() { #expect(preview.size == PixelSize(width: 60, height: 80)) }
        #expect(try await task.image.size == PixelSize(width: 60, height: 80))
    }

    @Test func previewsAreShownOnlyOnRequest() async throws {
        let picture = try Pictures.jpeg(320, 240, progressive: true)
        let clock = ManualClock()
        let kit = kit(picture, clock)
        let task = kit.pipeline.task(for: ImageRequest(try url("https://a.example/1.jpg")))
        try await feed(clock, 11)
        for await _ in task.previews { Issue.record("a preview") }
        _ = try await task.image
    }

    @Test func cancellingWhileItComesEndsThePreviews() async throws {
        let picture = try Pictures.jpeg(320, 240, progressive: true)
        let clock = ManualClock()
        let kit = kit(picture, clock)
        var request = ImageRequest(try url("https://a.example/1.jpg"))
        request.options.progressive = .scans
        let task = kit.pipeline.task(for: request)
        try await kit.stub.waitForCalls(1)
        clock.advance(by: .seconds(1))
        task.cancel()
        for await _ in task.previews {}
        await kit.pipeline.waitForMessages()
        #expect(await kit.pipeline.previews.isEmpty)
        #expect(await kit.pipeline.runningCount == 0)
    }
}
#endif
