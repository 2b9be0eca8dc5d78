#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The places where files state an orientation, and those that count. Every way of decoding reads the same one.
@Suite struct OrientationTests {
    private static let size = PixelSize(width: 24, height: 16)

    /// Returns EXIF data whose only entry is the orientation.
    private static func exif(_ orientation: Int, prefix: Bool = false) -> [UInt8] {
        let entry: [UInt8] = [1, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0]
        return (prefix ? Array("Exif".utf8) + [0, 0] : [])
            + [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1] + entry + [0, 0, 0, 0]
    }

    private static func photo() throws -> RasterImage {
        try #require(InterlacedFixtures.photo(size.width, size.height))
    }

    /// Returns a PNG with chunks before and behind its data.
    private static func png(_ before: [UInt8], _ behind: [UInt8], frames: Bool = false) throws -> [UInt8] {
        let file =
            frames
            ? try AnimatedPNGFile(frames: [.init(image: photo()), .init(image: try gradient(24, 16))]).bytes
            : [UInt8](InterlacedFixtures.png(try photo(), interlaced: false))
        return Array(file.prefix(33)) + before + file.dropFirst(33).dropLast(12) + behind + file.suffix(12)
    }

    private static func jpeg(_ segments: [[UInt8]]) throws -> [UInt8] {
        let file = [UInt8](try photo().encoded(as: .jpeg()))
        let added = segments.flatMap { (segment: [UInt8]) -> [UInt8] in
            [0xFF, 0xE1] + big(segment.count + 2, 2) + segment
        }
        return Array(file.prefix(2)) + added + file.dropFirst(2)
    }

    private static func webp(_ chunks: [[UInt8]]) throws -> [UInt8] {
        let file = [UInt8](try photo().encoded(as: .losslessWebP))
        let place = little(size.width - 1, 3) + little(size.height - 1, 3)
        let extended = AnimatedWebPFile.chunk("VP8X", [0x08, 0, 0, 0] + place)
        return AnimatedWebPFile.chunk(
            "RIFF",
            Array("WEBP".utf8) + extended + file.dropFirst(12)
                + chunks.flatMap { AnimatedWebPFile.chunk("EXIF", $0) })
    }

    /// Returns the chunk with a checksum that is wrong.
    private static func damaged(_ chunk: [UInt8]) -> [UInt8] { chunk.dropLast() + [chunk.last.map { $0 ^ 1 } ?? 0] }

    struct Place: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let orientation: Int
        let bytes: @Sendable () throws -> [UInt8]
    }

    private static func six(_ orientation: Int = 6, prefix: Bool = false) -> [UInt8] {
        chunk("eXIf", exif(orientation, prefix: prefix))
    }

    static let places: [Place] = [
        Place(testDescription: "PNG, before the data", orientation: 6) { try png(six(), []) },
        Place(testDescription: "PNG, with the prefix of JPEG", orientation: 6) { try png(six(prefix: true), []) },
        Place(testDescription: "PNG, behind the data", orientation: 6) { try png([], six()) },
        Place(testDescription: "PNG, behind the data, with the prefix", orientation: 3) {
            try png([], six(3, prefix: true))
        },
        Place(testDescription: "PNG, twice before the data", orientation: 6) { try png(six() + six(1), []) },
        Place(testDescription: "PNG, 1 and then 6", orientation: 1) { try png(six(1) + six(), []) },
        Place(testDescription: "PNG, before and behind the data", orientation: 8) { try png(six(8), six()) },
        Place(testDescription: "PNG, a wrong checksum first", orientation: 6) {
            try png(damaged(six(3)) + six(), [])
        },
        Place(testDescription: "PNG, a wrong checksum behind the data", orientation: 1) {
            try png([], damaged(six()))
        },
        Place(testDescription: "PNG, without an orientation and then 6", orientation: 1) {
            try png(chunk("eXIf", [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]) + six(), [])
        },
        Place(testDescription: "PNG, empty and then 6", orientation: 1) { try png(chunk("eXIf", []) + six(), []) },
        Place(testDescription: "APNG, before the data", orientation: 6) { try png(six(), [], frames: true) },
        Place(testDescription: "APNG, behind the frames", orientation: 6) { try png([], six(), frames: true) },
        Place(testDescription: "APNG, before and behind", orientation: 5) { try png(six(5), six(), frames: true) },
        Place(testDescription: "JPEG", orientation: 6) { try jpeg([exif(6, prefix: true)]) },
        Place(testDescription: "JPEG, 6 and then 1", orientation: 6) {
            try jpeg([exif(6, prefix: true), exif(1, prefix: true)])
        },
        Place(testDescription: "JPEG, 1 and then 6", orientation: 1) {
            try jpeg([exif(1, prefix: true), exif(6, prefix: true)])
        },
        Place(testDescription: "JPEG, XMP and then 6", orientation: 6) {
            try jpeg([Array("http://ns.adobe.com/xap/1.0/".utf8) + [0, 60, 62], exif(6, prefix: true)])
        },
        Place(testDescription: "WebP", orientation: 6) { try webp([exif(6)]) },
        Place(testDescription: "WebP, with the prefix of JPEG", orientation: 6) {
            try webp([exif(6, prefix: true)])
        },
        Place(testDescription: "WebP, 6 and then 1", orientation: 6) { try webp([exif(6), exif(1)]) },
    ]

    @Test(arguments: places) func everyWayReadsTheSameOrientation(place: Place) throws {
        let bytes = try place.bytes()
        let turned = place.orientation >= 5
        for target in [nil, PixelSize(width: 12, height: 12)] {
            let options = ImageDecodingOptions(targetSize: target)
            let whole = try decoded(bytes, options)
            #expect(whole.metadata.orientation == place.orientation)
            #expect(whole.metadata.originalSize == (turned ? Self.size.turned : Self.size))
            for size in [1, 7, 300, bytes.count] {
                let decoder = IncrementalDecoder(options: options)
                for start in stride(from: 0, to: bytes.count, by: size) {
                    var stands = try decoder.append(Data(bytes[start..<min(bytes.count, start + size)]))
                    while stands { stands = try decoder.advance() }
                }
                let pieces = try decoder.finish()
                #expect(pieces.metadata == whole.metadata)
                #expect(pieces.size == whole.size)
                #expect(pieces.pixels.bytes == whole.pixels.bytes)
            }
            guard let frames = try CodecImageDecoder().animation(from: Data(bytes), options: options) else { continue }
            #expect(try frames.frame(at: 0).image.pixels.bytes == whole.pixels.bytes)
            #expect(try frames.frame(at: 1).image.metadata.orientation == place.orientation)
        }
    }
}
#endif
