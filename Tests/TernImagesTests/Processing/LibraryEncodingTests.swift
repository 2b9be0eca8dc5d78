#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// AVIF, HEIC, JPEG XL and animated WebP, encoded by the libraries that are installed, and decoded again.
@Suite(.timeLimit(.minutes(1))) struct LibraryEncodingTests {
    static let canWriteHEIC = LoadedLibrary.heifEncoder.obstacle == nil && LoadedLibrary.heif.obstacle == nil
    static let canWriteWebP = LoadedLibrary.webPWriter.obstacle == nil
    static let canWriteJPEGXL = LoadedLibrary.jpegXLEncoder.obstacle == nil
    static let missing: Comment = "the library is not installed: scripts/set-up test"

    private func gradient(_ width: Int, _ height: Int, isOpaque: Bool = true) throws -> RasterImage {
        let bytes = (0..<width * height).flatMap { index -> [UInt8] in
            let (x, y) = (index % width, index / width)
            let alpha = isOpaque ? 255 : 255 - x * 200 / width
            return [x * 200 / width, y * 200 / height, (x + y) * 100 / (width + height)].map {
                UInt8($0 * alpha / 255)
            } + [UInt8(alpha)]
        }
        return try #require(RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes))
    }

    /// Returns the mean of the squared differences.
    private func error(_ one: RasterImage, _ other: RasterImage) -> Double {
        let squares = zip(one.pixels.bytes, other.pixels.bytes).map { (Int($0) - Int($1)) * (Int($0) - Int($1)) }
        return Double(squares.reduce(0, +)) / Double(max(1, squares.count))
    }

    // MARK: HEIC

    @Test(
        .enabled(if: canWriteHEIC, missing),
        arguments: [(30, true, 60.0), (60, true, 15), (60, false, 15), (95, false, 3)])
    func aHEICIsCloseAtItsQuality(quality: Int, isOpaque: Bool, limit: Double) throws {
        let picture = try gradient(64, 48, isOpaque: isOpaque)
        let file = try picture.encoded(as: .heic(quality: quality, speed: 10))
        #expect(ImageFormat(sniffing: file) == .heic && FileEnd.isReached(by: file, .heic))
        let again = try decoded([UInt8](file))
        #expect(again.size == picture.size && again.isOpaque == isOpaque)
        #expect(again.metadata.colorProfile == .none)
        #expect(error(picture, again) < limit, "\(error(picture, again))")
        // sRGB by its numbers (ITU-T H.273), and an alpha channel only for a translucent picture.
        #expect(file.firstRange(of: Data("nclx".utf8) + [0, 1, 0, 13, 0, 6, 0x80]) != nil)
        #expect((file.firstRange(of: Data("auxl".utf8)) != nil) == !isOpaque)
    }

    @Test(.enabled(if: canWriteHEIC, missing), arguments: [(1, 1), (17, 13), (3, 60)])
    func aHEICHasItsSize(width: Int, height: Int) throws {
        let picture = try gradient(width, height)
        let again = try decoded([UInt8](try picture.encoded(as: .heic(quality: 90, speed: 10))))
        #expect(again.size == picture.size)
        #expect(error(picture, again) < 60)
    }

    @Test(.enabled(if: canWriteHEIC, missing)) func settingsOfHEICAreLimited() throws {
        let picture = try gradient(32, 32)
        let least = try picture.encoded(as: .heic(quality: -5, speed: 100)).count
        #expect(try picture.encoded(as: .heic(quality: 1000, speed: -1)).count > least)
    }

    // MARK: JPEG XL

    @Test(
        .enabled(if: canWriteJPEGXL, missing),
        arguments: [(40.0, true, 60.0), (90, true, 12), (90, false, 12), (100, true, 3)])
    func aJPEGXLIsCloseAtItsQuality(quality: Double, isOpaque: Bool, limit: Double) throws {
        let picture = try gradient(64, 48, isOpaque: isOpaque)
        let file = try picture.encoded(as: .jpegXL(quality: quality, speed: 8))
        #expect(ImageFormat(sniffing: file) == .jpegXL)
        let again = try decoded([UInt8](file))
        #expect(again.size == picture.size && again.isOpaque == isOpaque && again.metadata.isComplete)
        #expect(again.metadata.colorProfile == .none)
        #expect(error(picture, again) < limit, "\(error(picture, again))")
        #expect(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()) == nil)
    }

    @Test(.enabled(if: canWriteJPEGXL, missing), arguments: [true, false])
    func aLosslessJPEGXLHasEveryPixel(isOpaque: Bool) throws {
        for (width, height) in [(64, 48), (1, 1), (7, 3)] {
            let picture = try gradient(width, height, isOpaque: isOpaque)
            for speed in [9, 10] {
                let again = try decoded([UInt8](try picture.encoded(as: .losslessJPEGXL(speed: speed))))
                // Products with alpha are rounded once more.
                let same = try RasterImage(
                    pixels: picture.straightPixels(), size: picture.size, format: nil, metadata: picture.metadata)
                let straight = try RasterImage(
                    pixels: again.straightPixels(), size: again.size, format: nil, metadata: again.metadata)
                #expect(error(same, straight) < (isOpaque ? 0.000_1 : 1))
            }
        }
    }

    @Test(.enabled(if: canWriteJPEGXL, missing)) func anAnimationOfJPEGXLKeepsItsFramesAndTimes() throws {
        var animation = try AnimationEncodingTests.Frames(4, 32, 24, milliseconds: 70) { frame, index in
            [UInt8(index % 32 * 6), UInt8(frame * 50), 60, 255]
        }
        animation.loopCount = 3
        let file = try animation.encoded(as: .jpegXL(quality: 90, speed: 9))
        let again = try #require(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()))
        #expect(again.count == 4 && again.loopCount == 3)
        for index in 0..<4 {
            let frame = try again.frame(at: index)
            #expect(frame.duration == .milliseconds(70) && frame.image.metadata.isComplete)
            #expect(error(frame.image, animation.frames[index].image) < 40)
        }
        let still = try AnimationEncodingTests.Frames(1, 8, 8) { _, _ in [9, 8, 7, 255] }.encoded(as: .jpegXL())
        #expect(try CodecImageDecoder().animation(from: still, options: ImageDecodingOptions()) == nil)
    }

    // MARK: WebP and AVIF

    @Test(.enabled(if: canWriteWebP, missing), arguments: [true, false])
    func anAnimationOfWebPKeepsItsFramesAndTimes(isLossless: Bool) throws {
        var animation = try AnimationEncodingTests.Frames(4, 32, 24, milliseconds: 70) { frame, index in
            // A corner of two frames is clear.
            index < 5 && frame % 2 == 1 ? [0, 0, 0, 0] : [UInt8(index % 32 * 6), UInt8(frame * 50), 60, 255]
        }
        animation.loopCount = 3
        let file = try animation.encoded(as: isLossless ? .losslessWebP : .webp(quality: 90))
        let again = try #require(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()))
        #expect(again.count == 4 && again.loopCount == 3 && ImageFormat(sniffing: file) == .webp)
        for index in 0..<4 {
            let frame = try again.frame(at: index)
            #expect(frame.duration == .milliseconds(70) && frame.image.metadata.isComplete)
            #expect(error(frame.image, animation.frames[index].image) < (isLossless ? 0.000_1 : 60))
        }
    }

    @Test(.enabled(if: canWriteWebP, missing)) func oneFrameIsAStillWebP() throws {
        let still = try AnimationEncodingTests.Frames(1, 8, 9) { _, _ in [9, 8, 7, 255] }.encoded(as: .losslessWebP)
        #expect(try CodecImageDecoder().animation(from: still, options: ImageDecodingOptions()) == nil)
        let image = try decoded([UInt8](still))
        #expect(image.size == PixelSize(width: 8, height: 9) && image.pixels.bytes.prefix(4) == [9, 8, 7, 255])
    }

    @Test(.enabled(if: canWriteWebP, missing)) func timesAndSizesOfWebPAreLimited() throws {
        var animation = try AnimationEncodingTests.Frames(2, 2, 2) { frame, _ in [UInt8(frame * 90), 2, 3, 255] }
        animation.frames[0].duration = .zero
        animation.frames[1].duration = .seconds(50_000)
        let file = try animation.encoded(as: .losslessWebP)
        let again = try #require(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()))
        #expect(try again.frame(at: 1).duration == .milliseconds(16_777_215))
        let wide = try AnimationEncodingTests.Frames(1, 16_384, 1) { _, _ in [1, 2, 3, 255] }
        let thrown = #expect(throws: ImageError.self) { try wide.encoded(as: .webp()) }
        #expect(thrown?.kind == .encodingFailed && thrown?.message.contains("16383") == true)
    }

    @Test(.enabled(if: LoadedLibrary.avifEncoder.obstacle == nil, missing), arguments: [true, false])
    func anAVIFIsCloseAtItsQuality(isOpaque: Bool) throws {
        let picture = try gradient(64, 48, isOpaque: isOpaque)
        let file = try picture.encoded(as: .avif(quality: 90, speed: 10))
        let again = try decoded([UInt8](file))
        #expect(again.size == picture.size && again.isOpaque == isOpaque && again.format == .avif)
        #expect(error(picture, again) < 12, "\(error(picture, again))")
        #expect(try CodecImageDecoder().animation(from: file, options: ImageDecodingOptions()) == nil)
        #expect(try picture.encoded(as: .avif(quality: -1, speed: 99)).count < file.count)
    }

    // MARK: Errors

    @Test(arguments: [ImageEncoding.avif(), .heic(), .jpegXL(), .losslessJPEGXL()])
    func withoutItsLibraryAFormatIsUnsupported(encoding: ImageEncoding) throws {
        let picture = try gradient(8, 8)
        guard let obstacle = encoding.obstacle else {
            #expect(try !picture.encoded(as: encoding).isEmpty)
            return
        }
        let error = #expect(throws: ImageError.self) { try picture.encoded(as: encoding) }
        #expect(error?.kind == .unsupported && error?.message.contains("Debian") == true)
        #expect(!obstacle.isEmpty)
    }
}
#endif
