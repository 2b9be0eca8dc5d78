#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Rows that are resized while they are decoded give the same pixels as a whole picture that is resized afterwards.
@Suite struct WindowedResizeTests {
    private let decoder = CodecImageDecoder()

    @Test(arguments: [false, true], [(31, 17), (1, 1), (150, 100), (149, 3), (7, 99)])
    func rowsAndWholePicturesGiveTheSame(alpha: Bool, side: (Int, Int)) throws {
        let data = try gradient(150, 100, alpha: alpha).encoded(as: .png())
        let target = PixelSize(width: side.0, height: side.1)
        let options = ImageDecodingOptions(targetSize: target, contentMode: .atLeast)
        let picture = try decoder.image(from: data, options: options)
        let whole = try decoder.image(from: data, options: ImageDecodingOptions())
        #expect(picture.pixels.bytes == (try whole.resized(to: picture.size)).pixels.bytes)
    }

    /// The first rows are those of the whole picture, and the last rows are empty.
    @Test func aFileCutShortGivesTheRowsThatCame() throws {
        let noise = (0..<200 * 200).flatMap { index -> [UInt8] in
            let grey = UInt8(truncatingIfNeeded: (index &* index &* 2_654_435_761) >> 16)
            return [grey, grey, grey, 255]
        }
        let picture = try #require(RasterImage(size: PixelSize(width: 200, height: 200), premultiplied: noise))
        let data = try picture.encoded(as: .png())
        var options = ImageDecodingOptions(targetSize: PixelSize(width: 50, height: 50))
        let whole = try decoder.image(from: data, options: options)
        options.allowsPartial = true
        let partial = try decoder.image(from: data.prefix(data.count / 2), options: options)
        #expect(partial.metadata.isPartial)
        let some = 15 * partial.bytesPerRow
        #expect(partial.pixels.bytes.prefix(some) == whole.pixels.bytes.prefix(some))
        #expect(partial.pixels.bytes.suffix(some).allSatisfy { $0 == 0 })
    }
}
#endif
