import Tern
import TernConcurrency
import TernImages
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests cached images that are shown at once and revalidated, and previews.
@MainActor
@Suite("Image views: refresh and previews", .timeLimit(.minutes(1)))
struct ImageRefreshTests {
    /// Serves the image of `version` with an entity tag, and answers a revalidation a second later.
    @MainActor
    private final class Changing {
        let version = Version()
        let clock = ManualClock()
        let stub: StubTransport
        let pipeline: ImagePipeline
        let request = ImageRequest(URL(string: "https://a.example/photo"))

        init(disk: ImagePipeline.Disk = .none, delay: Duration = .seconds(1)) {
            stub = StubTransport(clock: clock) { [version] call in
                let tag = "\"\(version.number)\""
                let headers: Headers = ["ETag": tag, "Cache-Control": "max-age=0"]
                guard let known = call.headers["If-None-Match"] else {
                    return .data(PhotoDecoder.file(version.number), headers: headers)
                }
                let answer: StubTransport.Answer =
                    known == tag
                    ? .status(304, headers: headers) : .data(PhotoDecoder.file(version.number), headers: headers)
                return answer.delayed(by: delay)
            }
            pipeline = Photos.pipeline(stub) { $0.disk = disk }
        }

        /// Lets the server answer a revalidation.
        func answer() async throws {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
    }

    private final class Version: Sendable {
        private let lock = Lock(40)
        var number: Int {
            get { lock.withLock { $0 } }
            set { lock.withLock { $0 = newValue } }
        }
    }

    private var refreshing: ImageDisplay {
        var display = ImageDisplay(placeholder: .custom("grey"))
        display.revalidatesCachedImage = true
        return display
    }

    @Test func anImageInMemoryIsShownAtOnceAndAgainOnlyIfItHasChanged() async throws {
        let changing = Changing()
        _ = try await changing.pipeline.image(from: changing.request)
        let photo = Photo(changing.pipeline)
        let unchanged = photo.loadImage(from: changing.request, display: refreshing)
        #expect(photo.lines == ["40 memory"])
        #expect(unchanged.isActive)
        try await changing.answer()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["40 memory", "ended"])
        #expect(try await unchanged.value.image.size.width == 40)

        changing.version.number = 50
        photo.log.removeAll()
        let changed = photo.loadImage(from: changing.request, display: refreshing)
        #expect(photo.lines == ["40 memory"])
        try await changing.answer()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines == ["40 memory", "50 network slowly", "ended"])
        #expect(try await changed.value.image.size.width == 50)
        #expect(changing.stub.calls.count == 3)
    }

    @Test func anImageOnTheDiskStandsInOnceItIsRead() async throws {
        let name = "tern-views-\(UInt64.random(in: 0 ... .max))"
        let folder = FileManager.default.temporaryDirectory.appending(path: name)
        // `try?`: nothing depends on the removal of the folder.
        defer { try? FileManager.default.removeItem(at: folder) }
        let changing = Changing(disk: .folder(folder))
        _ = try await changing.pipeline.image(from: changing.request)
        try await changing.pipeline.flush()
        var request = changing.request
        request.caching.memory = .write
        changing.version.number = 50
        let photo = Photo(changing.pipeline)
        photo.loadImage(from: request, display: refreshing)
        #expect(!photo.lines.contains("40 original"))
        await photo.log.wait { $0.last?.hasPrefix("40") ?? false }
        try await changing.answer()
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines.filter { $0.first?.isNumber ?? false } == ["40 original slowly", "50 network slowly"])
    }

    @Test func theChangedPictureIsNeverLostHoweverSoonItComes() async throws {
        let changing = Changing(delay: .zero)
        _ = try await changing.pipeline.image(from: changing.request)
        let photo = Photo(changing.pipeline)
        for width in 50..<250 {
            changing.version.number = width
            let load = photo.loadImage(from: changing.request, display: refreshing)
            #expect(try await load.value.image.size.width == width)
            #expect(photo.lines.last { $0 != "ended" } == "\(width) network slowly")
        }
    }

    @Test func whileARefreshGoesOnAViewThatAsksAgainIsShownThePictureAgain() async throws {
        let changing = Changing()
        _ = try await changing.pipeline.image(from: changing.request)
        let photo = Photo(changing.pipeline)
        let first = photo.loadImage(from: changing.request, display: refreshing)
        // The cell may have been cleared in between, because it was reused.
        let second = photo.loadImage(from: changing.request, display: refreshing)
        #expect(photo.lines == ["40 memory", "40 memory"] && !first.isActive && second.isActive)
        // The revalidation of the first load may still be running, without a caller.
        while photo.lines.last != "ended", !Task.isCancelled {
            changing.clock.advance(by: .seconds(1))
            await Task.yield()
        }
        #expect(photo.lines.count == 3)
    }

    @Test func aRefreshThatIsCancelledShowsNothingMore() async throws {
        let changing = Changing()
        _ = try await changing.pipeline.image(from: changing.request)
        changing.version.number = 50
        let photo = Photo(changing.pipeline)
        let load = photo.loadImage(from: changing.request, display: refreshing)
        try await changing.clock.waitForSleepers(1)
        photo.cancelImageLoad()
        changing.clock.advance(by: .seconds(1))
        #expect(await load.failure() == .cancelled)
        await settle()
        #expect(photo.lines == ["40 memory"])
    }

    #if os(Linux)
    @Test func previewsAreShownBeforeThePicture() async throws {
        let size = PixelSize(width: 320, height: 240)
        var bytes: [UInt8] = []
        for pixel in 0..<size.pixelCount { bytes += [UInt8(pixel % 256), UInt8(pixel / 320), 128, 255] }
        let raster = try #require(RasterImage(size: size, premultiplied: bytes))
        let file = try raster.encoded(as: .jpeg(progressive: true))
        let part = file.count / 12 + 1
        let chunks = stride(from: 0, to: file.count, by: part).map { file[$0..<min($0 + part, file.count)] }
        let clock = ManualClock()
        let stub = StubTransport(clock: clock) { _ in .chunks(chunks, interval: .seconds(1)) }
        let photo = Photo(Photos.pipeline(stub) { $0.decoders = ImageDecoders() })
        var request = ImageRequest(URL(string: "https://a.example/1.jpg"))
        request.options.progressive = .scans
        photo.loadImage(from: request)
        // Five pieces contain the end of at least one scan. The next ones arrive after a preview of them was shown.
        for (pieces, previews) in [(5, 1), (5, 2), (1, 2)] {
            for _ in 0..<pieces {
                try await clock.waitForSleepers(1)
                clock.advance(by: .seconds(1))
            }
            await photo.log.wait { $0.filter { $0.hasPrefix("320 preview") }.count >= previews }
        }
        await photo.log.wait { $0.last == "ended" }
        let shown = photo.lines.filter { $0.hasPrefix("320") }
        #expect(shown.count >= 3 && shown.last == "320 network slowly")
        #expect(shown.first == "320 preview 1")
        #expect(shown.dropLast().allSatisfy { $0.hasPrefix("320 preview") })
        #expect(photo.lines.suffix(3) == ["end", "320 network slowly", "ended"])
    }
    #endif
}
