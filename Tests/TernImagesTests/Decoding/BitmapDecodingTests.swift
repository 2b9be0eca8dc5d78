#if os(Linux)
import Testing

@testable import TernImages

@Suite struct BitmapDecodingTests {
    private static let colours: [[UInt8]] = (0..<256).map { index in
        [index * 7, index * 31, 255 - index].map { UInt8(truncatingIfNeeded: $0) }
    }

    /// Returns 13 × 5 indices below 2^bits. No row has equal indices only.
    private static func indices(_ bits: Int) -> [[Int]] {
        (0..<5).map { y in (0..<13).map { x in ((x + y) * 5 + x * y) % (1 << bits) } }
    }

    private static func shown(_ indices: [[Int]]) -> [UInt8] { indices.joined().flatMap { colours[$0] + [255] } }

    @Test(arguments: [1, 2, 4, 8], [12, 40, 64, 108, 124])
    func indicesShowTheirColours(bits: Int, headerSize: Int) throws {
        let indices = Self.indices(bits)
        for topDown in headerSize == 12 ? [false] : [false, true] {
            let file = BitmapFile(
                width: 13, height: topDown ? -5 : 5, bits: bits, headerSize: headerSize,
                palette: Array(Self.colours.prefix(1 << bits)),
                pixels: BitmapFile.rows(indices.map { BitmapFile.pack($0, bits: bits) }, topDown: topDown))
            let picture = try decoded(file.bytes)
            #expect(picture.size == PixelSize(width: 13, height: 5))
            #expect(picture.format == .bmp)
            #expect(picture.pixels.bytes == Self.shown(indices))
        }
    }

    @Test func trueColourIsBlueFirstAndTheFourthByteIsNoAlpha() throws {
        let file24 = BitmapFile(width: 2, height: 1, bits: 24, pixels: BitmapFile.rows([[1, 2, 3, 4, 5, 6]]))
        #expect(try decoded(file24.bytes).pixels.bytes == [3, 2, 1, 255, 6, 5, 4, 255])
        let file32 = BitmapFile(width: 2, height: -1, bits: 32, pixels: [1, 2, 3, 0, 4, 5, 6, 9])
        #expect(try decoded(file32.bytes).pixels.bytes == [3, 2, 1, 255, 6, 5, 4, 255])
    }

    @Test func sixteenBitsAreFiveEachUnlessMasksSaySixForGreen() throws {
        let pixels = little(0x7FFF, 2) + little(3 << 10 | 16 << 5 | 31, 2)
        let five = BitmapFile(width: 2, height: 1, bits: 16, pixels: pixels)
        #expect(try decoded(five.bytes).pixels.bytes == [255, 255, 255, 255, 24, 131, 255, 255])
        let six = BitmapFile(
            width: 2, height: 1, bits: 16, compression: 3, masks: [0xF800, 0x7E0, 0x1F],
            pixels: little(0xFFFF, 2) + little(3 << 11 | 32 << 5 | 16, 2))
        #expect(try decoded(six.bytes).pixels.bytes == [255, 255, 255, 255, 24, 129, 131, 255])
    }

    @Test(arguments: [40, 56, 108, 124]) func masksWithAlphaPremultiply(headerSize: Int) throws {
        let file = BitmapFile(
            width: 2, height: 1, bits: 32, compression: headerSize == 40 ? 6 : 3, headerSize: headerSize,
            masks: [0xFF, 0xFF00, 0xFF0000, 0xFF00_0000], pixels: [200, 100, 50, 128, 9, 9, 9, 0])
        #expect(try decoded(file.bytes).pixels.bytes == [100, 50, 25, 128, 0, 0, 0, 0])
    }

    @Test func tenBitMasksGiveTheirHighByte() throws {
        let file = BitmapFile(
            width: 1, height: 1, bits: 32, compression: 3, masks: [0x3FF0_0000, 0xFFC00, 0x3FF],
            pixels: little(1023 << 20 | 512 << 10 | 7, 4))
        #expect(try decoded(file.bytes).pixels.bytes == [255, 128, 1, 255])
    }

    @Test func runsStretchesAndJumpsOfEightBits() throws {
        // Three times 1; a move by 1 to the right and 1 down; 2, 3, 4 and padding; the end of the line. The rest is
        // missing.
        let stream: [UInt8] = [3, 1, 0, 2, 1, 1, 0, 3, 2, 3, 4, 0, 0, 0, 9, 5, 0, 1]
        let file = BitmapFile(
            width: 8, height: 4, bits: 8, compression: 1, palette: Array(Self.colours.prefix(6)), pixels: stream)
        let expected = [
            [0, 0, 0, 0, 0, 0, 0, 0], [5, 5, 5, 5, 5, 5, 5, 5], [0, 0, 0, 0, 2, 3, 4, 0], [1, 1, 1, 0, 0, 0, 0, 0],
        ]
        #expect(try decoded(file.bytes).pixels.bytes == Self.shown(expected))
    }

    @Test func runsAndStretchesOfFourBits() throws {
        let stream: [UInt8] = [5, 0x12, 0, 5, 0x34, 0x56, 0x70, 0, 0, 0, 2, 0x89, 0, 1]
        let file = BitmapFile(
            width: 10, height: 2, bits: 4, compression: 2, palette: Array(Self.colours.prefix(16)), pixels: stream)
        let expected = [[8, 9, 0, 0, 0, 0, 0, 0, 0, 0], [1, 2, 1, 2, 1, 3, 4, 5, 6, 7]]
        #expect(try decoded(file.bytes).pixels.bytes == Self.shown(expected))
    }

    @Test func contradictionsAreCorruptAndTheUnknownIsUnsupported() {
        func kind(_ change: (inout BitmapFile) -> Void) -> ImageError.Kind? {
            var file = BitmapFile(width: 2, height: 1, bits: 24, pixels: BitmapFile.rows([[1, 2, 3, 4, 5, 6]]))
            change(&file)
            return errorKind(file.bytes)
        }
        #expect(kind { _ in } == nil)
        #expect(kind { $0.width = 0 } == .corrupt)
        #expect(kind { $0.width = -2 } == .corrupt)
        #expect(kind { $0.bits = 7 } == .corrupt)
        #expect(kind { $0.compression = 1 } == .corrupt)
        #expect(kind { ($0.compression, $0.bits, $0.masks) = (3, 32, [0xFF00FF, 0xFF00, 0]) } == .corrupt)
        #expect(kind { $0.compression = 4 } == .unsupported)
        #expect(kind { $0.pixels.removeLast(2) } == nil)
        #expect(kind { $0.pixels.removeLast(3) } == .truncated)
        #expect(kind { ($0.width, $0.height) = (100_000, 100_000) } == .limitExceeded)
        #expect(kind { $0.height = Int(Int32.min) } == .limitExceeded)
    }

    /// Returns the file with another position of its pixels.
    private static func moved(_ file: BitmapFile, to position: Int) -> [UInt8] {
        var bytes = file.bytes
        bytes.replaceSubrange(10..<14, with: little(position, 4))
        return bytes
    }

    /// The position leaves out the colour table, as that of writers of files without one.
    @Test(arguments: [1, 2, 4, 8], [12, 40, 124]) func pixelsAtTheColoursFollowThem(bits: Int, headerSize: Int) throws {
        let indices = Self.indices(bits)
        let file = BitmapFile(
            width: 13, height: 5, bits: bits, headerSize: headerSize,
            palette: Array(Self.colours.prefix(1 << bits)),
            pixels: BitmapFile.rows(indices.map { BitmapFile.pack($0, bits: bits) }))
        #expect(try decoded(Self.moved(file, to: 14 + headerSize)).pixels.bytes == Self.shown(indices))
    }

    /// The table states more colours than the picture has, so its last entries are pixels.
    @Test(arguments: [12, 40]) func pixelsWithinTheColoursAreTakenFromThere(headerSize: Int) throws {
        let indices = (0..<3).map { _ in [0, 1, 2, 3] }
        var file = BitmapFile(
            width: 4, height: 3, bits: 8, headerSize: headerSize, palette: Array(Self.colours.prefix(4)),
            pixels: BitmapFile.rows(indices.map { $0.map(UInt8.init) }))
        let position = file.bytes.count - file.pixels.count
        // The bytes behind the picture make up the rest of the table that the header states.
        file.pixels += [UInt8](repeating: 9, count: 1024)
        var bytes = Self.moved(file, to: position)
        if headerSize == 40 { bytes.replaceSubrange(46..<50, with: little(252, 4)) }
        #expect(try decoded(bytes).pixels.bytes == Self.shown(indices))
        // The table ends with the file.
        #expect(try decoded([UInt8](bytes.dropLast(1024))).pixels.bytes == Self.shown(indices))
        #expect(errorKind([UInt8](bytes.prefix(position + 11))) == .truncated)
    }

    /// The last row of a file in either order, in each depth and with run lengths.
    @Test(arguments: [1, 4, 8, 16, 24], [false, true]) func theLastRowNeedsNoPadding(bits: Int, topDown: Bool) throws {
        let width = 3
        let used = (width * bits + 7) / 8
        let rows = (0..<3).map { y in (0..<used).map { UInt8(truncatingIfNeeded: $0 * 37 + y * 11) } }
        let file = BitmapFile(
            width: width, height: topDown ? -3 : 3, bits: bits,
            palette: bits <= 8 ? Array(Self.colours.prefix(1 << bits)) : [],
            pixels: BitmapFile.rows(rows, topDown: topDown)
        ).bytes
        let whole = try decoded(file)
        #expect(whole.metadata.isComplete)
        for missing in 1..<(5 - used % 4) where used % 4 != 0 {
            let cut = try decoded([UInt8](file.dropLast(missing)))
            #expect(cut.pixels.bytes == whole.pixels.bytes)
            #expect(!cut.metadata.isComplete && !cut.metadata.isPartial)
        }
        #expect(errorKind([UInt8](file.dropLast((4 - used % 4) % 4 + 1))) == .truncated)
    }

    @Test func theCutFileGivesItsLowerRowsIfPartialIsAsked() throws {
        let rows = (0..<4).map { [UInt8](repeating: UInt8($0 + 1), count: 12) }
        let file = BitmapFile(width: 4, height: 4, bits: 24, pixels: BitmapFile.rows(rows))
        let picture = try decoded([UInt8](file.bytes.dropLast(13)), ImageDecodingOptions(allowsPartial: true))
        #expect(picture.metadata.isPartial)
        #expect(picture.pixels.bytes.prefix(32).allSatisfy { $0 == 0 })
        #expect([UInt8](picture.pixels.bytes.suffix(4)) == [4, 4, 4, 255])
    }

    @Test(arguments: [0, 1, 3]) func mutatedFilesEndInAnErrorOrAPicture(compression: Int) {
        let stream: [UInt8] = [3, 1, 0, 2, 1, 1, 0, 3, 2, 3, 4, 0, 0, 0, 9, 5, 0, 1]
        let file =
            switch compression {
            case 0: BitmapFile(width: 9, height: 7, bits: 1, palette: [[0, 0, 0], [9, 9, 9]], pixels: little(0, 56))
            case 1: BitmapFile(width: 8, height: 4, bits: 8, compression: 1, palette: Self.colours, pixels: stream)
            default:
                BitmapFile(
                    width: 9, height: 7, bits: 16, compression: 3, headerSize: 124,
                    masks: [0xF800, 0x7E0, 0x1F, 0], pixels: little(0x1234_5678, 140))
            }
        decodeMutations(of: file.bytes)
    }
}
#endif
