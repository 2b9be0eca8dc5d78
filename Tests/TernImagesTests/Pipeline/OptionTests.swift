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

#if os(Linux)
/// Tests the effect of each option of a request.
@Suite(.timeLimit(.minutes(1))) struct OptionTests {
    private func kit(
        frames: Int = 3, disk: ImagePipeline.Disk = .none,
        change: (inout ImagePipeline.Configuration) -> Void = { _ in }
    ) -> PipelineKit {
        let all = (0..<frames).map { GIFFile.Frame(rows: [[$0, 1], [1, 0]]) }
        return PipelineKit(picture: Data(GIFFile(width: 2, height: 2, frames: all).bytes), disk: disk, change: change)
    }

    private func request(_ change: (inout ImageRequest.Options) -> Void = { _ in }) throws -> ImageRequest {
        var request = ImageRequest(try url("https://a.example/1.gif"))
        change(&request.options)
        return request
    }

    @Test func anAnimationCanBeRequired() async throws {
        let request = try request { $0.requiresAnimation = true }
        let moving = kit()
        for _ in 0..<2 { #expect(try await moving.pipeline.response(for: request).animation?.frames.count == 3) }
        let still = kit(frames: 1)
        #expect(await still.pipeline.failure(of: request)?.kind == .unsupported)
        // An image in memory is rejected too, and other requests are not affected.
        #expect(await still.pipeline.failure(of: request)?.kind == .unsupported)
        _ = try await still.pipeline.image(from: try self.request())
    }

    @Test func theFirstFrameCanBeHadAlone() async throws {
        let kit = kit()
        let first = try request { $0.decodesFirstFrameOnly = true }
        #expect(try await kit.pipeline.response(for: first).animation == nil)
        #expect(try await kit.pipeline.response(for: try request()).animation?.frames.count == 3)
    }

    @Test func theFirstFrameOnTheDiskNeverStandsForTheAnimation() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = kit(disk: .cache(cache)) { $0.diskContent = .all }
        let first = try request {
            $0.decodesFirstFrameOnly = true
            $0.waitsForStore = true
        }
        #expect(try await kit.pipeline.response(for: first).trace[.processed] == .stored)
        kit.pipeline.memory.removeAll()
        let whole = try await kit.pipeline.response(for: try request())
        #expect(whole.animation?.frames.count == 3)
        #expect(whole.trace[.processed] == .notStored)
        kit.pipeline.memory.removeAll()
        #expect(try await kit.pipeline.response(for: first).source == .processed)
    }

    @Test func allFramesCanBeDecodedBeforeThePictureComes() async throws {
        let kit = kit()
        #expect(!(try await kit.pipeline.response(for: try request()).animation?.frames is PreloadedFrames))
        let preloaded = try request { $0.preloadsAllFrames = true }
        // An image in memory without the bytes does not satisfy the request.
        for _ in 0..<2 { #expect(try await kit.pipeline.response(for: preloaded).animation?.frames is PreloadedFrames) }
        var turned = preloaded
        turned.processors = [.rotate(degrees: 90)]
        turned.options.processesAnimations = true
        #expect(try await kit.pipeline.response(for: turned).animation?.frames is PreloadedFrames)
        #expect(kit.stub.calls.count == 1 || kit.stub.calls.count == 3)
    }

    @Test func framesBeyondTheMemoryLimitAreDecodedOnDemand() async throws {
        // 300 frames of one pixel each, on a canvas of 64 × 64 pixels, take 4.7 MiB.
        let frames = (0..<300).map { GIFFile.Frame(rows: [[$0 % 4]]) }
        let kit = PipelineKit(picture: Data(GIFFile(width: 64, height: 64, frames: frames).bytes))
        let limited = try request {
            $0.preloadsAllFrames = true
            $0.limits.memory = 4 << 20
        }
        let response = try await kit.pipeline.response(for: limited)
        let animation = try #require(response.animation)
        #expect(!(animation.frames is PreloadedFrames))
        #expect(try await animation.frame(at: 299).image.pixel(0, 0) == GIFFile.white)
        // The image in memory answers the request, although its frames are not preloaded.
        #expect(try await kit.pipeline.response(for: limited).source == .memory)
        #expect(kit.stub.calls.count == 1)
        // The processed frames are small enough.
        var cropped = limited
        cropped.processors = [.crop(to: PixelSize(width: 8, height: 8))]
        cropped.options.processesAnimations = true
        #expect(try await kit.pipeline.response(for: cropped).animation?.frames is PreloadedFrames)
        #expect(try await kit.pipeline.response(for: cropped).source == .memory)
        var unlimited = limited
        unlimited.options.limits.memory = 8 << 20
        #expect(try await kit.pipeline.response(for: unlimited).animation?.frames is PreloadedFrames)
    }

    /// Frames that are larger than the decoder states.
    private struct UnderstatedFrames: ImageFrames {
        let image: RasterImage
        var count: Int
        var size: PixelSize
        let loopCount = 0

        func frame(at index: Int) throws(ImageError) -> ImageFrame {
            ImageFrame(image: image, duration: .milliseconds(100))
        }
    }

    @Test func theBytesOfPreloadedFramesAreLimited() throws {
        let (image, one) = (try gradient(10, 10), PixelSize(width: 1, height: 1))
        let four = UnderstatedFrames(image: image, count: 4, size: one)
        #expect(try PreloadedFrames(four, memoryLimit: 1_600)?.byteCount == 1_600)
        #expect(try PreloadedFrames(four, memoryLimit: 1_599) == nil)
        // The products do not fit into a number.
        let (large, huge) = (PixelSize(width: 1 << 30, height: 1 << 30), PixelSize(width: 1 << 40, height: 1 << 40))
        for (count, size) in [(.max, one), (1, huge), (2, large)] {
            let frames = UnderstatedFrames(image: image, count: count, size: size)
            #expect(try PreloadedFrames(frames, memoryLimit: 1 << 40) == nil)
        }
    }

    @Test func processorsReachEveryFrameIfToldTo() async throws {
        let kit = kit()
        var request = try request()
        request.processors = [.rotate(degrees: 90)]
        let plain = try #require(try await kit.pipeline.response(for: request).animation?.frames)
        request.options.processesAnimations = true
        let processed = try #require(try await kit.pipeline.response(for: request).animation?.frames)
        #expect(try plain.frame(at: 2).image.pixel(0, 0) == GIFFile.blue)
        #expect(try processed.frame(at: 2).image.pixel(1, 0) == GIFFile.blue)
    }

    @Test func theBytesComeAlongIfAskedFor() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let picture = try Pictures.png()
        let kit = PipelineKit(picture: picture, disk: .cache(cache)) { $0.diskContent = .all }
        var request = ImageRequest(try url("https://a.example/1.png"))
        #expect(try await kit.pipeline.response(for: request).data == nil)
        request.options.includesData = true
        // The bytes are neither in memory nor beside the processed image on the disk.
        try await kit.pipeline.flush()
        #expect(try await kit.pipeline.response(for: request).data == picture)
        #expect(kit.pipeline.task(for: request).isFinished)
        kit.pipeline.memory.removeAll()
        #expect(try await kit.pipeline.response(for: request).data == picture)
        var turned = request
        turned.processors = [.rotate(degrees: 90)]
        #expect(try await kit.pipeline.response(for: turned).data == picture)
        #expect(kit.stub.calls.count == 1)
    }

    @Test func aResponseMayHaveSoManyBytes() async throws {
        let picture = try Pictures.png(100, 100)
        let kit = PipelineKit(
            StubTransport { call in
                call.path == "/said" ? .data(picture) : .chunks([picture.prefix(50), picture.suffix(from: 50)])
            })
        for path in ["said", "unsaid"] {
            var request = ImageRequest(try url("https://a.example/\(path)"))
            request.options.responseByteLimit = picture.count - 1
            #expect(await kit.pipeline.failure(of: request)?.kind == .limitExceeded)
            // The failure depends on the limit: a request with a higher limit succeeds.
            request.options.responseByteLimit = picture.count
            _ = try await kit.pipeline.image(from: request)
        }
        let data = ImageRequest(.data("mine") { picture })
        var limited = data
        limited.options.responseByteLimit = 10
        #expect(await kit.pipeline.failure(of: limited)?.kind == .limitExceeded)
    }

    @Test func aPictureMayTakeSoManyBytes() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg(200, 100))
        var request = ImageRequest(try url("https://a.example/1.jpg"))
        request.options.decodedByteLimit = 20_000
        let image = try await kit.pipeline.image(from: request)
        #expect(image.byteCount <= 20_000 && image.size.width > 50)
        #expect(kit.pipeline.cachedImage(for: ImageRequest(try url("https://a.example/1.jpg"))) == nil)
    }

    @Test func aPictureCanWaitUntilTheDiskHasIt() async throws {
        let folder = try ScratchFolder()
        let cache = try await DiskCache(folder: folder.url)
        let kit = kit(disk: .cache(cache))
        let response = try await kit.pipeline.response(for: try request { $0.waitsForStore = true })
        #expect(response.trace[.originals] == .stored)
        #expect(try await cache.usage.count == 1)
        #expect(try await cache.usage.queuedBytes == 0)
    }

    @Test func cookiesAreSentAndKeptOnlyIfToldTo() async throws {
        let picture = try Pictures.png()
        let stub = StubTransport { _ in .data(picture, headers: ["Set-Cookie": "id=7; Path=/"]) }
        let kit = PipelineKit(stub) { configuration in
            var session = Session.Configuration()
            session.cookies = .separate
            configuration.session = Session(configuration: session, stub: stub)
        }
        func load(_ name: String, _ handlesCookies: Bool) async throws -> String? {
            var request = ImageRequest(try url("https://a.example/\(name)"))
            request.options.handlesCookies = handlesCookies
            _ = try await kit.pipeline.image(from: request)
            return stub.calls.last?.headers["Cookie"]
        }
        #expect(try await load("1", false) == nil)
        #expect(try await load("2", true) == nil)
        #expect(try await load("3", true) == "id=7")
        #expect(try await load("4", false) == nil)
    }

    @Test func aFileThatIsCutShortGivesWhatThereIsIfToldTo() async throws {
        let picture = try Pictures.jpeg(200, 200)
        let kit = PipelineKit(StubTransport { _ in .data(picture.prefix(picture.count / 2)) })
        var request = ImageRequest(try url("https://a.example/1.jpg"))
        #expect(await kit.pipeline.failure(of: request)?.kind == .truncated)
        // A failure without partial images does not answer a request that allows them.
        request.options.allowsPartial = true
        let response = try await kit.pipeline.response(for: request)
        #expect(response.image.metadata.isPartial)
        #expect(response.trace[.memory] == .notStored)
        #expect(kit.pipeline.cachedImage(for: request) == nil)
    }

    @Test func continuingInTheBackgroundChangesNothingOnLinux() async throws {
        let kit = kit()
        _ = try await kit.pipeline.image(from: try request { $0.continuesInBackground = true })
        #expect(kit.pipeline.task(for: try request()).isFinished)
    }
}
#endif
