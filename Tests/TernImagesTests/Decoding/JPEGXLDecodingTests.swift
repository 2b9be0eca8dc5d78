#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.enabled(if: LoadedLibrary.jpegXL.obstacle == nil, "libjxl is not installed: scripts/set-up test"))
struct JPEGXLDecodingTests {
    private static let size = PixelSize(width: 24, height: 16)

    private static func color(_ x: Int, _ y: Int) -> [Int] { [x * 10, y * 15, (x + y) * 6, 255] }

    private static func clearing(_ x: Int, _ y: Int) -> [Int] { [x * 10, y * 15, (x + y) * 6, 255 - x * 10] }

    /// Returns the pixels of a picture in rows.
    private static func pixels(
        in size: PixelSize = Self.size, _ color: (_ x: Int, _ y: Int) -> [Int]
    ) -> [Int] {
        (0..<size.height).flatMap { y in (0..<size.width).flatMap { x in color(x, y) } }
    }

    private static func straight(_ bytes: [UInt8]) throws -> [UInt8] {
        var options = ImageDecodingOptions()
        options.keepsStraightAlpha = true
        options.color = .asStored()
        return try decoded(bytes, options).pixels.bytes
    }

    private static func worst(_ pixels: [UInt8], _ expected: [Int]) -> Int {
        guard pixels.count == expected.count else { return .max }
        return zip(pixels, expected).map { abs(Int($0) - $1) }.max() ?? .max
    }

    private static func frames(
        _ bytes: [UInt8], _ options: ImageDecodingOptions = ImageDecodingOptions()
    ) throws -> any ImageFrames {
        try #require(try CodecImageDecoder().animation(from: Data(bytes), options: options))
    }

    @Test func losslessPixelsAreExact() throws {
        let image = try decoded(JPEGXLFiles.rgb)
        #expect(image.size == Self.size && image.format == .jpegXL)
        #expect(image.metadata.isComplete && !image.metadata.isPartial && image.metadata.colorProfile == .none)
        #expect(Self.worst(image.pixels.bytes, Self.pixels(Self.color)) == 0)
    }

    @Test(arguments: [JPEGXLFiles.alpha, JPEGXLFiles.premultiplied])
    func alphaIsStraightInEitherForm(file: [UInt8]) throws {
        let expected = Self.pixels(Self.clearing)
        #expect(Self.worst(try Self.straight(file), expected) == 0)
        let image = try decoded(file)
        let multiplied = expected.indices.map { (at: Int) -> Int in
            let alpha = expected[at | 3]
            return at % 4 == 3 ? alpha : (expected[at] * alpha * 2 + 255) / 510
        }
        #expect(Self.worst(image.pixels.bytes, multiplied) == 0)
    }

    @Test func greyIsRead() throws {
        let grey = Self.pixels { x, _ in [x * 10, x * 10, x * 10, 255] }
        #expect(Self.worst(try decoded(JPEGXLFiles.grey).pixels.bytes, grey) == 0)
        let alpha = Self.pixels { x, y in [x * 10, x * 10, x * 10, y * 15] }
        #expect(Self.worst(try Self.straight(JPEGXLFiles.greyAlpha), alpha) == 0)
    }

    /// Later versions of libjxl spread the error of rounding.
    @Test func samplesOf16BitsAreRounded() throws {
        let expected = Self.pixels { (x: Int, y: Int) -> [Int] in
            let samples = [x * 2_800, y * 4_000, (x + y) * 1_500, 65_535]
            return samples.map { ($0 * 2 + 257) / 514 }
        }
        #expect(Self.worst(try decoded(JPEGXLFiles.deep).pixels.bytes, expected) <= 1)
    }

    @Test func lossyPixelsAreClose() throws {
        let image = try decoded(JPEGXLFiles.lossy)
        #expect(Self.worst(image.pixels.bytes, Self.pixels(Self.color)) <= 24)
        #expect(image.metadata.colorProfile == .none)
        #expect(Self.worst(try decoded(JPEGXLFiles.jpeg).pixels.bytes, Self.pixels(Self.color)) <= 16)
    }

    /// The numbers for colours are converted, in place of a profile.
    @Test func wideColorsAreConverted() throws {
        #expect(Self.worst(try Self.straight(JPEGXLFiles.wide), Self.pixels(Self.color)) == 0)
        for file in [JPEGXLFiles.wide, JPEGXLFiles.bright] {
            let image = try decoded(file)
            #expect(image.metadata.colorProfile == .converted)
            #expect(Self.worst(image.pixels.bytes, Self.pixels(Self.color)) > 10)
        }
    }

    @Test(arguments: 1...8) func orientationIsApplied(orientation: Int) throws {
        let image = try decoded(JPEGXLFiles.oriented(orientation))
        #expect(image.metadata.orientation == orientation)
        #expect(image.size == (orientation < 5 ? Self.size : Self.size.turned))
        // The corner that is stored at the top right, which is the most red one.
        let (right, low) = ([1, 4, 6, 7].contains(orientation), [3, 4, 5, 6].contains(orientation))
        let (x, y) = (right ? image.size.width - 1 : 0, low ? image.size.height - 1 : 0)
        let at = (y * image.size.width + x) * 4
        #expect(image.pixels.bytes[at..<at + 4].map { Int($0) } == Self.color(23, 0))
    }

    @Test func aPreviewIsSkipped() throws {
        let image = try decoded(JPEGXLFiles.preview)
        #expect(image.pixels.bytes == (try decoded(JPEGXLFiles.oriented).pixels.bytes))
        #expect(errorKind(JPEGXLFiles.preview.dropLast(3)) == .truncated)
    }

    @Test func layersAreDrawn() throws {
        let pixels = try Self.straight(JPEGXLFiles.layers)
        let under = Self.pixels(Self.clearing)
        // The layers begin at 2, 1 and have half of the size.
        let rows = stride(from: 0, to: pixels.count, by: 24 * 4).map { Array(pixels[$0..<$0 + 96]) }
        #expect(rows[0].map { Int($0) } == Array(under[0..<96]))
        #expect(rows[1][8..<12].map { Int($0) } == [10, 0, 0, 255])
        #expect(rows[9].map { Int($0) } == Array(under[9 * 96..<10 * 96]))
        let options = ImageDecodingOptions(limits: .init(frames: 2))
        #expect(errorKind(JPEGXLFiles.layers, options) == .limitExceeded)
    }

    @Test(arguments: 1...4) func aStreamInPartsIsJoined(parts: Int) throws {
        let boxed = JPEGXLFiles.boxed(JPEGXLFiles.rgb, parts: parts)
        let image = try decoded(boxed)
        #expect(image.pixels.bytes == (try decoded(JPEGXLFiles.rgb).pixels.bytes))
        #expect(image.metadata.isComplete)
        for count in 12..<boxed.count - 16 { #expect(errorKind(Array(boxed.prefix(count))) == .truncated, "\(count)") }
    }

    @Test func aTargetIsReached() throws {
        let image = try decoded(JPEGXLFiles.rgb, ImageDecodingOptions(targetSize: PixelSize(width: 6, height: 6)))
        #expect(image.size == PixelSize(width: 6, height: 4) && image.metadata.originalSize == Self.size)
    }

    @Test func anAnimationGivesItsFramesForwardsAndBack() throws {
        var options = ImageDecodingOptions()
        options.keepsStraightAlpha = true
        let frames = try Self.frames(JPEGXLFiles.animation, options)
        #expect(frames.count == 3 && frames.loopCount == 3 && frames.size == PixelSize(width: 16, height: 8))
        for index in [0, 1, 2, 1, 0, 2] {
            let frame = try frames.frame(at: index)
            #expect(frame.duration == .milliseconds(50 * (index + 1)))
            let expected = Self.pixels(in: frames.size) { (x: Int, y: Int) -> [Int] in
                [x * 10 + index * 5, y * 15, (x + y) * 6, 255 - x * 10]
            }
            #expect(Self.worst(frame.image.pixels.bytes, expected) == 0, "frame \(index)")
        }
        let still = try decoded(JPEGXLFiles.animation, options)
        #expect(still.pixels.bytes == (try frames.frame(at: 0).image.pixels.bytes))
    }

    @Test func framesAreDrawnOverOthers() throws {
        let frames = try Self.frames(JPEGXLFiles.composed)
        func pixel(_ index: Int, _ x: Int, _ y: Int) throws -> [UInt8] {
            Array(try frames.frame(at: index).image.pixels.bytes[(y * 16 + x) * 4..<(y * 16 + x) * 4 + 4])
        }
        #expect(frames.count == 3 && frames.loopCount == 0)
        #expect(try pixel(0, 2, 1) == [255, 0, 0, 255])
        #expect(Self.worst(try pixel(1, 2, 1), [127, 128, 0, 255]) <= 1)
        #expect(Self.worst(try pixel(2, 2, 1), [127, 128, 0, 255]) <= 1)
        #expect(try pixel(2, 4, 2) == [0, 0, 255, 255])
        #expect(try pixel(2, 0, 0) == [255, 0, 0, 255])
    }

    @Test func aStillPictureIsNoAnimation() throws {
        for file in [JPEGXLFiles.rgb, JPEGXLFiles.layers] {
            #expect(try CodecImageDecoder().animation(from: Data(file), options: ImageDecodingOptions()) == nil)
        }
    }

    /// With a part allowed, the frames so far are there, and the last one is marked.
    @Test func aCutAnimationIsTruncated() throws {
        let bytes = JPEGXLFiles.animation
        for count in 40..<bytes.count {
            let cut = Array(bytes.prefix(count))
            #expect(errorKind(cut) == .truncated, "\(count)")
            let options = ImageDecodingOptions(allowsPartial: true)
            guard let frames = try? CodecImageDecoder().animation(from: Data(cut), options: options) else { continue }
            for index in 0..<frames.count { #expect(try frames.frame(at: index).image.metadata.isPartial) }
        }
    }

    @Test func limitsHold() {
        let pixels = 24 * 16
        #expect(errorKind(JPEGXLFiles.rgb, ImageDecodingOptions(limits: .init(pixels: pixels - 1))) == .limitExceeded)
        #expect(errorKind(JPEGXLFiles.rgb, ImageDecodingOptions(limits: .init(pixels: pixels))) == nil)
        #expect(errorKind(JPEGXLFiles.animation, ImageDecodingOptions(limits: .init(frames: 2))) == .limitExceeded)
        #expect(errorKind(JPEGXLFiles.animation, ImageDecodingOptions(limits: .init(frames: 3))) == nil)
        #expect(errorKind(JPEGXLFiles.rgb, ImageDecodingOptions(limits: .init(memory: 1 << 20))) == .limitExceeded)
        #expect(errorKind(JPEGXLFiles.tooLarge) == .limitExceeded)
    }

    @Test func otherKindsAreNamed() {
        for (file, word) in [(JPEGXLFiles.inks, "inks"), (JPEGXLFiles.reordered, "order")] {
            let error = #expect(throws: ImageError.self) { try decoded(file) }
            #expect(error?.kind == .unsupported && error?.message.contains(word) == true, "\(error as Any)")
        }
    }

    @Test func aStreamWithoutAHeaderIsAnError() {
        #expect(errorKind([0xFF, 0x0A]) == .truncated)
        #expect(errorKind([0xFF, 0x0A] + [UInt8](repeating: 0xFF, count: 40)) != nil)
    }

    @Test func cancellationEndsADecode() async {
        let began = AsyncStream<Void>.makeStream()
        let task = Task {
            // Decodes until it is cancelled, wherever that is.
            while true {
                guard let kind = errorKind(JPEGXLFiles.large) else {
                    began.continuation.yield()
                    continue
                }
                return kind
            }
        }
        for await _ in began.stream { break }
        task.cancel()
        #expect(await task.value == .cancelled)
    }

    @Test func damagedFilesEndWithAPictureOrAnError() {
        for file in [
            JPEGXLFiles.alpha, JPEGXLFiles.lossy, JPEGXLFiles.layers, JPEGXLFiles.animation, JPEGXLFiles.preview,
            JPEGXLFiles.boxed(JPEGXLFiles.composed, parts: 3),
        ] {
            decodeMutations(of: file, rounds: 96)
        }
    }
}
#endif
