#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The previews of a JPEG XL. `IncrementalAgreementTests` compares its last image with that of the whole file.
@Suite(.enabled(if: LoadedLibrary.jpegXL.obstacle == nil, "libjxl is not installed: scripts/set-up test"))
struct JPEGXLPreviewTests {
    private static func file(_ width: Int, _ height: Int) throws -> Data {
        try #require(InterlacedFixtures.photo(width, height)).encoded(as: .jpegXL(quality: 80))
    }

    private static func whole(_ file: Data) throws -> RasterImage {
        try CodecImageDecoder().image(from: file, options: ImageDecodingOptions())
    }

    /// Compares a part of the bytes, which is spread over the picture.
    private static func meanSquare(_ left: RasterImage, _ right: RasterImage) -> Double {
        let (left, right) = (left.pixels.bytes, right.pixels.bytes)
        let places = stride(from: 0, to: min(left.count, right.count), by: 29)
        let sum = places.reduce(0.0) { sum, at in
            let difference = Double(left[at]) - Double(right[at])
            return sum + difference * difference
        }
        return sum / Double(left.count / 29)
    }

    @Test func previewsShowTheWholePictureWithMoreAndMoreDetail() throws {
        let file = try Self.file(640, 520)
        let (previews, final) = try feed(file, by: file.count / 40, to: IncrementalDecoder())
        #expect(final.pixels.bytes == (try Self.whole(file)).pixels.bytes)
        #expect(!final.metadata.isPartial)
        #expect(previews.count >= 2)
        #expect(previews.allSatisfy { $0.metadata.isPartial && $0.size == final.size && $0.isOpaque })
        let errors = previews.map { Self.meanSquare($0, final) }
        for (earlier, later) in zip(errors, errors.dropFirst()) { #expect(later < earlier) }
        // Nowhere is a hole: an eighth of the size is near the picture everywhere.
        let first = try #require(previews.first)
        #expect(Self.meanSquare(first, final) < 500)
        let pixels = first.pixels.bytes
        let darkest = stride(from: 2, to: pixels.count, by: 4 * 13).map { pixels[$0] }.min()
        #expect(try #require(darkest) > 100)
    }

    @Test func previewsHaveTheSizeOfTheTarget() throws {
        let file = try Self.file(640, 520)
        let options = ImageDecodingOptions(targetSize: PixelSize(width: 64, height: 52))
        let (previews, final) = try feed(file, by: file.count / 20, to: IncrementalDecoder(options: options))
        #expect(final.size == PixelSize(width: 64, height: 52))
        #expect(!previews.isEmpty && previews.allSatisfy { $0.size == final.size })
    }

    /// Each preview is a decoding of all bytes so far, so their number must not grow with that of the pieces.
    @Test func theWorkOfPreviewsIsBounded() throws {
        let file = try Self.file(600, 400)
        let decoder = IncrementalDecoder()
        var boundaries = 0
        for byte in file where try decoder.append(Data([byte])) {
            boundaries += 1
            while try decoder.advance() { boundaries += 1 }
        }
        var (most, bytes) = (1, 1_024.0)
        while bytes < Double(file.count) {
            bytes *= 1.5
            most += 1
        }
        #expect(boundaries > 0 && boundaries <= most)
        #expect(decoder.bytesCopied <= 4 * file.count)
    }

    @Test func anImageOfMoreMemoryThanAllowedHasNoPreviews() throws {
        let file = try Self.file(600, 400)
        let options = ImageDecodingOptions(limits: .init(memory: 100_000))
        let decoder = IncrementalDecoder(options: options)
        let error = #expect(throws: ImageError.self) { _ = try feed(file, by: file.count / 10, to: decoder) }
        #expect(error?.kind == .limitExceeded)
    }

    @Test func anAnimationShowsItsFirstFrame() throws {
        let decoder = IncrementalDecoder()
        let file = Data(JPEGXLFiles.animation)
        let (_, final) = try feed(file, by: 10, to: decoder)
        #expect(decoder.isAnimation)
        #expect(final.pixels.bytes == (try Self.whole(file)).pixels.bytes)
    }

    @Test func componentsOf16BitsHaveNoPreviews() throws {
        let file = try Self.file(600, 400)
        var options = ImageDecodingOptions()
        options.color = .asStored(.uint16)
        let (previews, final) = try feed(file, by: file.count / 10, to: IncrementalDecoder(options: options))
        #expect(previews.isEmpty && final.component == .uint16)
    }
}
#endif
