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

@Suite(.timeLimit(.minutes(1))) struct ImageDiskTests {
    @Test func fetchedBytesAreOnTheDiskForTheNextPipeline() async throws {
        let folder = try ScratchFolder()
        let request = ImageRequest(try url("https://a.example/1.jpg"), targetSize: PixelSize(width: 20, height: 20))
        let first = PipelineKit(picture: try Pictures.jpeg(60, 60), disk: .folder(folder.url))
        #expect(try await first.pipeline.response(for: request).trace[.originals] == .stored)
        try await first.pipeline.flush()
        try await first.pipeline.disk.cache?.close()
        let second = PipelineKit(StubTransport([:]), disk: .folder(folder.url))
        let again = try await second.pipeline.response(for: request)
        #expect(again.source == .original)
        #expect(again.image.size == PixelSize(width: 20, height: 20))
        // Every other size is made from the same bytes.
        let other = ImageRequest(try url("https://a.example/1.jpg"), targetSize: PixelSize(width: 50, height: 50))
        #expect(try await second.pipeline.response(for: other).source == .original)
        #expect(second.stub.calls.isEmpty)
    }

    @Test func memoryOnlyLeavesTheDiskAlone() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache))
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.caching = .memoryOnly
        let response = try await kit.pipeline.response(for: request)
        #expect(response.trace[.originals] == .skipped)
        try await kit.pipeline.flush()
        #expect(try await cache.usage.count == 0)
        #expect(await kit.pipeline.isOnDisk(request) == false)
    }

    @Test func processedPicturesAreKeptWhereTheyAreAskedFor() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) { $0.diskContent = .processed }
        let counter = Counter()
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.processors = [CountingProcessor(name: "count", counter: counter)]
        request.options.waitsForStore = true
        #expect(try await kit.pipeline.response(for: request).trace[.processed] == .stored)
        // The image and its parent are stored, the bytes are not.
        try await kit.pipeline.flush()
        #expect(cache.contains(kit.pipeline.key(of: request).text))
        #expect(!cache.contains(DiskTier.encodedKey(request.source.key)))
        kit.pipeline.memory.removeAll()
        #expect(try await kit.pipeline.response(for: request).source == .processed)
        #expect(counter.value == 1)
        #expect(kit.stub.calls.count == 1)
    }

    @Test(arguments: [false, true])
    func eachCacheOfTheDiskIsReadAndWrittenAsTheRequestSays(isProcessed: Bool) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) {
            $0.diskContent = isProcessed ? .processed : .original
        }
        var request = ImageRequest(try url("https://a.example/1.png"))
        if isProcessed { request.processors = [.rotate(degrees: 90)] }
        /// Loads with one kind of access, and returns the source of the image and whether the disk has it.
        func load(_ access: ImageRequest.Caching.Access) async throws -> (ImageResponse.Source, isStored: Bool) {
            request.caching = ImageRequest.Caching(
                memory: [], processed: isProcessed ? access : [], originals: isProcessed ? [] : access)
            let response = try await kit.pipeline.response(for: request)
            try await kit.pipeline.flush()
            return (response.source, try await cache.usage.count > 0)
        }
        #expect(try await load(.read) == (.network, false))
        #expect(try await load(.write) == (.network, true))
        #expect(try await load(.write) == (.network, true))
        #expect(try await load([]) == (.network, true))
        #expect(try await load(.read) == (isProcessed ? .processed : .original, true))
        #expect(kit.stub.calls.count == 4)
    }

    @Test func unstorableResponseIsNotStored() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(
            picture: try Pictures.png(), headers: ["Cache-Control": "no-store"], disk: .cache(cache))
        let response = try await kit.pipeline.response(for: ImageRequest(try url("https://a.example/1.png")))
        #expect(response.trace.description.contains("original: not stored on disk (no-store)"))
        #expect(try await cache.usage.count == 0)
    }

    @Test func bytesThatDoNotDecodeAreFetchedAnewAndReplaced() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        try await cache.insert(Data("no picture".utf8), for: DiskTier.encodedKey(request.source.key))
        let response = try await kit.pipeline.response(for: request)
        #expect(response.source == .network)
        try await kit.pipeline.flush()
        #expect(try await cache.value(for: DiskTier.encodedKey(request.source.key)) == (try Pictures.png()))
    }

    @Test func thePipelineWorksWithoutAnUnavailableDisk() async throws {
        let folder = try ScratchFolder()
        let owner = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .folder(folder.url))
        let response = try await kit.pipeline.response(for: ImageRequest(try url("https://a.example/1.png")))
        #expect(response.source == .network)
        let step = response.trace.steps.first { $0.stage == .originals }
        #expect(step?.outcome == .skipped && step?.detail.contains("in-use") == true)
        try await owner.close()
    }

    @Test func pipelinesOfOneFolderShareItsCache() async throws {
        let folder = try ScratchFolder()
        let first = PipelineKit(picture: try Pictures.png(), disk: .folder(folder.url))
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await first.pipeline.image(from: request)
        let second = PipelineKit(StubTransport([:]), disk: .folder(folder.url))
        #expect(try await second.pipeline.response(for: request).source == .original)
        #expect(await second.pipeline.disk.cache === first.pipeline.disk.cache)
    }

    @Test func removingARequestRemovesAllThatIsKeptOfIt() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.jpeg(50, 50), disk: .cache(cache))
        let small = ImageRequest(try url("https://a.example/1.jpg"), targetSize: PixelSize(width: 20, height: 20))
        _ = try await kit.pipeline.image(from: small)
        let whole = ImageRequest(try url("https://a.example/1.jpg"))
        try await kit.pipeline.remove(whole)
        #expect(kit.pipeline.cachedImage(for: small) == nil)
        #expect(await kit.pipeline.isOnDisk(whole) == false)
    }

    @Test func removingARequestRemovesItsProcessedImagesOfEverySizeAndColor() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.jpeg(50, 50), disk: .cache(cache)) { $0.diskContent = .all }
        let address = try url("https://a.example/1.jpg")
        var small = ImageRequest(address, targetSize: PixelSize(width: 20, height: 20))
        small.options.waitsForStore = true
        var wide = small
        wide.options.color = .displayP3
        var round = small
        round.processors = [.circle()]
        var other = ImageRequest(try url("https://a.example/10.jpg"), targetSize: PixelSize(width: 20, height: 20))
        other.options.waitsForStore = true
        let requests = [small, wide, round]
        for request in requests + [other] { _ = try await kit.pipeline.image(from: request) }
        for request in requests { #expect(cache.contains(kit.pipeline.key(of: request).text)) }

        try await kit.pipeline.remove(ImageRequest(address))
        for request in requests {
            #expect(!cache.contains(kit.pipeline.key(of: request).text))
            #expect(kit.pipeline.cachedImage(for: request) == nil)
        }
        #expect(cache.contains(kit.pipeline.key(of: other).text))
        #expect(kit.pipeline.cachedImage(for: other) != nil)
    }

    // MARK: Revalidation

    /// Answers by entity tag, with an image whose width is the version. A changed image is sent once `gate` is open.
    private func versions(
        _ version: Setting, maxAge: Int = 0, changesAfter gate: LoopbackServer.Gate? = nil
    ) -> StubTransport {
        StubTransport { call in
            let now = version.value
            let headers: Headers = ["ETag": "\"\(now)\"", "Cache-Control": "max-age=\(maxAge)"]
            let known = call.headers["If-None-Match"]
            if known == "\"\(now)\"" { return .status(304, headers: headers) }
            if known != nil { try await gate?.wait() }
            return .data(try Pictures.png(now, 5), headers: headers)
        }
    }

    private func widths(_ task: ImageTask) async -> [Int] {
        var widths: [Int] = []
        for await response in task.responses { widths.append(response.image.size.width) }
        return widths
    }

    @Test(arguments: [false, true])
    func aStalePictureIsDeliveredAtOnceAndASecondTimeOnlyIfChanged(fromDisk: Bool) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let (version, gate) = (Setting(10), LoopbackServer.Gate())
        let kit = PipelineKit(versions(version, changesAfter: gate), disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        func forget() { if fromDisk { kit.pipeline.memory.removeAll() } }
        // Unchanged: one response, one request.
        forget()
        let second = kit.pipeline.task(for: request)
        #expect(try await second.response.isStale)
        #expect(await widths(second) == [10])
        #expect(kit.stub.calls.count == 2)
        #expect(kit.stub.calls[1].headers["If-None-Match"] == "\"10\"")
        // Changed: the old image first, then the new one, once each.
        version.value = 20
        forget()
        let third = kit.pipeline.task(for: request)
        #expect(try await third.response.image.size.width == 10)
        gate.open()
        #expect(await widths(third).last == 20)
        #expect(kit.pipeline.cachedImage(for: request)?.size.width == 20)
        try await kit.pipeline.flush()
        kit.pipeline.memory.removeAll()
        #expect(try await kit.pipeline.image(from: request).size.width == 20)
    }

    @Test func aFreshImageIsRevalidatedOnlyOnRequest() async throws {
        let (version, gate) = (Setting(10), LoopbackServer.Gate())
        let kit = PipelineKit(versions(version, maxAge: 3_600, changesAfter: gate))
        var request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        let hit = kit.pipeline.task(for: request)
        #expect(hit.isFinished)
        #expect(kit.stub.calls.count == 1)
        request.options.revalidation = .always
        version.value = 20
        let refreshed = kit.pipeline.task(for: request)
        #expect(try refreshed.current?.get().image.size.width == 10)
        gate.open()
        #expect(await widths(refreshed).last == 20)
        #expect(kit.stub.calls.count == 2)
    }

    @Test func aRevalidationThatFailsLeavesThePictureAsItIs() async throws {
        let picture = try Pictures.png()
        let stub = StubTransport { call in
            call.index == 0 ? .data(picture, headers: ["Cache-Control": "max-age=0"]) : .status(500)
        }
        let kit = PipelineKit(stub)
        let request = ImageRequest(try url("https://a.example/1.png"))
        _ = try await kit.pipeline.image(from: request)
        let task = kit.pipeline.task(for: request)
        #expect(await widths(task) == [40])
        var end: ImageError?
        for await event in task.events { if case .finished(let error) = event { end = error } }
        #expect(end == nil)
        #expect(kit.pipeline.cachedImage(for: request) != nil)
    }

    @Test(arguments: [false, true])
    func beforeDeliveryRevalidatesAStaleImage(fromDisk: Bool) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let version = Setting(10)
        let kit = PipelineKit(versions(version), disk: .cache(cache))
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.revalidation = .beforeDelivery
        #expect(try await kit.pipeline.response(for: request).source == .network)
        if fromDisk { kit.pipeline.memory.removeAll() }
        let same = try await kit.pipeline.response(for: request)
        #expect(same.source == .revalidated && !same.isStale)
        #expect(same.image.size.width == 10)
        version.value = 20
        if fromDisk { kit.pipeline.memory.removeAll() }
        let task = kit.pipeline.task(for: request)
        #expect(await widths(task) == [20])
        #expect(kit.stub.calls.count == 3)
    }

    @Test func aRevalidatedProcessedImageIsRemovedWithItsSource() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(versions(Setting(10)), disk: .cache(cache)) { $0.diskContent = .all }
        let address = try url("https://a.example/1.png")
        var request = ImageRequest(address)
        request.processors = [.circle()]
        request.options.revalidation = .beforeDelivery
        request.options.waitsForStore = true
        _ = try await kit.pipeline.response(for: request)
        #expect(try await kit.pipeline.response(for: request).source == .revalidated)
        try await kit.pipeline.flush()
        #expect(cache.contains(kit.pipeline.key(of: request).text))
        try await kit.pipeline.remove(ImageRequest(address))
        #expect(!cache.contains(kit.pipeline.key(of: request).text))
    }

    @Test func imagesThatCannotBeRevalidatedAreDeliveredStale() async throws {
        let picture = try Pictures.png()
        let stub = StubTransport { call in
            call.index == 0 ? .data(picture, headers: ["Cache-Control": "max-age=0", "ETag": "\"1\""]) : .status(503)
        }
        let kit = PipelineKit(stub)
        var request = ImageRequest(try url("https://a.example/1.png"))
        request.options.revalidation = .beforeDelivery
        _ = try await kit.pipeline.image(from: request)
        let stale = try await kit.pipeline.response(for: request)
        #expect(stale.isStale && stale.source == .memory)
        #expect(stale.trace[.network] == .failed)
    }

    // MARK: Parts

    @Test func aBrokenTransferResumesEvenAfterARestart() async throws {
        let folder = try ScratchFolder()
        let picture = try Pictures.png(300, 200)
        let cut = picture.count / 3
        let request = ImageRequest(try url("https://a.example/1.png"))
        let breaking = PipelineKit(
            StubTransport { _ in
                StubTransport.Answer(
                    headers: ["Content-Length": "\(picture.count)", "ETag": "\"v1\""],
                    steps: [.chunk(picture.prefix(cut)), .fail(.init(.connectionLost))])
            }, disk: .folder(folder.url))
        let error = await #expect(throws: ImageError.self) { _ = try await breaking.pipeline.image(from: request) }
        #expect(error?.network?.kind == .connectionLost)
        try await breaking.pipeline.disk.cache?.close()
        let kit = PipelineKit(
            StubTransport { call in
                guard call.headers["Range"] == "bytes=\(cut)-", call.headers["If-Range"] == "\"v1\"" else {
                    return .status(500)
                }
                let range = "bytes \(cut)-\(picture.count - 1)/\(picture.count)"
                return .data(
                    picture.suffix(from: cut), status: 206, headers: ["Content-Range": range, "ETag": "\"v1\""])
            }, disk: .folder(folder.url))
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.size == PixelSize(width: 300, height: 200))
        #expect(response.trace.description.contains("\(cut) of them from before"))
        try await kit.pipeline.flush()
        #expect(try await kit.pipeline.disk.cache?.value(for: DiskTier.encodedKey(request.source.key)) == picture)
        #expect(await kit.pipeline.disk.cache?.contains(PartialImage.key(request.source.key)) == false)
    }

    /// A server that ignores the range, one that sends another part, one whose image has changed, and one that refuses.
    @Test(arguments: ["whole", "elsewhere", "changed", "refused"])
    func aMismatchedPartIsNeverJoined(_ behaviour: String) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let kit = PipelineKit(
            StubTransport { call in
                guard call.headers.contains("Range") else { return .data(picture, headers: ["ETag": "\"v2\""]) }
                let rest = picture.suffix(from: 10)
                switch behaviour {
                case "elsewhere":
                    let range = "bytes 9-\(picture.count - 1)/\(picture.count)"
                    return .data(rest, status: 206, headers: ["Content-Range": range])
                case "changed":
                    let range = "bytes 10-\(picture.count - 1)/\(picture.count)"
                    return .data(rest, status: 206, headers: ["Content-Range": range, "ETag": "\"v2\""])
                case "refused":
                    return .status(416, headers: ["Content-Range": "bytes */\(picture.count)"])
                default:
                    return .data(picture, headers: ["ETag": "\"v2\""])
                }
            }, disk: .cache(cache))
        let request = ImageRequest(try url("https://a.example/1.png"))
        let part = PartialImage(data: Data(repeating: 7, count: 10), validator: "\"v1\"", length: nil)
        try await cache.insert(part.data, for: PartialImage.key(request.source.key), metadata: part.metadata)
        #expect(try await kit.pipeline.image(from: request).size == PixelSize(width: 300, height: 200))
        #expect(kit.stub.calls.count == (behaviour == "whole" ? 1 : 2))
    }

    /// A response without a part before it, one that replaces a part, one that continues it, and one that is too large.
    @Test(arguments: ["first", "whole", "rest", "large"])
    func nothingOfAnInterruptedResponseWithNoStoreIsOnTheDisk(_ kind: String) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png(300, 200)
        let kit = PipelineKit(
            StubTransport { call in
                #expect(call.headers["Range"] == (kind == "first" ? nil : "bytes=10-"))
                var headers: Headers = ["ETag": "\"v1\"", "Cache-Control": "max-age=60, no-store"]
                if kind == "rest" { headers["Content-Range"] = "bytes 10-\(picture.count - 1)/\(picture.count)" }
                return StubTransport.Answer(
                    status: kind == "rest" ? 206 : 200, headers: headers,
                    steps: [.chunk(picture[10..<100]), .fail(.init(.connectionLost))])
            }, disk: .cache(cache))
        var request = ImageRequest(try url("https://a.example/1.png"))
        if kind == "large" { request.options.responseByteLimit = 50 }
        if kind != "first" {
            let part = PartialImage(data: picture.prefix(10), validator: "\"v1\"", length: nil)
            try await cache.insert(part.data, for: PartialImage.key(request.source.key), metadata: part.metadata)
        }
        #expect(await kit.pipeline.failure(of: request)?.kind == (kind == "large" ? .limitExceeded : .network))
        #expect(try await cache.usage.count == 0)
    }

    /// The file of a thumbnail does not tell the size of its original, which decides what can be made from it.
    @Test func aThumbnailFromTheDiskIsNotTheImage() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) { $0.diskContent = .processed }
        var small = ImageRequest(
            try url("https://a.example/1.png"), targetSize: PixelSize(width: 10, height: 10), contentMode: .fill)
        small.options.waitsForStore = true
        _ = try await kit.pipeline.response(for: small)
        kit.pipeline.memory.removeAll()
        let thumbnail = try await kit.pipeline.response(for: small)
        #expect(thumbnail.source == .processed && thumbnail.image.size == PixelSize(width: 10, height: 10))
        #expect(thumbnail.image.metadata.originalSize == PixelSize(width: 40, height: 30))
        let whole = try await kit.pipeline.response(for: ImageRequest(try url("https://a.example/1.png")))
        #expect(whole.image.size == PixelSize(width: 40, height: 30))
    }

    /// The first would be in clear, and the second would stay when the file changes.
    @Test(arguments: [true, false]) func secretAndLocalPicturesAreNotStoredProcessed(isFile: Bool) async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url.appending(path: "cache"))
        let kit = PipelineKit(picture: try Pictures.png(), disk: .cache(cache)) { configuration in
            configuration.diskContent = .processed
            if !isFile { configuration.hooks.decrypt = { $0 } }
        }
        let file = folder.url.appending(path: "1.png")
        try Pictures.png().write(to: file)
        var request = ImageRequest(isFile ? file : try url("https://a.example/1.png"))
        request.options.waitsForStore = true
        let response = try await kit.pipeline.response(for: request)
        #expect(response.trace[.processed] == .notStored)
        try await kit.pipeline.flush()
        #expect(try await cache.usage.count == 0)
    }
}
