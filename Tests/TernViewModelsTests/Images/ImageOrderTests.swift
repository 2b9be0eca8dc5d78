import Tern
import TernImages
import TernTesting
import TernViewModels
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Tests the order of what a view shows: hash, previews, image; failure and another try; another source; and a cell that
/// is used again.
@MainActor
@Suite("Image views: the order", .timeLimit(.minutes(1)))
struct ImageOrderTests {
    /// The hash of a picture, whose placeholder is 32 pixels wide.
    private func hash() throws -> String {
        let color = ImageColor(red: 9, green: 90, blue: 200)
        return try ThumbHash(RasterImage(color: color, size: PixelSize(width: 8, height: 6))).base64
    }

    private func display() throws -> ImageDisplay {
        ImageDisplay(placeholder: .thumbHash(try hash()), failure: .custom("torn"), current: .cleared)
    }

    #if os(Linux)
    @Test func hashPreviewsAndImageFollowEachOtherWithOneTransition() async throws {
        let size = PixelSize(width: 320, height: 240)
        var bytes: [UInt8] = []
        for pixel in 0..<size.pixelCount { bytes += [UInt8(pixel % 256), UInt8(pixel / 320), 128, 255] }
        let raster = try #require(RasterImage(size: size, premultiplied: bytes))
        let file = try raster.encoded(as: .jpeg(progressive: true))
        let part = file.count / 12 + 1
        let chunks = stride(from: 0, to: file.count, by: part).map { file[$0..<min($0 + part, file.count)] }
        let clock = ManualClock()
        let stub = StubTransport(clock: clock) { _ in .chunks(chunks, interval: .seconds(1)) }
        let pipeline = Photos.pipeline(stub) { $0.decoders = ImageDecoders() }
        let photo = Photo(pipeline)
        var request = ImageRequest(URL(string: "https://a.example/1.jpg"))
        request.options.progressive = .scans
        photo.loadImage(from: request, display: try display())
        for step in 1...11 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
            if step == 6 { await photo.log.wait { $0.contains("320 preview 1") } }
        }
        await photo.log.wait { $0.last == "ended" }
        #expect(photo.lines.prefix(3) == ["32 placeholder", "begin", "320 preview 1"])
        #expect(photo.lines.suffix(3) == ["end", "320 network slowly", "ended"])
        #expect(photo.lines.dropFirst(2).dropLast(3).allSatisfy { $0.hasPrefix("320 preview ") })
        #expect(photo.lines.filter { $0.hasSuffix("slowly") }.count == 1)
        // From memory, the image alone.
        let again = Photo(pipeline)
        again.loadImage(from: request, display: try display())
        #expect(again.lines == ["320 memory", "ended"])
    }
    #endif

    @Test func aFailureIsShownAndAnotherTryShowsTheImage() async throws {
        let isBack = Log<Bool>()
        let stub = StubTransport { _ in
            await isBack.events.isEmpty ? .status(404) : .data(PhotoDecoder.file(40))
        }
        let photo = Photo(Photos.pipeline(stub))
        var request = ImageRequest(URL(string: "https://a.example/40"))
        #expect(await photo.loadImage(from: request, display: try display()).failure() == .network)
        let waiting = ["32 placeholder", "begin", "end"]
        #expect(photo.lines == waiting + ["torn failure network", "failed network"])
        isBack.append(true)
        // Without the option, the pipeline remembers the failure. It can be there at once.
        #expect(await photo.loadImage(from: request, display: try display()).failure() == .failedBefore)
        #expect(photo.lines.suffix(2) == ["torn failure failed-before", "failed failed-before"])
        photo.log.removeAll()
        request.options.retriesFailed = true
        #expect(await photo.loadImage(from: request, display: try display()).failure() == nil)
        #expect(photo.lines == waiting + ["40 network slowly", "ended"])
    }

    @Test func anotherSourceIsShownWithoutAFailureBefore() async throws {
        let photos = Photos()
        let photo = Photo(photos.pipeline)
        var request = photos.request("/none")
        request.alternatives = [.init(photos.url("/40"))]
        let load = photo.loadImage(from: request, display: try display())
        #expect(try await load.value.alternative == 0 && load.url == photos.url("/none"))
        #expect(photo.lines == ["32 placeholder", "begin", "end", "40 network slowly", "ended"])
        // The same load again, and one with another alternative, which is another load.
        photo.log.removeAll()
        photo.loadImage(from: request, display: try display())
        #expect(photo.lines == ["40 memory", "ended"])
        // Without a URL, the alternative counts.
        photo.log.removeAll()
        request.source = ImageRequest.Source(nil)
        photo.loadImage(from: request, display: try display())
        #expect(photo.lines == ["40 memory", "ended"])
        photo.log.removeAll()
        request.alternatives = [.init(nil)]
        photo.loadImage(from: request, display: ImageDisplay(fallback: .custom("nobody")))
        #expect(photo.lines == ["nobody failure invalid-url", "failed invalid-url"])
    }

    @Test func requestsWithOtherAlternativesAreOtherLoads() async throws {
        let photos = Photos()
        let photo = Photo(photos.pipeline)
        var request = photos.request("/slow/40")
        let first = photo.loadImage(from: request)
        request.alternatives = [.init(photos.url("/41"))]
        let second = photo.loadImage(from: request)
        #expect(first !== second && photo.loadImage(from: request) === second)
        request.alternatives[0].isForLowData = true
        #expect(photo.loadImage(from: request) !== second)
        #expect(await second.failure() == .cancelled)
        photo.cancelImageLoad()
    }

    /// Cells that a list uses again in any order, with photos that come late, fail, or are in memory.
    @Test(arguments: 1...2) func aCellNeverShowsThePhotoOfAnEarlierRow(_ seed: Int) async throws {
        let photos = Photos()
        for width in 40..<44 { try await photos.load("/\(width)") }
        var random = SeededGenerator(seed: seed)
        let cells = (0..<5).map { _ in Photo(photos.pipeline) }
        var rows = [Int?](repeating: nil, count: cells.count)
        for _ in 0..<60 {
            let (cell, row) = (Int.random(in: 0..<cells.count, using: &random), Int.random(in: 0..<12, using: &random))
            // Four rows are in memory, four come late, and four do not exist.
            let path = row < 4 ? "/\(40 + row)" : row < 8 ? "/slow/\(40 + row)" : "/none"
            rows[cell] = row
            cells[cell].log.removeAll()
            var request = photos.request(path)
            if row < 8 { request.options.revalidation = .never }
            cells[cell].loadImage(from: request, display: try display())
            if Bool.random(using: &random) { await Task.yield() }
        }
        await photos.whileSlowOnesCome {
            for (cell, row) in zip(cells, rows) where row != nil {
                await cell.log.wait { $0.last?.hasPrefix("ended") == true || $0.last?.hasPrefix("failed") == true }
            }
        }
        for (cell, row) in zip(cells, rows) {
            guard let row else { continue }
            // Since its last row began: the hash at most, and then its own photo or the failure.
            let shown = cell.lines.filter { $0.first?.isNumber == true && !$0.hasPrefix("32 ") }
            #expect(row < 8 ? shown.allSatisfy { $0.hasPrefix("\(40 + row) ") } && shown.count == 1 : shown.isEmpty)
            if row >= 8 { #expect(cell.lines.contains { $0.hasPrefix("torn failure") }) }
        }
    }
}
