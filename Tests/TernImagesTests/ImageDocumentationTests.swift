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

/// The examples of Documentation/Images.md.
@Suite(.timeLimit(.minutes(1))) struct ImageDocumentationTests {
    @Test func loading() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg(400, 300))
        let (pipeline, url) = (kit.pipeline, try url("https://a.example/photo.jpg"))
        let image = try await pipeline.image(from: url)
        #expect(image.size == PixelSize(width: 400, height: 300))
        var request = ImageRequest(url, targetSize: PixelSize(width: 200, height: 200), contentMode: .fill)
        request.processors = [.roundedCorners(radius: 12)]
        request.priority = .high
        let response = try await pipeline.response(for: request)
        #expect(response.image.size == PixelSize(width: 200, height: 200))
        #expect(response.trace.description.contains("another size: memory hit"))

        let task = pipeline.task(for: request)
        var shown: RasterImage?
        func show(_ image: RasterImage) { shown = image }
        if case .success(let response)? = task.current { show(response.image) }
        #expect(shown != nil)
        var bar = 0.0
        for await progress in task.progress { bar = progress.fractionCompleted ?? 0 }
        #expect(bar == 1)
        task.priority = .veryHigh
        task.isVisible = true
        task.cancel()
    }

    @Test func severalSources() async throws {
        let kit = PipelineKit(
            StubTransport { call in
                call.path == "/mirror.png" ? .data(try Pictures.png()) : .status(503)
            })
        let pipeline = kit.pipeline
        let (mirror, small) = (try url("https://b.example/mirror.png"), try url("https://a.example/small.png"))
        var request = ImageRequest(try url("https://a.example/photo.png"))
        request.alternatives = [.init(mirror), .lowData(small)]
        let response = try await pipeline.response(for: request)
        if let index = response.alternative { print("from", request.alternatives[index].source) }
        #expect(response.alternative == 0)

        struct Settings { var savesData = true }
        let settings = Settings()
        var configuration = ImagePipeline.Configuration()
        configuration.lowDataMode = .init { settings.savesData }
        #expect(configuration.lowDataMode.isOn())
    }

    @Test func imagesOfTheProgram() async throws {
        struct Library {
            func thumbnail(of id: Int, size: PixelSize?) async throws -> RasterImage { try gradient(400, 300) }
            func bytes(of id: Int) async throws -> Data { try Pictures.png() }
        }
        let (library, mail, id) = (Library(), Library(), 7)
        let photo = ImageRequest(
            .image("library/\(id)") { options in
                try await library.thumbnail(of: id, size: options.targetSize)
            })
        let attachment = ImageRequest(.data("mail/\(id)") { try await mail.bytes(of: id) })
        let pipeline = PipelineKit(picture: Data()).pipeline
        #expect(try await pipeline.image(from: photo).size.width == 400)
        #expect(try await pipeline.image(from: attachment).size.width == 40)
    }

    @Test func colors() async throws {
        let kit = PipelineKit(picture: try Pictures.png())
        let (pipeline, url) = (kit.pipeline, try url("https://a.example/photo.png"))
        var request = ImageRequest(url)
        request.options.color = .displayP3
        #expect(try await pipeline.image(from: request).colorSpace == .displayP3)
        request.options.color = .asStored()
        #expect(try await pipeline.image(from: request).bytesPerPixel == 4)
        request.options.color = .asStored(.uint16)
        let image = try await pipeline.image(from: request)
        print(image.component, image.colorSpace, image.bytesPerPixel)
        let shown = try image.converted(to: .sRGB)
        #expect(image.bytesPerPixel == 8 && shown.bytesPerPixel == 4)
    }

    @Test func animationsAndPreviews() async throws {
        let kit = PipelineKit(picture: try Pictures.jpeg()) { $0.decoders = ImageDecoders() }
        let pipeline = kit.pipeline
        var request = ImageRequest(try url("https://a.example/photo.jpg"))
        request.options.progressive = .scans
        func show(_ preview: RasterImage) {}
        for await preview in pipeline.task(for: request).previews { show(preview) }
        let response = try await pipeline.response(for: request)
        if let animation = response.animation {
            print(animation.count, "frames,", animation.loopCount, "loops")
            let first = try await animation.frame(at: 0)
            show(first.image)
            let player = AnimationPlayer(animation)
            for await frame in player.frames { show(frame.image) }
            let file = try animation.frames.encoded(as: .gif)
            #expect(!file.isEmpty)
        }
        #expect(response.animation == nil)
    }

    struct Slides: ImageFrames {
        let pictures: [RasterImage]
        var count: Int { pictures.count }
        var loopCount: Int { 0 }
        var size: PixelSize { pictures[0].size }

        func frame(at index: Int) throws(ImageError) -> ImageFrame {
            ImageFrame(image: pictures[index], duration: .milliseconds(500))
        }
    }

    @Test func framesOfAProgram() throws {
        let file = try Slides(pictures: [gradient(9, 9), gradient(9, 9, alpha: true)]).encoded(as: .gif)
        #expect(ImageFormat(sniffing: file) == .gif)
    }

    @Test func placeholders() throws {
        let image = try gradient(40, 30)
        var shown: RasterImage?
        func show(_ image: RasterImage) { shown = image }
        let hash = try ThumbHash(image).base64
        if let placeholder = ThumbHash(base64: hash) {
            show(placeholder.image())
            print(placeholder.aspectRatio, placeholder.averageColor)
        }
        #expect(shown.map { max($0.size.width, $0.size.height) } == 32)
    }

    @Test func prefetching() async throws {
        let folder = try ScratchFolder()
        let kit = PipelineKit(picture: try Pictures.jpeg(), disk: .folder(folder.url))
        let nextPage = try ["a", "b"].map { try url("https://a.example/\($0)") }
        let prefetcher = ImagePrefetcher(pipeline: kit.pipeline, destination: .disk)
        let batch = prefetcher.prefetch(nextPage)
        var finished = 0
        for await progress in batch.progress { finished = progress.finished }
        batch.cancel()
        #expect(finished == 2)
    }

    @Test func configuration() async throws {
        let folder = try ScratchFolder()
        let picture = try Pictures.png()
        let stub = StubTransport { _ in .data(picture) }
        @Sendable func token() async throws -> String { "Bearer fresh" }
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session(stub: stub)
        configuration.memoryLimit = 200 << 20
        configuration.disk = .folder(folder.url)
        configuration.order = .lastInFirstOut
        configuration.hooks.prepare = { request in
            var request = request
            request.headers["Authorization"] = try await token()
            return request
        }
        let mine = ImagePipeline(configuration: configuration)
        _ = try await mine.image(from: try url("https://a.example/1.png"))
        #expect(stub.calls.first?.headers["Authorization"] == "Bearer fresh")
    }
}
