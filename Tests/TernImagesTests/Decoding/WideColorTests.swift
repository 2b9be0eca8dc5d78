#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Pixels in other color spaces than sRGB, and with other components than bytes. The expected levels come from the
/// equations of the standards, computed by another program.
@Suite struct WideColorTests {
    private static let pq = ImageColorSpace.numbers(.init(primaries: 9, transfer: 16))
    private static let hlg = ImageColorSpace.numbers(.init(primaries: 9, transfer: 18))

    // MARK: The space of the file

    struct Stated: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let chunks: [[UInt8]]
        let profile: [UInt8]?
        /// Nil for a profile that Tern writes.
        let space: ImageColorSpace?
        let metadata: RasterImage.Metadata.ColorProfile

        init(
            _ name: String, _ space: ImageColorSpace?, _ metadata: RasterImage.Metadata.ColorProfile,
            chunks: [[UInt8]] = [], profile: [UInt8]? = nil
        ) {
            (testDescription, self.chunks, self.profile) = (name, chunks, profile)
            (self.space, self.metadata) = (space, metadata)
        }

        func file() throws -> [UInt8] {
            let plain = try StatedColorTests.file(StatedColorTests.Row(testDescription, chunks, []))
            return profile.map { Tagged.png(plain, $0) } ?? plain
        }
    }

    private static func cicp(_ primaries: UInt8, _ transfer: UInt8) -> [[UInt8]] {
        [StatedColorTests.cicp(primaries, transfer)]
    }

    static let stated = [
        Stated("nothing", .sRGB, .none), Stated("sRGB by numbers", .sRGB, .none, chunks: cicp(1, 13)),
        Stated("Display P3 by numbers", .displayP3, .kept, chunks: cicp(12, 13)),
        Stated("PQ", pq, .kept, chunks: cicp(9, 16)),
        Stated("BT.2020", .numbers(.init(primaries: 9, transfer: 14)), .kept, chunks: cicp(9, 14)),
        Stated("unknown numbers", .sRGB, .notApplied, chunks: cicp(3, 13)),
        Stated("linear light by gAMA", nil, .kept, chunks: [StatedColorTests.gamma(100_000)]),
        Stated("a profile", .profile(Data(ColorProfileFile.swapped)), .kept, profile: ColorProfileFile.swapped),
        Stated("a profile of Display P3", .displayP3, .kept, profile: ColorProfileFile.displayP3),
        Stated("a profile of sRGB", .sRGB, .converted, profile: ColorProfileFile.sRGB),
    ]

    /// The levels of the file stay, with its space: converted, they are what a decoder makes of the file, and a PNG
    /// keeps both.
    @Test(arguments: stated) func levelsAreKeptWithTheirSpace(row: Stated) throws {
        let file = try row.file()
        let image = try decoded(file, ImageDecodingOptions(color: .asStored()))
        #expect(image.component == .uint8 && image.metadata.colorProfile == row.metadata)
        #expect(image.pixels.bytes == StatedColorTests.opaque(StatedColorTests.colors))
        if let space = row.space {
            #expect(image.colorSpace == space)
        } else if case .profile = image.colorSpace {
        } else {
            Issue.record("\(image.colorSpace)")
        }
        for color in [ImageDecodingOptions.Color.sRGB, .displayP3] {
            let made = try decoded(file, ImageDecodingOptions(color: color))
            let converted = try image.converted(to: color)
            #expect(made.colorSpace == converted.colorSpace && made.component == .uint8)
            #expect(Self.worst(made.pixels.bytes, converted.pixels.bytes) <= 1)
        }
        let again = try decoded([UInt8](try image.encoded(as: .png())), ImageDecodingOptions(color: .asStored()))
        #expect(again.colorSpace == image.colorSpace && again.pixels.bytes == image.pixels.bytes)
    }

    @Test func damagedProfilesAreNotKept() throws {
        let file = [UInt8](try gradient(8, 8).encoded(as: .jpeg(quality: 100)))
        let swapped = ColorProfileFile.swapped
        for profile in [Array(swapped.prefix(100)), Array(swapped.prefix(160)), [UInt8](repeating: 7, count: 600)] {
            let image = try decoded(Tagged.jpeg(file, profile), ImageDecodingOptions(color: .asStored()))
            #expect(image.colorSpace == .sRGB && image.metadata.colorProfile == .notApplied)
        }
    }

    /// A profile of greys becomes one of colors with the same greys.
    @Test func greysHaveAProfileOfColors() throws {
        let greys = try picture(3, 1, [64, 64, 64, 255, 128, 128, 128, 255, 255, 255, 255, 255])
        let file = Tagged.png([UInt8](try greys.encoded(as: .png())), ColorProfileFile.linearGrey)
        let image = try decoded(file, ImageDecodingOptions(color: .asStored()))
        #expect(image.metadata.colorProfile == .kept && image.pixels.bytes[0] == 64)
        let shown = try image.converted(to: .sRGB)
        #expect(Self.worst(shown.pixels.bytes, try decoded(file).pixels.bytes) <= 1)
        let again = try decoded([UInt8](try image.encoded(as: .png())), ImageDecodingOptions(color: .asStored()))
        #expect(again.colorSpace == image.colorSpace && again.pixels.bytes == image.pixels.bytes)
    }

    /// Levels of sRGB in Display P3.
    private static let narrow: [[UInt8]] = [
        [234, 51, 35], [117, 251, 76], [0, 0, 245], [255, 255, 255], [128, 128, 128], [187, 105, 62], [37, 59, 88],
    ]

    /// Each format gives Display P3, also one without a word about its colors.
    @Test func everyFormatGivesDisplayP3() throws {
        let colors = try StatedColorTests.picture()
        let frame = AnimatedPNGFile.Frame(image: colors)
        let moving = try AnimatedPNGFile(frames: [frame, frame]).bytes
        let files = [
            [UInt8](try colors.encoded(as: .png())), [UInt8](try colors.encoded(as: .losslessWebP)), moving,
            [UInt8](InterlacedFixtures.gif(colors, interlaced: false, frames: 1)),
        ]
        for file in files {
            let image = try decoded(file, ImageDecodingOptions(color: .displayP3))
            #expect(image.colorSpace == .displayP3)
            let expected = try decoded(file).converted(to: .displayP3)
            #expect(Self.worst(image.pixels.bytes, expected.pixels.bytes) <= 1)
        }
        let image = try decoded(files[0], ImageDecodingOptions(color: .displayP3))
        #expect(Self.worst(image.pixels.bytes, StatedColorTests.opaque(Self.narrow)) <= 1)
    }

    // MARK: Components

    private static let wide: [[UInt16]] = [
        [65_535, 0, 0], [65_535, 65_535, 65_535], [32_896, 32_896, 32_896], [51_400, 25_700, 12_850],
        [7_710, 15_420, 23_130], [30_000, 30_001, 29_000], [38_000, 33_000, 20_000], [1_000, 2_000, 3_000],
    ]

    static let toned: [(ImageColorSpace, ImageDecodingOptions.Color, [[UInt8]])] = [
        (
            pq, .sRGB,
            [
                [255, 0, 0], [255, 255, 255], [181, 181, 181], [255, 0, 0], [0, 41, 90], [149, 148, 136],
                [255, 154, 0], [0, 0, 1],
            ]
        ),
        (
            pq, .displayP3,
            [
                [255, 0, 9], [255, 255, 255], [181, 181, 181], [255, 0, 13], [0, 40, 87], [148, 148, 137],
                [248, 159, 54], [0, 0, 1],
            ]
        ),
        (
            hlg, .sRGB,
            [
                [255, 0, 0], [255, 255, 255], [137, 137, 137], [255, 61, 23], [0, 59, 87], [124, 124, 120],
                [176, 136, 77], [0, 1, 2],
            ]
        ),
        (
            hlg, .displayP3,
            [
                [255, 0, 9], [255, 255, 255], [137, 137, 137], [255, 83, 50], [0, 57, 85], [124, 124, 120],
                [170, 138, 86], [0, 1, 2],
            ]
        ),
    ]

    /// Returns a PNG of 16 bits.
    private static func deepFile(_ colors: [[UInt16]], _ space: ImageColorSpace) throws -> [UInt8] {
        let size = PixelSize(width: colors.count, height: 1)
        let bytes = Self.bytes(colors.flatMap { $0 + [65_535] })
        let image = try #require(
            RasterImage(size: size, premultiplied: bytes, component: .uint16, colorSpace: space))
        return [UInt8](try image.encoded(as: .png()))
    }

    /// Light is mapped from the levels of the file, not from their upper bytes.
    @Test(arguments: toned.indices) func lightIsMappedFromSixteenBits(row: Int) throws {
        let (space, color, expected) = Self.toned[row]
        let file = try Self.deepFile(Self.wide, space)
        let options = ImageDecodingOptions(color: color)
        let image = try decoded(file, options)
        #expect(image.component == .uint8 && image.metadata.colorProfile == .converted)
        #expect(image.colorSpace == (color == .displayP3 ? .displayP3 : .sRGB))
        #expect(Self.worst(image.pixels.bytes, StatedColorTests.opaque(expected)) <= 1, "\(image.pixels.bytes)")
        // In pieces, the picture is the same.
        let pieces = IncrementalDecoder(options: options)
        for byte in file { try pieces.append(Data([byte])) }
        let whole = try pieces.finish()
        #expect(whole.pixels.bytes == image.pixels.bytes && whole.metadata == image.metadata)
    }

    /// A ramp has every level, where eight bits have gaps.
    @Test func rampsHaveNoBands() throws {
        let ramp = (0..<512).map { [UInt16](repeating: UInt16(20_000 + $0 * 39), count: 3) }
        func levels(_ image: RasterImage) -> Set<UInt8> {
            Set(stride(from: 0, to: image.byteCount, by: 4).map { image.pixels.bytes[$0] })
        }
        let fine = levels(try decoded(try Self.deepFile(ramp, Self.pq)))
        #expect(fine.isSuperset(of: 66...234))
        let size = PixelSize(width: ramp.count, height: 1)
        let coarse = ramp.flatMap { $0.map { UInt8(($0 + 128) / 257) } + [255] }
        let image = try #require(RasterImage(size: size, premultiplied: coarse, colorSpace: Self.pq))
        #expect(levels(try decoded([UInt8](try image.encoded(as: .png())))).count < 100)
    }

    @Test func sixteenBitsAreKept() throws {
        let file = try Self.deepFile(Self.wide, Self.hlg)
        let image = try decoded(file, ImageDecodingOptions(color: .asStored(.uint16)))
        #expect(image.component == .uint16 && image.colorSpace == Self.hlg && image.bytesPerRow == 8 * 8)
        #expect(Self.words(image) == Self.wide.flatMap { $0 + [65_535] })
        let halves = try decoded(file, ImageDecodingOptions(color: .asStored(.float16)))
        #expect(halves.component == .float16 && halves.colorSpace == Self.hlg && halves.isOpaque)
        for (half, level) in zip(Self.words(halves), Self.words(image)) {
            let exact = Double(level) / 65_535
            #expect(abs(Self.number(ofHalf: half) - exact) <= exact / 2_048)
        }
        // The default is eight bits.
        #expect(try decoded(file, ImageDecodingOptions(color: .asStored())).component == .uint8)
    }

    @Test func alphaOfSixteenBitsIsMultiplied() throws {
        let bytes = Self.bytes([10_000, 20_000, 30_000, 40_000, 0, 0, 0, 0])
        let image = try #require(
            RasterImage(size: PixelSize(width: 2, height: 1), premultiplied: bytes, component: .uint16))
        let file = [UInt8](try image.encoded(as: .png()))
        let again = Self.words(try decoded(file, ImageDecodingOptions(color: .asStored(.uint16))))
        #expect(zip(again, Self.words(image)).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(again)")
        #expect(again[3] == 40_000 && again[4...] == [0, 0, 0, 0])
    }

    /// Files of eight bits give sixteen, from every decoder and by every way to a size.
    @Test func eightBitsAreWidened() throws {
        let photo = try gradient(40, 30)
        let frame = AnimatedPNGFile.Frame(image: photo)
        let files = [
            [UInt8](try photo.encoded(as: .jpeg())), [UInt8](try photo.encoded(as: .png())),
            [UInt8](try photo.encoded(as: .losslessWebP)), try AnimatedPNGFile(frames: [frame, frame]).bytes,
            [UInt8](InterlacedFixtures.gif(photo, interlaced: false, frames: 1)),
        ]
        for file in files {
            let bytes = try decoded(file, ImageDecodingOptions(color: .asStored()))
            let words = try decoded(file, ImageDecodingOptions(color: .asStored(.uint16)))
            #expect(Self.words(words) == bytes.pixels.bytes.map { UInt16($0) * 257 })
            #expect(words.metadata == bytes.metadata && words.colorSpace == .sRGB)
            let target = PixelSize(width: 11, height: 9)
            let small = try decoded(file, ImageDecodingOptions(targetSize: target, color: .asStored()))
            let deep = try decoded(file, ImageDecodingOptions(targetSize: target, color: .asStored(.uint16)))
            #expect(deep.size == small.size && deep.component == .uint16)
            #expect(zip(Self.words(deep), small.pixels.bytes).allSatisfy { abs(Int($0) / 257 - Int($1)) <= 2 })
            let pieces = IncrementalDecoder(options: ImageDecodingOptions(color: .asStored(.uint16)))
            try pieces.append(Data(file.prefix(100)))
            try pieces.append(Data(file.dropFirst(100)))
            #expect(try pieces.finish().pixels.bytes == words.pixels.bytes)
        }
    }

    @Test(.enabled(if: LoadedLibrary.jpegXL.obstacle == nil, "libjxl is not installed: scripts/set-up test"))
    func jpegXLGivesItsSixteenBits() throws {
        let image = try decoded(JPEGXLFiles.deep, ImageDecodingOptions(color: .asStored(.uint16)))
        #expect(image.component == .uint16 && image.size == PixelSize(width: 24, height: 16))
        var expected: [UInt16] = []
        for (x, y) in (0..<16).flatMap({ y in (0..<24).map { ($0, y) } }) {
            let pixel: [Int] = [2_800 * x, 4_000 * y, 1_500 * (x + y), 65_535]
            expected += pixel.map { UInt16($0) }
        }
        #expect(Self.words(image) == expected)
    }

    @Test(.enabled(if: LoadedLibrary.avif.obstacle == nil, "libavif is not installed: scripts/set-up test"))
    func avifGivesItsTenBits() throws {
        let stored = try decoded(AVIFFiles.deep, ImageDecodingOptions(color: .asStored(.uint16)))
        #expect(stored.colorSpace == Self.pq && stored.component == .uint16)
        let words = Self.words(stored)
        // Ten bits are 64 levels apart.
        #expect((0..<64).allSatisfy { abs(Int(words[$0 * 4]) - (20_000 + $0 * 320)) <= 100 })
        let shown = try decoded(AVIFFiles.deep)
        #expect(shown.component == .uint8 && shown.colorSpace == .sRGB)
        let levels = Set((0..<64).map { shown.pixels.bytes[$0 * 4] })
        // With eight bits there are 50.
        #expect(levels.count > 60)
        #expect(Self.worst(shown.pixels.bytes, try stored.converted(to: .sRGB).pixels.bytes) <= 1)
    }

    @Test func sixteenBitsTakeTwiceTheMemory() throws {
        let file = [UInt8](try gradient(1_000, 500).encoded(as: .png()))
        let limits = ImageDecodingOptions.Limits(memory: 5 << 20)
        #expect(throws: Never.self) { try decoded(file, ImageDecodingOptions(limits: limits, color: .asStored())) }
        let error = #expect(throws: ImageError.self) {
            try decoded(file, ImageDecodingOptions(limits: limits, color: .asStored(.uint16)))
        }
        #expect(error?.kind == .limitExceeded)
        // Half the pixels fit into a number of bytes.
        let options = ImageDecodingOptions(byteLimit: 80_000, color: .asStored(.uint16))
        #expect(try decoded(file, options).byteCount <= 80_000)
    }

    @Test func damagedDeepFilesEndInAnErrorOrAPicture() throws {
        let file = try Self.deepFile((0..<300).map { [UInt16($0 * 200), 9, UInt16($0)] }, Self.pq)
        for options in [ImageDecodingOptions(), ImageDecodingOptions(color: .asStored(.float16))] {
            for count in stride(from: 0, to: file.count, by: 7) {
                var partial = options
                partial.allowsPartial = true
                _ = try? decoded(Array(file.prefix(count)), options)
                _ = try? decoded(Array(file.prefix(count)), partial)
            }
        }
    }

    // MARK: Light

    /// A fine pattern of black and white has half the light, which is the level 188, and half the level without.
    @Test func checkerboardsKeepTheirLight() throws {
        let bytes = (0..<64 * 64).flatMap { at -> [UInt8] in
            let level: UInt8 = (at / 64 + at) % 2 == 0 ? 0 : 255
            return [level, level, level, 255]
        }
        let board = try picture(64, 64, bytes)
        let target = PixelSize(width: 16, height: 16)
        func expect(_ image: RasterImage, _ level: Int) {
            #expect(image.size == target)
            for (index, byte) in image.pixels.bytes.enumerated() {
                #expect(index % 4 == 3 ? byte == 255 : abs(Int(byte) - level) <= 1)
            }
        }
        expect(try board.resized(to: target), 128)
        expect(try board.resized(to: target, inLinearLight: true), 188)
        expect(try ImageProcessors.Resize(to: target, inLinearLight: true).process(board), 188)
        let files = [
            [UInt8](try board.encoded(as: .png())), [UInt8](try board.encoded(as: .losslessWebP)),
            [UInt8](try board.encoded(as: .jpeg(quality: 100))),
        ]
        for file in files {
            expect(try decoded(file, ImageDecodingOptions(targetSize: target)), 128)
            for color in [ImageDecodingOptions.Color.sRGB, .displayP3, .asStored(.uint8)] {
                let options = ImageDecodingOptions(targetSize: target, color: color, resizesInLinearLight: true)
                expect(try decoded(file, options), 188)
            }
            let options = ImageDecodingOptions(
                targetSize: target, color: .asStored(.uint16), resizesInLinearLight: true)
            let deep = try decoded(file, options)
            #expect(Self.words(deep).enumerated().allSatisfy { $0 % 4 == 3 || abs(Int($1) - 188 * 257) <= 400 })
        }
    }

    /// Transparent pixels add no light of their own, and the color of the others stays.
    @Test func alphaWeighsLight() throws {
        let bytes = (0..<32 * 32).flatMap { at -> [UInt8] in at % 2 == 0 ? [100, 50, 200, 255] : [0, 0, 0, 0] }
        let board = try picture(32, 32, bytes)
        let small = try board.resized(to: PixelSize(width: 8, height: 8), inLinearLight: true).pixels.bytes
        // In the middle, where no window of pixels is cut off.
        for at in stride(from: 0, to: small.count, by: 4) where (3...4).contains(at / 4 % 8) {
            let alpha = Int(small[at + 3])
            #expect(abs(alpha - 128) <= 1)
            for (channel, level) in [100, 50, 200].enumerated() {
                #expect(abs(Int(small[at + channel]) - level * alpha / 255) <= 1)
            }
        }
    }

    /// Levels of PQ are averaged as they are.
    @Test func otherCurvesAreNotAveraged() throws {
        let file = try Self.deepFile(Self.wide, Self.pq)
        let target = PixelSize(width: 3, height: 1)
        var options = ImageDecodingOptions(targetSize: target, color: .asStored(.uint16))
        let plain = try decoded(file, options)
        options.resizesInLinearLight = true
        #expect(try decoded(file, options).pixels.bytes == plain.pixels.bytes)
        let whole = try decoded(file, ImageDecodingOptions(color: .asStored(.uint16)))
        let error = #expect(throws: ImageError.self) { try whole.resized(to: target, inLinearLight: true) }
        #expect(error?.kind == .unsupported)
    }

    // MARK: Help

    private static func worst(_ one: [UInt8], _ other: [UInt8]) -> Int {
        guard one.count == other.count else { return .max }
        return zip(one, other).map { abs(Int($0) - Int($1)) }.max() ?? 0
    }

    private static func bytes(_ words: [UInt16]) -> [UInt8] {
        words.flatMap { unsafe withUnsafeBytes(of: $0) { unsafe Array($0) } }
    }

    static func words(_ image: RasterImage) -> [UInt16] {
        stride(from: 0, to: image.byteCount, by: 2).map { at in
            let (low, high) = (UInt16(image.pixels.bytes[at]), UInt16(image.pixels.bytes[at + 1]))
            return UInt16(littleEndian: high << 8 | low)
        }
    }

    /// Returns a positive half float.
    static func number(ofHalf word: UInt16) -> Double {
        let (exponent, fraction) = (Int(word >> 10), Double(word & 1_023))
        if exponent == 0 { return fraction / 0x1p24 }
        return Double(sign: .plus, exponent: exponent - 15, significand: 1 + fraction / 1_024)
    }
}
#endif
