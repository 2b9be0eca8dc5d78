#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Colors that a file states by numbers. The expected levels come from the equations of the standards, computed by
/// another program.
@Suite struct StatedColorTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// The chunks behind the header.
        let chunks: [[UInt8]]
        /// The levels for `colors`.
        let expected: [[UInt8]]

        init(_ name: String, _ chunks: [[UInt8]], _ expected: [[UInt8]]) {
            (testDescription, self.chunks, self.expected) = (name, chunks, expected)
        }
    }

    static let colors: [[UInt8]] = [
        [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [128, 128, 128], [200, 100, 50], [30, 60, 90],
    ]

    static func cicp(_ primaries: UInt8, _ transfer: UInt8, matrix: UInt8 = 0, full: UInt8 = 1) -> [UInt8] {
        chunk("cICP", [primaries, transfer, matrix, full])
    }

    static func gamma(_ value: Int) -> [UInt8] { chunk("gAMA", big(value, 4)) }

    private static func points(_ values: [Int]) -> [UInt8] { chunk("cHRM", values.flatMap { big($0, 4) }) }

    private static let wide = [31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000]
    private static let usual = [31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000]

    private static let pure: [[UInt8]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]
    private static let p3 = pure + [[128, 128, 128], [215, 93, 31], [17, 61, 93]]
    private static let linear = pure + [[188, 188, 188], [229, 168, 122], [96, 133, 160]]

    static let rows = [
        Row("Display P3", [cicp(12, 13)], p3),
        Row("BT.2020 with the curve of sRGB", [cicp(9, 13)], pure + [[128, 128, 128], [241, 76, 29], [0, 62, 93]]),
        Row("BT.2020 with its own curve", [cicp(9, 14)], pure + [[128, 128, 128], [241, 76, 29], [0, 62, 93]]),
        Row("DCI-P3, of another white", [cicp(11, 17)], pure + [[118, 118, 118], [212, 78, 0], [2, 45, 79]]),
        Row(
            "BT.470 M", [cicp(4, 4)],
            [
                [255, 0, 0], [0, 250, 0], [0, 75, 255], [255, 255, 255], [129, 129, 129], [233, 93, 22], [0, 61, 92],
            ]),
        Row("Linear", [cicp(1, 8)], linear),
        Row("PQ", [cicp(9, 16)], pure + [[181, 181, 181], [255, 0, 0], [0, 41, 90]]),
        Row("PQ of P3", [cicp(12, 16)], pure + [[181, 181, 181], [255, 0, 0], [0, 40, 90]]),
        Row("HLG", [cicp(9, 18)], pure + [[137, 137, 137], [255, 61, 23], [0, 59, 87]]),
        Row("gAMA of linear light", [gamma(100_000)], linear),
        Row("gAMA of another power", [gamma(50_000)], pure + [[137, 137, 137], [206, 109, 55], [31, 67, 99]]),
        Row("cICP before a profile and gAMA", [cicp(12, 13), gamma(100_000)], p3),
        Row("cICP behind gAMA", [gamma(100_000), cicp(12, 13)], p3),
        Row("the first cICP", [cicp(12, 13), cicp(9, 16)], p3),
        Row("gAMA in place of a cICP of YCbCr", [cicp(9, 16, matrix: 9), gamma(100_000)], linear),
    ]

    /// Numbers that say sRGB, in one way or another, and those that do not count.
    static let plain = [
        Row("sRGB by cICP", [cicp(1, 13)], colors), Row("BT.709", [cicp(1, 1)], colors),
        Row("gAMA of sRGB", [gamma(45_455)], colors),
        Row("gAMA and cHRM of sRGB", [gamma(45_455), points(usual)], colors),
        Row("sRGB and another gAMA", [chunk("sRGB", [0]), gamma(100_000)], colors),
        Row("cHRM without gAMA", [points(wide)], colors), Row("an impossible gAMA", [gamma(1)], colors),
        Row("cICP of narrow range", [cicp(9, 16, full: 0)], colors),
        Row("a damaged cICP", [Array(cicp(9, 16).dropLast()) + [0]], colors),
    ]

    static func opaque(_ colors: [[UInt8]]) -> [UInt8] {
        var pixels: [UInt8] = []
        for color in colors { pixels += color + [255] }
        return pixels
    }

    /// Returns an image of `colors` in a row.
    static func picture() throws -> RasterImage {
        let size = PixelSize(width: colors.count, height: 1)
        return try #require(RasterImage(size: size, premultiplied: opaque(colors)))
    }

    static func file(_ row: Row) throws -> [UInt8] {
        let png = [UInt8](try picture().encoded(as: .png()))
        return Array(png.prefix(33)) + row.chunks.flatMap(\.self) + Array(png.dropFirst(33))
    }

    private func expect(_ bytes: [UInt8], near expected: [[UInt8]], by most: Int = 1) {
        let wanted = Self.opaque(expected)
        #expect(bytes.count == wanted.count)
        var off = 0
        for (byte, other) in zip(bytes, wanted) { off = max(off, abs(Int(byte) - Int(other))) }
        #expect(off <= most, "\(bytes) in place of \(wanted)")
    }

    @Test(arguments: rows) func numbersAreApplied(row: Row) throws {
        let bytes = try Self.file(row)
        let image = try decoded(bytes)
        expect(image.pixels.bytes, near: row.expected)
        #expect(image.metadata.colorProfile == .converted)
        // In pieces, the picture is the same.
        let pieces = IncrementalDecoder()
        for byte in bytes { try pieces.append(Data([byte])) }
        let whole = try pieces.finish()
        #expect(whole.pixels.bytes == image.pixels.bytes && whole.metadata == image.metadata)
        // Without conversion, the levels are those of the file.
        let raw = try decoded(bytes, ImageDecodingOptions(color: .asStored()))
        expect(raw.pixels.bytes, near: Self.colors, by: 0)
        #expect(raw.metadata.colorProfile == .kept)
    }

    @Test(arguments: plain) func plainColorsStay(row: Row) throws {
        let image = try decoded(try Self.file(row))
        expect(image.pixels.bytes, near: Self.colors, by: 0)
        #expect(image.metadata.colorProfile == .none)
    }

    @Test(arguments: [(3, 13), (9, 9), (0, 16)])
    func unknownNumbersAreNotApplied(primaries: Int, transfer: Int) throws {
        let row = Row("unknown", [Self.cicp(UInt8(primaries), UInt8(transfer))], Self.colors)
        let image = try decoded(try Self.file(row))
        expect(image.pixels.bytes, near: Self.colors, by: 0)
        #expect(image.metadata.colorProfile == .notApplied)
    }

    /// A profile counts before gAMA, and cICP before a profile.
    @Test func aProfileIsBetweenThem() throws {
        let row = Row("linear", [Self.gamma(100_000)], Self.linear)
        let profiled = Tagged.png(try Self.file(row), ColorProfileFile.swapped)
        let alone = Tagged.png(try Self.file(Row("none", [], Self.colors)), ColorProfileFile.swapped)
        #expect(try decoded(profiled).pixels.bytes == decoded(alone).pixels.bytes)
        let stated = Tagged.png(try Self.file(Row("P3", [Self.cicp(12, 13)], Self.p3)), ColorProfileFile.swapped)
        expect(try decoded(stated).pixels.bytes, near: Self.p3)
    }

    /// Alpha is not a color: it stays, and colors are converted before they are multiplied by it.
    @Test func alphaStays() throws {
        let image = try #require(
            RasterImage(size: PixelSize(width: 2, height: 1), premultiplied: [100, 50, 25, 128, 0, 0, 0, 0]))
        let png = [UInt8](try image.encoded(as: .png()))
        let bytes = Array(png.prefix(33)) + Self.gamma(100_000) + Array(png.dropFirst(33))
        let converted = try decoded(bytes).pixels.bytes
        #expect(converted[3] == 128 && converted[4...] == [0, 0, 0, 0])
        #expect(abs(Int(converted[0]) - 115) <= 1 && abs(Int(converted[1]) - 84) <= 1, "\(converted)")
    }

    /// An animation has the colors of its file.
    @Test func framesAreConverted() throws {
        let image = try Self.picture()
        let file = try AnimatedPNGFile(frames: [.init(image: image), .init(image: image)]).bytes
        let bytes = Array(file.prefix(33)) + Self.cicp(12, 13) + Array(file.dropFirst(33))
        let frames = try #require(
            try CodecImageDecoder().animation(from: Data(bytes), options: ImageDecodingOptions()))
        for index in 0..<2 { expect(try frames.frame(at: index).image.pixels.bytes, near: Self.p3) }
    }
}
#endif
