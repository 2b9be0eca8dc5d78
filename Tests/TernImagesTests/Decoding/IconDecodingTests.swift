#if os(Linux)
import Testing

@testable import TernImages

@Suite struct IconDecodingTests {
    private static func bitmap(_ side: Int, _ pixel: [UInt8]) -> BitmapFile {
        let row = (0..<side).flatMap { _ in pixel }
        return BitmapFile(
            width: side, height: side, bits: pixel.count * 8,
            pixels: BitmapFile.rows([[UInt8]](repeating: row, count: side)))
    }

    private static func entry(_ side: Int, _ pixel: [UInt8]) -> [UInt8] {
        IconFile.entry(
            bitmap(side, pixel), mask: [[Bool]](repeating: [Bool](repeating: false, count: side), count: side))
    }

    @Test func theSmallestEntryOfTheTargetsSizeIsTaken() throws {
        let big = [UInt8](try gradient(48, 48).encoded(as: .png()))
        let icon = IconFile(entries: [Self.entry(32, [0, 0, 32]), Self.entry(16, [0, 0, 16]), big]).bytes
        func red(_ side: Int?) throws -> (PixelSize, PixelSize, UInt8) {
            let target = side.map { PixelSize(width: $0, height: $0) }
            let picture = try decoded(icon, ImageDecodingOptions(targetSize: target))
            return (picture.size, picture.metadata.originalSize, picture.pixels.bytes[0])
        }
        #expect(try red(nil) == (PixelSize(width: 48, height: 48), PixelSize(width: 48, height: 48), 0))
        #expect(try red(16) == (PixelSize(width: 16, height: 16), PixelSize(width: 16, height: 16), 16))
        #expect(try red(17) == (PixelSize(width: 17, height: 17), PixelSize(width: 32, height: 32), 32))
        #expect(try red(33).1 == PixelSize(width: 48, height: 48))
        #expect(try red(400).0 == PixelSize(width: 48, height: 48))
    }

    @Test func entryWithMostColorsIsTakenAmongEqualSizes() throws {
        let icon = IconFile(entries: [Self.entry(2, [1, 2, 3]), Self.entry(2, [4, 5, 6, 255])]).bytes
        #expect(try decoded(icon).pixels.bytes.prefix(4) == [6, 5, 4, 255])
    }

    @Test func theMaskTakesPixelsOut() throws {
        let mask = [[false, true], [false, false]]
        let icon = IconFile(entries: [IconFile.entry(Self.bitmap(2, [1, 2, 3]), mask: mask)]).bytes
        #expect(try decoded(icon).pixels.bytes == [3, 2, 1, 255, 0, 0, 0, 0, 3, 2, 1, 255, 3, 2, 1, 255])
        let indexed = BitmapFile(
            width: 2, height: 2, bits: 1, palette: [[7, 8, 9], [1, 1, 1]],
            pixels: BitmapFile.rows([[0x40], [0x00]]))
        let small = IconFile(entries: [IconFile.entry(indexed, mask: mask)]).bytes
        #expect(try decoded(small).pixels.bytes == [7, 8, 9, 255, 0, 0, 0, 0, 7, 8, 9, 255, 7, 8, 9, 255])
    }

    @Test func alphaOutranksTheMaskUnlessItIsNoneAtAll() throws {
        let mask = [[true, false], [false, false]]
        let alpha = IconFile(entries: [IconFile.entry(Self.bitmap(2, [0, 0, 200, 128]), mask: mask)]).bytes
        #expect(try decoded(alpha).pixels.bytes.prefix(4) == [100, 0, 0, 128])
        let none = IconFile(entries: [IconFile.entry(Self.bitmap(2, [0, 0, 200, 0]), mask: mask)]).bytes
        #expect(try decoded(none).pixels.bytes.prefix(8) == [0, 0, 0, 0, 200, 0, 0, 255])
    }

    /// Returns the text of the error that decoding throws.
    private static func message(_ icon: IconFile, _ options: ImageDecodingOptions = ImageDecodingOptions()) -> String {
        do throws(ImageError) {
            return "no error, \(try decoded(icon.bytes, options).size)"
        } catch {
            return error.message
        }
    }

    @Test func errorsNameTheEntry() throws {
        var png = [UInt8](try gradient(48, 48).encoded(as: .png()))
        let data = try #require(png.firstRange(of: Array("IDAT".utf8))).upperBound
        png[data + 20] ^= 0xFF
        let two = IconFile(entries: [Self.entry(2, [1, 2, 3]), png])
        #expect(Self.message(two).hasPrefix("entry 1: "))
        let small = ImageDecodingOptions(limits: .init(pixels: 100))
        #expect(Self.message(two, small) == "entry 1: 48×48 pixels, limits.pixels is 100")
        #expect(Self.message(two, ImageDecodingOptions(targetSize: PixelSize(width: 2, height: 2))) == "no error, 2×2")
        let noise = IconFile(entries: [[UInt8](repeating: 9, count: 60)])
        #expect(
            Self.message(noise)
                == "none of 1 entries is a picture: entry 0: a header of an impossible size: 151587081")
        #expect(Self.message(IconFile(entries: [[1]])).hasSuffix("entry 0: it has fewer bytes than a header"))
        #expect(Self.message(IconFile(entries: [])) == "none of 0 entries is a picture")
        let bitmap = IconFile.entry(Self.bitmap(2, [1, 2, 3]), mask: [[false, true], [false, false]])
        let cut = IconFile(entries: [Array(bitmap.dropLast(6))])
        #expect(Self.message(cut) == "entry 0: the bytes end within the mask")
    }

    @Test func theLastRowOfAMaskNeedsNoPadding() throws {
        let mask = [[false, true], [false, false]]
        let whole = IconFile.entry(Self.bitmap(2, [1, 2, 3]), mask: mask)
        let icon = IconFile(entries: [Array(whole.dropLast(3))]).bytes
        #expect(try decoded(icon).pixels.bytes == decoded(IconFile(entries: [whole]).bytes).pixels.bytes)
        #expect(errorKind(IconFile(entries: [Array(whole.dropLast(4))]).bytes) == .truncated)
    }

    @Test func entriesThatAreNoPictureArePassedOver() throws {
        let icon = IconFile(entries: [[UInt8](repeating: 9, count: 60), Self.entry(2, [1, 2, 3])]).bytes
        #expect(try decoded(icon).size == PixelSize(width: 2, height: 2))
        #expect(errorKind(IconFile(entries: [[UInt8](repeating: 9, count: 60)]).bytes) == .corrupt)
        #expect(errorKind(IconFile(entries: []).bytes) == .corrupt)
        #expect(errorKind([0, 0, 1, 0, 2, 0, 1]) == .truncated)
        #expect(errorKind([UInt8](icon.dropLast(4))) == .truncated)
    }

    /// Decodes a PNG of 600 × 600 whose first chunk states 2 × 2 at the position of the header. libpng skips this chunk
    /// and finds the real header.
    @Test(arguments: ["tEXt", "teRn", "IDHR"])
    func anEntryThatDoesNotBeginWithItsHeaderIsNoPicture(name: String) throws {
        let png = [UInt8](try gradient(600, 600).encoded(as: .png()))
        let said = big(2, 4) + big(2, 4) + [8, 6, 0, 0, 0]
        let disguised = png.prefix(8) + chunk(name, said) + png.dropFirst(8)
        for options in [ImageDecodingOptions(), ImageDecodingOptions(limits: .init(pixels: 100))] {
            #expect(errorKind(IconFile(entries: [[UInt8](disguised)]).bytes, options) == .corrupt)
        }
        // A header of another length is not a header either, even if libpng would read the same values.
        let long = png.prefix(8) + chunk("IHDR", said + [0]) + png.dropFirst(8)
        #expect(errorKind(IconFile(entries: [[UInt8](long)]).bytes) == .corrupt)
        // The other entries are still decoded, in any order.
        let entries = [[UInt8](disguised), Self.entry(2, [1, 2, 3]), [UInt8](disguised)]
        #expect(try decoded(IconFile(entries: entries).bytes).size == PixelSize(width: 2, height: 2))
    }

    @Test func theLimitIsOfTheEntryThatIsDecoded() throws {
        let icon = IconFile(entries: [Self.entry(2, [1, 2, 3]), Self.entry(40, [1, 2, 3])]).bytes
        let limits = ImageDecodingOptions.Limits(pixels: 100)
        #expect(errorKind(icon, ImageDecodingOptions(limits: limits)) == .limitExceeded)
        let two = PixelSize(width: 2, height: 2)
        #expect(errorKind(icon, ImageDecodingOptions(targetSize: two, limits: limits)) == nil)
    }

    @Test func mutatedFilesEndInAnErrorOrAPicture() throws {
        let png = [UInt8](try gradient(24, 24).encoded(as: .png()))
        decodeMutations(of: IconFile(entries: [Self.entry(9, [1, 2, 3]), Self.entry(5, [9, 9, 9, 9]), png]).bytes)
        decodeMutations(of: IconFile(entries: [png]).bytes, target: PixelSize(width: 6, height: 6))
    }
}
#endif
