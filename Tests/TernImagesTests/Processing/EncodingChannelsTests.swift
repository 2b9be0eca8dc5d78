#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The channels that an encoded image has, and its pixels after it was decoded again.
@Suite struct EncodingChannelsTests {
    /// The colour type of a PNG file (ISO/IEC 15948 §11.2.2).
    enum ColorType: UInt8, Sendable {
        case grey = 0
        case colors = 2
        case greyAndAlpha = 4
        case colorsAndAlpha = 6
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let type: ColorType
        let size: PixelSize
        /// The premultiplied pixel at an index.
        let pixel: @Sendable (_ index: Int) -> [UInt8]

        init(
            _ name: String, _ type: ColorType, _ width: Int = 61, _ height: Int = 47,
            _ pixel: @escaping @Sendable (Int) -> [UInt8]
        ) {
            testDescription = name
            self.type = type
            size = PixelSize(width: width, height: height)
            self.pixel = pixel
        }

        func image() throws -> RasterImage {
            let bytes = (0..<size.pixelCount).flatMap(pixel)
            return try #require(RasterImage(size: size, premultiplied: bytes))
        }
    }

    private static func byte(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: index) }
    private static let last = 61 * 47 - 1

    static let rows: [Row] = [
        Row("opaque colours", .colors) { [byte($0), byte($0 / 3), byte($0 / 7), 255] },
        Row("opaque greys", .grey) { [byte($0), byte($0), byte($0), 255] },
        Row("greys with alpha", .greyAndAlpha) { index in
            let alpha = byte(index / 5)
            return [alpha / 2, alpha / 2, alpha / 2, alpha]
        },
        Row("colours with alpha", .colorsAndAlpha) { index in
            let alpha = byte(index / 5)
            return [alpha / 2, alpha / 3, alpha, alpha]
        },
        Row("one translucent pixel at the end", .colorsAndAlpha) { [9, 9, 8, $0 == last ? 254 : 255] },
        Row("one coloured pixel at the end", .colors) { [9, 9, $0 == last ? 8 : 9, 255] },
        Row("one coloured pixel before a translucent one", .colorsAndAlpha) { index in
            [9, index == 0 ? 8 : 9, 9, index == last ? 10 : 255]
        },
        Row("nothing but transparency", .greyAndAlpha) { _ in [0, 0, 0, 0] },
        Row("one pixel", .colors, 1, 1) { _ in [1, 2, 3, 255] },
        Row("one row", .grey, 999, 1) { [byte($0), byte($0), byte($0), 255] },
    ]

    @Test(arguments: rows) func aPNGHasTheChannelsThatItNeedsAndEveryPixel(row: Row) throws {
        let image = try row.image()
        for level in [1, 9] {
            let file = [UInt8](try image.encoded(as: .png(level: level)))
            #expect(file[25] == row.type.rawValue)
            let again = try decoded(file)
            #expect(again.size == image.size && again.pixels.bytes == image.pixels.bytes)
            #expect(again.metadata == RasterImage.Metadata(originalSize: image.size))
        }
    }

    /// The bytes arrive one by one, and the file is decoded to a smaller size.
    @Test(arguments: rows) func aPNGOfEachTypeIsDecodedInEveryWay(row: Row) throws {
        let image = try row.image()
        let file = try image.encoded(as: .png())
        let decoder = IncrementalDecoder(options: ImageDecodingOptions())
        for byte in file { try decoder.append(Data([byte])) }
        #expect(try decoder.finish().pixels.bytes == image.pixels.bytes)
        let small = PixelSize(width: 20, height: 20)
        let scaled = try decoded([UInt8](file), ImageDecodingOptions(targetSize: small))
        #expect(scaled.isOpaque || !image.isOpaque)
    }

    /// A photo is smaller than with an alpha channel in which all bytes are 255.
    @Test func anOpaquePictureTakesFewerBytesThanOneWithAlpha() throws {
        let photo = try #require(InterlacedFixtures.photo(160, 120))
        #expect(photo.isOpaque)
        var bytes = photo.pixels.bytes
        bytes[3] = 254
        let translucent = try #require(RasterImage(size: photo.size, premultiplied: bytes))
        let (opaqueCount, alphaCount) = (
            try photo.encoded(as: .png()).count, try translucent.encoded(as: .png()).count
        )
        #expect(opaqueCount < alphaCount * 97 / 100, "\(opaqueCount) of \(alphaCount) bytes")
    }

    /// libwebp finds out by itself.
    @Test(arguments: [false, true]) func aWebPHasAlphaOnlyIfAPixelIsTranslucent(hasAlpha: Bool) throws {
        let image = try gradient(40, 30, alpha: hasAlpha)
        let lossy = [UInt8](try image.encoded(as: .webp()))
        #expect(String(decoding: lossy[12..<16], as: UTF8.self) == (hasAlpha ? "VP8X" : "VP8 "))
        let lossless = [UInt8](try image.encoded(as: .losslessWebP))
        #expect(String(decoding: lossless[12..<16], as: UTF8.self) == "VP8L")
        // The bit behind the two sizes of 14 bits each.
        #expect((lossless[24] & 0x10 != 0) == hasAlpha)
    }
}
#endif
