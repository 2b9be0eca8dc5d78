#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Animations that are encoded and decoded again.
@Suite(.timeLimit(.minutes(1))) struct AnimationEncodingTests {
    /// The frames of a program.
    struct Frames: ImageFrames {
        var frames: [ImageFrame]
        var loopCount = 0
        var size: PixelSize

        /// - Parameter pixel: The premultiplied pixel at an index of a frame.
        init(
            _ count: Int, _ width: Int, _ height: Int, milliseconds: Int = 100,
            pixel: (_ frame: Int, _ index: Int) -> [UInt8]
        ) throws {
            size = PixelSize(width: width, height: height)
            frames = try (0..<count).map { frame in
                let bytes = (0..<width * height).flatMap { pixel(frame, $0) }
                let image = try #require(
                    RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes))
                return ImageFrame(image: image, duration: .milliseconds(milliseconds))
            }
        }

        var count: Int { frames.count }

        func frame(at index: Int) throws(ImageError) -> ImageFrame { frames[index] }
    }

    private func frames(of file: Data) throws -> [ImageFrame] {
        let decoder = CodecImageDecoder()
        guard let animation = try decoder.animation(from: file, options: ImageDecodingOptions()) else {
            return [
                ImageFrame(
                    image: try decoder.image(from: file, options: ImageDecodingOptions()), duration: .zero)
            ]
        }
        return try (0..<animation.count).map { try animation.frame(at: $0) }
    }

    private func loopCount(of file: Data) throws -> Int? {
        try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions())?.loopCount
    }

    /// Returns the mean of the squared differences.
    private func error(_ one: RasterImage, _ other: RasterImage) -> Double {
        let squares = zip(one.pixels.bytes, other.pixels.bytes).map { (Int($0) - Int($1)) * (Int($0) - Int($1)) }
        return Double(squares.reduce(0, +)) / Double(max(1, squares.count))
    }

    private static func photo(_ frame: Int, _ index: Int) -> [UInt8] {
        let (x, y) = (index % 96, index / 96)
        return [UInt8((x * 2 + frame * 9) % 256), UInt8(y * 4 % 256), UInt8((x * y / 20) % 256), 255]
    }

    // MARK: GIF

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable () throws -> Frames

        init(_ name: String, _ make: @escaping @Sendable () throws -> Frames) {
            testDescription = name
            self.make = make
        }
    }

    /// Each of these has colours and alpha that GIF can hold.
    static let exactRows: [Row] = [
        Row("one pixel changes") { try Frames(4, 20, 10) { $1 == $0 * 7 ? [255, 0, 0, 255] : [9, 9, 9, 255] } },
        Row("nothing changes") { try Frames(3, 5, 5) { _, _ in [1, 2, 3, 255] } },
        Row("everything changes") { try Frames(3, 16, 16) { [UInt8($0 * 50), UInt8($1), 7, 255] } },
        Row("256 colours") { try Frames(2, 16, 16) { [UInt8(($1 + $0) % 256), 0, 0, 255] } },
        Row("255 new colours over one that stays") {
            try Frames(2, 16, 16) { $0 == 0 || $1 == 0 ? [5, 5, 5, 255] : [UInt8($1), 1, 0, 255] }
        },
        Row("pixels become transparent and opaque again") {
            try Frames(5, 9, 9) { ($1 + $0) % 3 == 0 ? [0, 0, 0, 0] : [UInt8($0), 200, 0, 255] }
        },
        Row("nothing but transparency") { try Frames(2, 3, 3) { _, _ in [0, 0, 0, 0] } },
        Row("one pixel that comes and goes") {
            try Frames(4, 1, 1) { frame, _ in frame % 2 == 0 ? [8, 8, 8, 255] : [0, 0, 0, 0] }
        },
        Row("two colours") { try Frames(2, 30, 1) { $0 == $1 % 2 ? [0, 0, 0, 255] : [255, 255, 255, 255] } },
    ]

    @Test(arguments: exactRows) func aGIFHasEveryPixelOfEveryFrame(row: Row) throws {
        let animation = try row.make()
        let file = try animation.encoded(as: .gif)
        let again = try frames(of: file)
        #expect(again.count == animation.count)
        for (index, (one, other)) in zip(again, animation.frames).enumerated() {
            #expect(one.image.pixels.bytes == other.image.pixels.bytes, "frame \(index)")
            #expect(one.duration == .milliseconds(100))
        }
        #expect(FileEnd.isReached(by: file, .gif))
    }

    @Test func aPhotoInAGIFIsCloseAndTheFramesAreWhole() throws {
        let animation = try Frames(3, 96, 64, pixel: Self.photo)
        let again = try frames(of: animation.encoded(as: .gif))
        #expect(again.count == 3)
        for (one, other) in zip(again, animation.frames) {
            // 26 dB: dithering adds noise to each pixel, and keeps the mean of an area.
            #expect(error(one.image, other.image) < 160)
            let small = PixelSize(width: 12, height: 8)
            #expect(try error(one.image.resized(to: small), other.image.resized(to: small)) < 12)
        }
    }

    @Test func alphaInAGIFIsAllOrNothing() throws {
        let animation = try Frames(2, 8, 1) { _, index in
            let alpha = UInt8(index * 36)
            return [alpha, 0, 0, alpha]
        }
        let alphas = try frames(of: animation.encoded(as: .gif)).map { frame in
            stride(from: 3, to: 32, by: 4).map { frame.image.pixels.bytes[$0] }
        }
        // Half is 128, between the fourth and the fifth.
        #expect(alphas == [[0, 0, 0, 0, 255, 255, 255, 255], [0, 0, 0, 0, 255, 255, 255, 255]])
    }

    @Test(arguments: [0, 1, 2, 7, 65_536, 100_000]) func aGIFKeepsItsLoops(loops: Int) throws {
        var animation = try Frames(2, 2, 2) { frame, _ in [UInt8(frame), 0, 0, 255] }
        animation.loopCount = loops
        #expect(try loopCount(of: animation.encoded(as: .gif)) == min(loops, 65_536))
    }

    @Test func aGIFThatDoesNotMoveIsSmallerThanOneThatDoes() throws {
        let moving = try Frames(8, 96, 64, pixel: Self.photo).encoded(as: .gif).count
        let still = try Frames(8, 96, 64) { Self.photo(0, $1) }.encoded(as: .gif).count
        #expect(still < moving / 5, "\(still) and \(moving) bytes")
    }

    @Test func oneFrameIsAStillGIF() throws {
        let file = try Frames(1, 4, 4) { _, _ in [1, 2, 3, 255] }.encoded(as: .gif)
        #expect(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()) == nil)
        #expect(try decoded([UInt8](file)).pixels.bytes.prefix(4) == [1, 2, 3, 255])
    }

    // MARK: Times

    @Test func timesDoNotDrift() {
        var times = FrameTimes(unit: .milliseconds(10), least: 2, most: 65_535)
        // A thirtieth of a second.
        let thirtieth = (0..<30).map { _ in times.next(.seconds(1) / 30) }
        #expect(thirtieth.reduce(0, +) == 100 && Set(thirtieth) == [3, 4])
    }

    @Test func timesBeyondALimitAreNotMadeUpFor() {
        var times = FrameTimes(unit: .milliseconds(10), least: 2, most: 100)
        let durations: [Duration] = [
            .zero, .milliseconds(1), .seconds(-5), .seconds(9), .milliseconds(50), .seconds(Int64.max),
            .milliseconds(40),
        ]
        #expect(durations.map { times.next($0) } == [2, 2, 2, 100, 5, 100, 4])
    }

    // MARK: AVIF

    static let canEncodeAVIF = LoadedLibrary.avifEncoder.obstacle == nil
    static let missing: Comment = "libavif with an encoder is not installed: scripts/set-up test"

    @Test(.enabled(if: canEncodeAVIF, missing), arguments: [(60, 40.0), (95, 8.0)])
    func aSequenceOfAVIFIsCloseAtItsQuality(quality: Int, limit: Double) throws {
        let animation = try Frames(3, 96, 64, milliseconds: 40) { frame, index in
            [UInt8(index % 96 * 2 + frame), UInt8(index / 96 * 3), 90, 255]
        }
        let file = try animation.encoded(as: .avif(quality: quality, speed: 10))
        let again = try frames(of: file)
        #expect(again.map(\.duration) == [.milliseconds(40), .milliseconds(40), .milliseconds(40)])
        for (one, other) in zip(again, animation.frames) { #expect(error(one.image, other.image) < limit) }
        #expect(ImageFormat(sniffing: file) == .avif)
    }

    @Test(.enabled(if: canEncodeAVIF, missing), arguments: [false, true])
    func aSequenceOfAVIFHasAlphaOnlyIfAFrameHas(hasAlpha: Bool) throws {
        // The last frame alone is translucent.
        let animation = try Frames(3, 32, 32) { frame, index in
            let alpha: UInt8 = hasAlpha && frame == 2 && index < 512 ? 128 : 255
            return [alpha / 2, alpha, 0, alpha]
        }
        let file = try animation.encoded(as: .avif(quality: 90, speed: 10))
        let again = try frames(of: file)
        #expect(again.map(\.image.isOpaque) == [true, true, !hasAlpha])
        #expect(file.firstRange(of: Data("auxi".utf8)) != nil || !hasAlpha)
        #expect((file.firstRange(of: Data("auxl".utf8)) != nil) == hasAlpha)
    }

    @Test(.enabled(if: canEncodeAVIF, missing)) func oneFrameIsAStillAVIF() throws {
        let file = try Frames(1, 33, 17) { _, _ in [10, 200, 30, 255] }.encoded(as: .avif(quality: 500, speed: -3))
        #expect(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()) == nil)
        let image = try decoded([UInt8](file))
        #expect(image.size == PixelSize(width: 33, height: 17) && image.isOpaque)
    }

    // MARK: Errors

    private func kind(_ animation: some ImageFrames, _ encoding: AnimationEncoding = .gif) -> ImageError.Kind? {
        do throws(ImageError) {
            _ = try animation.encoded(as: encoding)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test func framesThatDifferInSizeAndNoFramesAreRefused() throws {
        var animation = try Frames(2, 4, 4) { _, _ in [1, 2, 3, 255] }
        animation.frames.append(try Frames(1, 3, 4) { _, _ in [1, 2, 3, 255] }.frames[0])
        #expect(kind(animation) == .invalidArgument)
        animation.frames = []
        #expect(kind(animation) == .invalidArgument)
    }

    @Test func aSizeThatGIFLacksIsRefused() throws {
        let animation = try Frames(1, 65_536, 1) { _, _ in [1, 2, 3, 255] }
        let thrown = #expect(throws: ImageError.self) { try animation.encoded(as: .gif) }
        #expect(thrown?.kind == .encodingFailed && thrown?.message.contains("65535") == true)
        #expect(kind(try Frames(1, 65_535, 1) { _, _ in [1, 2, 3, 255] }) == nil)
    }

    @Test func withoutAnEncoderAVIFIsUnsupported() throws {
        let animation = try Frames(1, 2, 2) { _, _ in [1, 2, 3, 255] }
        #expect(kind(animation, .avif()) == (Self.canEncodeAVIF ? nil : .unsupported))
    }

    @Test func aCancelledTaskEndsBetweenFrames() async throws {
        let animation = try Frames(3, 4, 4) { frame, _ in [UInt8(frame), 2, 3, 255] }
        for encoding in [AnimationEncoding.gif, .avif()] where encoding == .gif || Self.canEncodeAVIF {
            let task = Task { () -> ImageError.Kind? in
                while !Task.isCancelled { await Task.yield() }
                return kind(animation, encoding)
            }
            task.cancel()
            #expect(await task.value == .cancelled)
        }
    }

    @Test func anErrorOfAFrameIsThatOfTheFile() throws {
        struct Broken: ImageFrames {
            let count = 2
            let loopCount = 0
            let size = PixelSize(width: 1, height: 1)

            func frame(at index: Int) throws(ImageError) -> ImageFrame {
                if index == 1 { throw ImageError(.corrupt, "damaged") }
                return ImageFrame(image: RasterImage(color: ImageColor(red: 1, green: 2, blue: 3)), duration: .zero)
            }
        }
        #expect(kind(Broken()) == .corrupt)
    }

    /// A decoded animation, of another size and with other colours, goes through.
    @Test func aDecodedAnimationIsEncodedAgain() throws {
        let animation = try Frames(3, 40, 30) { [UInt8($0 * 80), UInt8($1 % 256), 3, 255] }
        let decoder = CodecImageDecoder()
        let options = ImageDecodingOptions(targetSize: PixelSize(width: 20, height: 15))
        let small = try #require(try decoder.animation(from: animation.encoded(as: .gif), options: options))
        let again = try frames(of: small.encoded(as: .gif))
        #expect(again.count == 3 && again.allSatisfy { $0.image.size == PixelSize(width: 20, height: 15) })
    }
}
#endif
