#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decodes the kinds of JPEG that cameras do not write.
@Suite struct JPEGKindsTests {
    /// Returns the largest difference of a level from the expected one, over the pixels of a 32 × 16 picture.
    private static func worst(_ file: [UInt8], _ expected: (_ x: Int, _ y: Int) -> [Int]) throws -> Int {
        let picture = try decoded(file)
        #expect(picture.size == PixelSize(width: 32, height: 16))
        var worst = 0
        for y in 0..<16 {
            for x in 0..<32 {
                let pixel = picture.pixels.bytes[(y * 32 + x) * 4..<(y * 32 + x) * 4 + 4]
                #expect(pixel.last == 255)
                worst = max(worst, zip(pixel, expected(x, y)).map { abs(Int($0) - $1) }.max() ?? 255)
            }
        }
        return worst
    }

    /// Colour is stored at half the width and height, so it is not exact near the edges of stripes.
    @Test(arguments: [JPEGFiles.separate, JPEGFiles.restarted]) func stripesComeOutInTheirColours(file: [UInt8]) throws
    {
        let picture = try decoded(file)
        for stripe in 0..<4 {
            let pixel = picture.pixels.bytes[(8 * 32 + stripe * 8 + 4) * 4..<(8 * 32 + stripe * 8 + 4) * 4 + 3]
            let expected = (0..<3).map { stripe % 3 == $0 ? 220 : 80 }
            #expect(zip(pixel, expected).allSatisfy { abs(Int($0) - $1) <= 24 })
        }
    }

    @Test func storedRGBIsNotTakenForYCbCr() throws {
        #expect(
            try Self.worst(JPEGFiles.rgb) { x, y in (0..<3).map { x / 8 % 3 == $0 ? 220 : 30 + y * 100 / 16 } } <= 6)
    }

    /// Returns a grey picture of one level, whose blocks take two bits each.
    private static func flat(_ width: Int, _ height: Int) -> [UInt8] {
        let counts: [UInt8] = [1] + [UInt8](repeating: 0, count: 15)
        func table(_ kind: UInt8) -> [UInt8] { [0xFF, 0xC4, 0, 20, kind] + counts + [0] }
        let frame = [0xFF, 0xC0, 0, 11, 8] + big(height, 2) + big(width, 2) + [1, 1, 0x11, 0]
        let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]
        let blocks = ((width + 7) / 8) * ((height + 7) / 8)
        let quantization = [0xFF, 0xDB, 0, 67, 0] + [UInt8](repeating: 1, count: 64)
        let head = [0xFF, 0xD8] + quantization + frame + table(0) + table(0x10) + scan
        return head + [UInt8](repeating: 0, count: (blocks + 3) / 4) + [0xFF, 0xD9]
    }

    /// A photo of 108 megapixels is scaled within the default limits, and the error of a larger one names the limit.
    @Test func aTargetAllowsMorePixels() throws {
        let options = ImageDecodingOptions(targetSize: PixelSize(width: 400, height: 300))
        let picture = try decoded(Self.flat(12_000, 9_000), options)
        #expect(picture.size == PixelSize(width: 400, height: 300))
        #expect(picture.pixels.bytes.prefix(4) == [128, 128, 128, 255])
        let pieces = IncrementalDecoder(options: options)
        try pieces.append(Data(Self.flat(12_000, 9_000)))
        #expect(try pieces.finish().pixels.bytes == picture.pixels.bytes)
        let large = ImageDecodingOptions(targetSize: PixelSize(width: 8_000, height: 6_000))
        for (file, options) in [
            (Self.flat(12_000, 9_000), ImageDecodingOptions()), (Self.flat(12_000, 9_000), large),
            (Self.flat(20_001, 20_000), options),
        ] {
            let error = #expect(throws: ImageError.self) { try decoded(file, options) }
            #expect(error?.kind == .limitExceeded && error?.message.contains("limits.pixels") == true)
        }
    }

    @Test func greyHasThreeEqualChannels() throws {
        #expect(try Self.worst(JPEGFiles.grey) { x, _ in [Int](repeating: x * 255 / 32, count: 3) } <= 4)
    }

    @Test(arguments: [JPEGFiles.cmyk, JPEGFiles.ycck, JPEGFiles.plainCMYK]) func inksAreMixed(file: [UInt8]) throws {
        let worst = try Self.worst(file) { x, y in
            (0..<3).map { (255 - (x / 8 % 4 == $0 ? 200 : 20)) * (255 - y * 100 / 16) / 255 }
        }
        #expect(worst <= 8)
    }

    @Test(
        .enabled(if: ColorConversion.isAvailable, "lcms2 is not installed: scripts/set-up test"),
        arguments: [JPEGFiles.cmyk, JPEGFiles.ycck, JPEGFiles.plainCMYK])
    func inksGoThroughTheirProfile(file: [UInt8]) throws {
        // In this press's profile, all coloured inks are the same grey.
        let picture = try decoded(Tagged.jpeg(file, ColorProfileFile.press))
        #expect(picture.metadata.colorProfile == .converted)
        let levels = stride(from: 0, to: picture.byteCount, by: 4).map { Array(picture.pixels.bytes[$0..<$0 + 4]) }
        #expect(levels.allSatisfy { abs(Int($0[0]) - Int($0[2])) <= 4 && abs(Int($0[1]) - Int($0[2])) <= 4 })
        #expect(levels.allSatisfy { $0[3] == 255 })
        // The first three stripes have more ink than the fourth.
        #expect(levels[4][0] + 30 < levels[28][0])
    }

    /// Returns EXIF data whose only entry is the orientation, in either byte order.
    private static func exif(_ orientation: Int, isBig: Bool) -> [UInt8] {
        let fields = [(42, 2), (8, 4), (1, 2), (0x0112, 2), (3, 2), (1, 4), (orientation, 2), (0, 2), (0, 4)]
        let numbers: [UInt8] = fields.flatMap { value, count in isBig ? big(value, count) : little(value, count) }
        return Array((isBig ? "MM" : "II").utf8) + numbers
    }

    /// Returns a blue picture of 24 × 16 pixels whose first 8 × 8 are red.
    private static func cornered() throws -> RasterImage {
        let bytes = (0..<16).flatMap { y in
            (0..<24).flatMap { x -> [UInt8] in x < 8 && y < 8 ? [255, 0, 0, 255] : [0, 0, 255, 255] }
        }
        return try #require(RasterImage(size: PixelSize(width: 24, height: 16), premultiplied: bytes))
    }

    @Test(arguments: 1...8, [false, true]) func theOrientationIsApplied(orientation: Int, isBig: Bool) throws {
        let exif = Self.exif(orientation, isBig: isBig)
        let jpeg = [UInt8](try Self.cornered().encoded(as: .jpeg(quality: 100)))
        let segment = Array("Exif".utf8) + [0, 0] + exif
        let png = [UInt8](try Self.cornered().encoded(as: .png()))
        let files = [
            Array(jpeg.prefix(2)) + [0xFF, 0xE1] + big(segment.count + 2, 2) + segment + Array(jpeg.dropFirst(2)),
            Array(png.prefix(33)) + chunk("eXIf", exif) + Array(png.dropFirst(33)),
        ]
        let (isRight, isLow) = ([2, 3, 6, 7].contains(orientation), [3, 4, 7, 8].contains(orientation))
        for file in files {
            let picture = try decoded(file)
            #expect(picture.metadata.orientation == orientation)
            #expect(picture.size == PixelSize(width: orientation < 5 ? 24 : 16, height: orientation < 5 ? 16 : 24))
            for (right, low) in [(false, false), (true, false), (false, true), (true, true)] {
                let x = right ? picture.size.width - 3 : 2
                let y = low ? picture.size.height - 3 : 2
                let isRed = picture.pixels.bytes[(y * picture.size.width + x) * 4] > 128
                #expect(isRed == (right == isRight && low == isLow))
            }
            let target = PixelSize(width: 8, height: 8)
            let fitted = try decoded(file, ImageDecodingOptions(targetSize: target))
            #expect(fitted.size == PixelSize(width: orientation < 5 ? 8 : 5, height: orientation < 5 ? 5 : 8))
        }
    }

    @Test(arguments: [0, 9, 65_535]) func anOrientationThatIsNoneIsUpright(orientation: Int) throws {
        let jpeg = [UInt8](try Self.cornered().encoded(as: .jpeg(quality: 100)))
        let segment = Array("Exif".utf8) + [0, 0] + Self.exif(orientation, isBig: true)
        let tagged =
            Array(jpeg.prefix(2)) + [0xFF, 0xE1] + big(segment.count + 2, 2) + segment + Array(jpeg.dropFirst(2))
        #expect(try decoded(tagged).metadata.orientation == 1)
    }

    @Test func mutatedFilesEndInAnErrorOrAPicture() {
        for file in [JPEGFiles.cmyk, JPEGFiles.ycck, JPEGFiles.separate, JPEGFiles.restarted, JPEGFiles.grey] {
            decodeMutations(of: Tagged.jpeg(file, ColorProfileFile.press))
        }
    }
}
#endif
