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

/// Tests when an image is revalidated, with which request, and what follows from the response.
@Suite(.timeLimit(.minutes(1))) struct RevalidationTests {
    /// Answers by entity tag, with an image whose width is the version.
    private func versions(_ version: Setting, maxAge: Int = 0, tags: Bool = true) -> StubTransport {
        StubTransport { call in
            let now = version.value
            var headers: Headers = ["Cache-Control": "max-age=\(maxAge)"]
            if tags { headers["ETag"] = "\"\(now)\"" }
            if tags, call.headers["If-None-Match"] == "\"\(now)\"" { return .status(304, headers: headers) }
            return .data(try Pictures.png(now, 40), headers: headers)
        }
    }

    private func widths(_ task: ImageTask) async -> [Int] {
        var widths: [Int] = []
        for await response in task.responses { widths.append(response.image.size.width) }
        return widths
    }

    private func stale(_ version: Int, _ width: Int) throws -> StoredImage {
        var freshness = ImageFreshness(received: 0, lifetime: 0)
        freshness.entityTag = "\"\(version)\""
        return StoredImage(image: try gradient(width, 40), animation: nil, data: nil, freshness: freshness)
    }

    @Test func twoVersionsAreRevalidatedSeparately() async throws {
        let gate = LoopbackServer.Gate()
        let stub = StubTransport { call in
            try await gate.wait()
            let headers: Headers = ["ETag": "\"20\"", "Cache-Control": "max-age=60"]
            if call.headers["If-None-Match"] == "\"20\"" { return .status(304, headers: headers) }
            return .data(try Pictures.png(20, 40), headers: headers)
        }
        let kit = PipelineKit(stub)
        let whole = ImageRequest(try url("https://a.example/1.png"))
        let small = ImageRequest(try url("https://a.example/1.png"), targetSize: PixelSize(width: 10, height: 40))
        kit.pipeline.memory.insert(try stale(20, 20), for: kit.pipeline.key(of: whole))
        kit.pipeline.memory.insert(try stale(5, 5), for: kit.pipeline.key(of: small))
        let (new, old) = (kit.pipeline.task(for: whole), kit.pipeline.task(for: small))
        try await stub.waitForCalls(2)
        gate.open()
        #expect(await widths(old).last == 10)
        _ = await widths(new)
        #expect(kit.pipeline.cachedImage(for: small)?.size.width == 10)
        #expect(kit.pipeline.cachedImage(for: whole)?.size.width == 20)
    }

    @Test func bytesThatTurnOutToBeTheSameAreNotDeliveredAgain() async throws {
        let kit = PipelineKit(versions(Setting(20), tags: false))
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        let task = kit.pipeline.task(for: request)
        var responses = 0
        for await event in task.events { if case .response = event { responses += 1 } }
        #expect(responses == 1)
        #expect(await widths(task) == [20])
        #expect(kit.stub.calls.count == 2)
        let current = try #require(task.current).get()
        #expect(current.source == .memory)
    }

    @Test func processedPicturesOnTheDiskAreFreshAgainAfterA304AndReplacedAfterAChange() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let version = Setting(20)
        let kit = PipelineKit(versions(version), disk: .cache(cache)) { $0.diskContent = .processed }
        var request = ImageRequest(try url("https://a.example/1.png"), targetSize: PixelSize(width: 100, height: 20))
        request.options.waitsForStore = true
        #expect(try await kit.pipeline.image(from: request).size.width == 10)
        let key = kit.pipeline.key(of: request).text
        func received() async throws -> Double? {
            let entry = try await cache.entry(for: key)
            return entry.flatMap { ImageFreshness($0.metadata) }?.received
        }
        let first = try #require(try await received())
        kit.pipeline.memory.removeAll()
        #expect(await widths(kit.pipeline.task(for: request)) == [10])
        try await kit.pipeline.flush()
        #expect(try #require(try await received()) > first)
        version.value = 40
        kit.pipeline.memory.removeAll()
        #expect(await widths(kit.pipeline.task(for: request)).last == 20)
        try await kit.pipeline.flush()
        kit.pipeline.memory.removeAll()
        let again = try await kit.pipeline.response(for: request)
        #expect(again.image.size.width == 20)
        #expect(again.source == .processed)
    }

    @Test func aTaskThatJoinsARevalidationGetsTheCachedImageAtOnce() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let gate = LoopbackServer.Gate()
        let picture = try Pictures.png()
        let stub = StubTransport { _ in
            try await gate.wait()
            return .status(304, headers: ["Cache-Control": "max-age=60"])
        }
        let kit = PipelineKit(stub, disk: .cache(cache))
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.caching.memory = []
        var freshness = ImageFreshness(received: 0, lifetime: 0)
        freshness.entityTag = "\"1\""
        try await cache.insert(
            picture, for: DiskTier.encodedKey(request.source.key), metadata: freshness.encoded)
        let first = kit.pipeline.task(for: request)
        #expect(try await first.response.isStale)
        try await stub.waitForCalls(1)
        let second = kit.pipeline.task(for: request)
        #expect(try await second.response.isStale)
        var turned = request
        turned.processors = [.rotate(degrees: 90)]
        #expect(try await kit.pipeline.image(from: turned).size == PixelSize(width: 30, height: 40))
        gate.open()
        #expect(await widths(second) == [40])
        await kit.expectNothingLeft()
    }

    @Test func aReloadReplacesTheOtherSizes() async throws {
        let version = Setting(20)
        let kit = PipelineKit(versions(version, maxAge: 3_600))
        let whole = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: whole)
        version.value = 40
        var reload = ImageRequest(try url("https://a.example/1.png"), targetSize: PixelSize(width: 10, height: 10))
        reload.caching = .reload
        _ = try await kit.pipeline.image(from: reload)
        // The old version is removed.
        #expect(kit.pipeline.cachedImage(for: whole) == nil)
        #expect(kit.pipeline.cachedImage(for: reload)?.size == PixelSize(width: 10, height: 10))
        #expect(try await kit.pipeline.image(from: whole).size.width == 40)
    }

    @Test func bothSizesOfAChangedPictureStayInMemory() async throws {
        let version = Setting(20)
        let kit = PipelineKit(versions(version))
        let whole = ImageRequest(try url("https://a.example/1.png"))
        let small = ImageRequest(try url("https://a.example/1.png"), targetSize: PixelSize(width: 10, height: 10))
        for request in [small, whole] { _ = try await kit.pipeline.image(from: request) }
        version.value = 40
        let tasks = [small, whole].map { kit.pipeline.task(for: $0) }
        for task in tasks { _ = await widths(task) }
        #expect(kit.pipeline.cachedImage(for: whole)?.size.width == 40)
        #expect(kit.pipeline.cachedImage(for: small)?.size.width == 10)
    }

    @Test func anUnnecessaryRevalidationIsNotReportedAsStale() async throws {
        let kit = PipelineKit(versions(Setting(20), maxAge: 3_600))
        var request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        request.options.revalidation = .always
        let task = kit.pipeline.task(for: request)
        #expect(try await task.response.isStale == false)
        #expect(await widths(task) == [20])
        // A stale image is reported as stale even to a request that does not revalidate.
        let old = PipelineKit(versions(Setting(20)))
        request.options.revalidation = .never
        _ = try await old.pipeline.image(from: request)
        #expect(try await old.pipeline.response(for: request).isStale)
    }

    @Test func conditionsAndRangesAreForGetAlone() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(20, 40)
        let stub = StubTransport { call in
            if call.headers.contains("If-None-Match") || call.headers.contains("Range") { return .status(412) }
            return .data(picture, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=0"])
        }
        let kit = PipelineKit(stub, disk: .cache(cache))
        var post = try Request(.post, "https://a.example/1.png")
        post.body = .data(Data("which".utf8))
        let request = ImageRequest(.request(post))
        let part = PartialImage(data: picture.prefix(10), validator: "\"1\"", length: nil)
        try await cache.insert(part.data, for: PartialImage.key(request.source.key), metadata: part.metadata)
        _ = try await kit.pipeline.image(from: request)
        #expect(await widths(kit.pipeline.task(for: request)) == [20])
        #expect(stub.calls.count == 2)
        #expect(kit.pipeline.cachedImage(for: request) != nil)
    }

    @Test func aPlaceholderIsProcessedLikeThePictureOrNotAtAll() async throws {
        let kit = PipelineKit(versions(Setting(20), maxAge: 3_600))
        func request(_ side: Int?, turned: Bool) throws -> ImageRequest {
            ImageRequest(
                try url("https://a.example/1.png"), targetSize: side.map { PixelSize(width: $0, height: $0) },
                processors: turned ? [.rotate(degrees: 90)] : [])
        }
        kit.pipeline.cache(try gradient(40, 20), for: try request(nil, turned: true))
        #expect(kit.pipeline.cachedVariant(of: try request(10, turned: false)) == nil)
        #expect(kit.pipeline.cachedVariant(of: try request(10, turned: true))?.size.width == 40)
        kit.pipeline.cache(try gradient(20, 40), for: try request(nil, turned: false))
        #expect(kit.pipeline.cachedVariant(of: try request(10, turned: false))?.size.width == 20)
        #expect(kit.pipeline.cachedVariant(of: try request(10, turned: true))?.size.width == 40)
    }
}
