#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file of the Quite OK Image format, chunk by chunk.
struct QOIFile {
    var size: PixelSize
    var channels: UInt8 = 4
    var chunks: [UInt8]
    var marker: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]

    var bytes: [UInt8] {
        let sides = [size.width, size.height].flatMap { side in [24, 16, 8, 0].map { UInt8(side >> $0 & 255) } }
        return Array("qoif".utf8) + sides + [channels, 0] + chunks + marker
    }

    /// Returns a chunk of its own for each pixel of an opaque picture.
    static func chunks(of image: RasterImage) -> [UInt8] {
        stride(from: 0, to: image.pixels.bytes.count, by: 4).flatMap { [0xFF] + image.pixels.bytes[$0..<$0 + 4] }
    }
}

@Suite struct QOIDecodingTests {
    /// The first pixel before is opaque black. Results are premultiplied.
    static let rows: [(width: Int, channels: UInt8, chunks: [UInt8], last: [UInt8])] = [
        (1, 4, [0xC0], [0, 0, 0, 255]),
        (3, 4, [0xFE, 10, 20, 30, 0xC1], [10, 20, 30, 255]),
        (1, 4, [0xFF, 255, 0, 0, 128], [128, 0, 0, 128]),
        (1, 3, [0xFF, 255, 0, 0, 128], [255, 0, 0, 255]),
        // Differences wrap around.
        (1, 4, [0b01_00_10_11], [254, 0, 1, 255]),
        (1, 4, [0b10_100001, 0b1001_0111], [2, 1, 0, 255]),
        // The place of a pixel comes from its channels, here 9; a place without one is clear.
        (3, 4, [0xFE, 10, 20, 30, 0xFE, 1, 1, 1, 9], [10, 20, 30, 255]),
        (1, 4, [1], [0, 0, 0, 0]),
    ]

    @Test(arguments: rows)
    func eachKindOfChunkIsRead(width: Int, channels: UInt8, chunks: [UInt8], last: [UInt8]) throws {
        let size = PixelSize(width: width, height: 1)
        let picture = try decoded(QOIFile(size: size, channels: channels, chunks: chunks).bytes)
        #expect(Array(picture.pixels.bytes.suffix(4)) == last)
    }

    @Test func runsCrossRows() throws {
        let file = QOIFile(size: PixelSize(width: 2, height: 3), chunks: [0xFE, 9, 9, 9, 0xC4])
        #expect(try decoded(file.bytes).pixels.bytes == Array(repeating: [9, 9, 9, 255], count: 6).flatMap(\.self))
        #expect(try decoded(file.bytes).metadata.isComplete)
    }

    /// The bytes of the marker are no pixels, although they could be.
    @Test func theMarkerIsNoPixel() throws {
        var file = QOIFile(size: PixelSize(width: 3, height: 1), chunks: [0xFE, 9, 9, 9])
        #expect(errorKind(file.bytes) == .truncated)
        file.chunks += [0xC1]
        file.marker = []
        #expect(try !decoded(file.bytes).metadata.isComplete)
    }

    @Test(arguments: [(0, 1, 4), (1, 0, 4), (1 << 31, 1, 4), (1, 1, 2), (1, 1, 5)])
    func impossibleHeadersAreRefused(width: Int, height: Int, channels: Int) {
        let size = PixelSize(width: width, height: height)
        #expect(errorKind(QOIFile(size: size, channels: UInt8(channels), chunks: [0xC0]).bytes) == .corrupt)
    }

    @Test func limitsHoldBeforeMemoryIsTaken() {
        let size = PixelSize(width: 60_000, height: 60_000)
        #expect(errorKind(QOIFile(size: size, chunks: [0xFD]).bytes) == .limitExceeded)
    }

    @Test func aCursorIsAnIcon() throws {
        let picture = BitmapFile(width: 1, height: 1, bits: 32, pixels: [1, 2, 200, 255])
        var bytes = IconFile(entries: [IconFile.entry(picture, mask: [[false]])]).bytes
        bytes[2] = 2
        #expect(ImageFormat(sniffing: Data(bytes)) == .cur)
        let image = try decoded(bytes)
        #expect(image.format == .cur && image.pixels.bytes == [200, 2, 1, 255])
    }
}
#endif
