#if os(Linux)
import Testing

@testable import TernImages

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
