#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite(.enabled(if: LoadedLibrary.tiff.obstacle == nil, "libtiff 4.5 is not installed: scripts/set-up test"))
struct TIFFDecodingTests {
    private static let picture: [[UInt8]] = [
        [10, 20, 30, 40, 50, 60, 70, 80, 90], [11, 21, 31, 41, 51, 61, 71, 81, 91],
    ]

    private static func rgba(_ rows: [[UInt8]]) -> [UInt8] {
        rows.flatMap { row in stride(from: 0, to: row.count, by: 3).flatMap { Array(row[$0..<$0 + 3]) + [255] } }
    }

    @Test(arguments: [true, false], [true, false]) func eachOrderOfBytesIsRead(isLittle: Bool, isBig: Bool) throws {
        let file = TIFFFile(parts: Self.picture, isLittle: isLittle, isBig: isBig)
        let image = try decoded(file.bytes)
        #expect(image.pixels.bytes == Self.rgba(Self.picture))
        #expect(image.format == .tiff && image.metadata.isComplete && !image.metadata.isPartial)
    }

    /// Strips of one row, of two, and of more than there are.
    @Test(arguments: [(1, 5), (2, 5), (9, 5), (1, 1)]) func stripsOfEachHeightAreRead(rows: Int, height: Int) throws {
        let all = (0..<height).map { row in (0..<9).map { UInt8(row * 40 + $0) } }
        let parts = stride(from: 0, to: height, by: rows).map { Array(all[$0..<min($0 + rows, height)].joined()) }
        let file = TIFFFile(height: height, parts: parts, rowsPerStrip: rows)
        #expect(try decoded(file.bytes).pixels.bytes == Self.rgba(all))
    }

    /// A tile has at least 16 pixels a side, and reaches beyond the picture.
    @Test func tilesAreReadAndCut() throws {
        let (width, height) = (40, 70)
        func color(_ x: Int, _ y: Int) -> [UInt8] { [UInt8(x), UInt8(y), UInt8(x + y)] }
        var parts: [[UInt8]] = []
        for top in stride(from: 0, to: height, by: 32) {
            for left in stride(from: 0, to: width, by: 16) {
                var tile: [UInt8] = []
                for y in top..<top + 32 {
                    for x in left..<left + 16 { tile += color(x, y) }
                }
                parts.append(tile)
            }
        }
        let file = TIFFFile(width: width, height: height, parts: parts, tile: (16, 32))
        var expected: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width { expected += color(x, y) + [255] }
        }
        #expect(try decoded(file.bytes).pixels.bytes == expected)
    }

    @Test func samplesOf16BitsAreRounded() throws {
        let row = [0, 127, 128, 385, 65_535, 65_407, 256, 257, 32_896].flatMap { little($0, 2) }
        let image = try decoded(TIFFFile(height: 1, bits: [16, 16, 16], parts: [row]).bytes)
        #expect(image.pixels.bytes == [0, 0, 0, 255, 1, 255, 255, 255, 1, 1, 128, 255].map { UInt8($0) })
    }

    /// The kind of the fourth sample, and the pixel for straight 200, 100, 50 of alpha 128, and for a clear one.
    @Test(arguments: [
        (2, [100, 50, 25, 128, 0, 0, 0, 0]), (1, [128, 100, 50, 128, 0, 0, 0, 0]),
        (0, [200, 100, 50, 255, 9, 9, 9, 255]),
    ])
    func alphaIsAsDeclared(kind: Int, expected: [UInt8]) throws {
        // Associated colours are at most as large as their alpha.
        let row: [UInt8] = kind == 1 ? [128, 100, 50, 128, 0, 0, 0, 0] : [200, 100, 50, 128, 9, 9, 9, 0]
        let file = TIFFFile(
            width: 2, height: 1, bits: [8, 8, 8, 8], parts: [row], added: [(338, 3, [kind])])
        #expect(try decoded(file.bytes).pixels.bytes == expected)
    }

    @Test(arguments: 1...8) func orientationIsApplied(orientation: Int) throws {
        let file = TIFFFile(parts: Self.picture, added: [(274, 3, [orientation])])
        let image = try decoded(file.bytes)
        #expect(image.metadata.orientation == orientation)
        #expect(image.size == PixelSize(width: orientation < 5 ? 3 : 2, height: orientation < 5 ? 2 : 3))
        // The corner at the stored top left.
        let corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (1, 0), (1, 1), (0, 1)]
        let (right, bottom) = corners[orientation - 1]
        let (x, y) = (right * (image.size.width - 1), bottom * (image.size.height - 1))
        let at = (y * image.size.width + x) * 4
        #expect(Array(image.pixels.bytes[at..<at + 3]) == [10, 20, 30])
    }

    @Test func aProfileIsApplied() throws {
        let profile = ColorProfileFile.swapped.map { Int($0) }
        let image = try decoded(TIFFFile(parts: Self.picture, added: [(34_675, 7, profile)]).bytes)
        #expect(image.metadata.colorProfile == .converted)
        #expect(image.pixels.bytes != Self.rgba(Self.picture))
    }

    @Test func aTargetIsReached() throws {
        let file = try TIFFFile.strips(of: gradient(300, 200))
        let image = try decoded(file.bytes, ImageDecodingOptions(targetSize: PixelSize(width: 30, height: 30)))
        #expect(image.size == PixelSize(width: 30, height: 20))
        #expect(image.metadata.originalSize == PixelSize(width: 300, height: 200))
    }

    /// Kinds of samples that libtiff does not convert, and files that stand for others.
    @Test func otherKindsAreNamed() {
        let floats = TIFFFile(
            width: 1, height: 1, bits: [32, 32, 32], parts: [[UInt8](repeating: 0, count: 12)],
            added: [(339, 3, [3, 3, 3])])
        let raw = TIFFFile(parts: Self.picture, added: [(254, 4, [1]), (330, 4, [8])])
        for (file, word) in [(floats, "32"), (raw, "raw")] {
            let error = #expect(throws: ImageError.self) { try decoded(file.bytes) }
            #expect(error?.kind == .unsupported && error?.message.contains(word) == true, "\(error as Any)")
        }
    }

    @Test func limitsHoldBeforeMemoryIsTaken() {
        let sides: [(tag: Int, type: Int, values: [Int])] = [(256, 4, [60_000]), (257, 4, [60_000])]
        #expect(errorKind(TIFFFile(parts: Self.picture, added: sides).bytes) == .limitExceeded)
        // One tile takes more memory than its part of the picture.
        let tile = TIFFFile(parts: [[1, 2, 3]], tile: (1 << 16, 1 << 16))
        #expect([.limitExceeded, .corrupt, .truncated].contains(errorKind(tile.bytes)))
        let whole = TIFFFile(
            width: 9_000, height: 9_000, parts: [[UInt8](repeating: 0, count: 9_000)], rowsPerStrip: 9_000,
            added: [(279, 4, [9_000 * 9_000 * 3])])
        #expect([.limitExceeded, .truncated].contains(errorKind(whole.bytes)))
    }

    /// The beginnings of TIFF and BigTIFF in both orders of bytes.
    @Test(arguments: ["II*\0\u{8}\0\0\0", "MM\0*\0\0\0\u{8}", "II+\0\u{8}\0\0\0", "MM\0+\0\u{8}\0\0"])
    func aHeaderAloneIsTruncated(text: String) {
        #expect(ImageFormat(sniffing: Data(text.utf8)) == .tiff)
        #expect(errorKind(Array(text.utf8)) == .truncated)
    }

    @Test func missingPartsAreTruncated() throws {
        let picture = try gradient(40, 200)
        let file = TIFFFile.strips(of: picture)
        let bytes = file.bytes
        // The directory is at the end: without it, there is nothing.
        for count in stride(from: 8, to: bytes.count, by: 97) {
            #expect(errorKind(Array(bytes.prefix(count))) == .truncated, "\(count)")
        }
        var far = file
        far.added = [(273, 4, (0..<200).map { $0 < 150 ? 8 + $0 * 120 : 1 << 20 })]
        #expect(errorKind(far.bytes) == .truncated)
        let part = try decoded(far.bytes, ImageDecodingOptions(allowsPartial: true))
        #expect(part.metadata.isPartial && part.pixels.bytes.prefix(3) == picture.pixels.bytes.prefix(3))
    }

    @Test func damagedFilesEndWithAPictureOrAnError() throws {
        decodeMutations(of: TIFFFile(parts: Self.picture, isBig: true).bytes, rounds: 200)
        for name in ["RGBA-tiff_lzw-1024", "1-group4", "RGB-jpeg", "P-packbits-1"] where PillowFixtures.isExpected {
            for entry in try PillowFixtures.entries("\(name).tiff") {
                decodeMutations(of: [UInt8](entry.data), rounds: 100, target: PixelSize(width: 20, height: 20))
            }
        }
    }
}
#endif
