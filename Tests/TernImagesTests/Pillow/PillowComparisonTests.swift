#if os(Linux)
import Foundation
import Testing

@testable import TernImages

/// Compares every pixel with Pillow's, before premultiplication. The pixels are exact, except for JPEG, where decoders
/// may differ slightly.
@Suite(.enabled(if: PillowFixtures.isExpected, PillowFixtures.absence)) struct PillowComparisonTests {
    private let decoder = CodecImageDecoder()

    private func straight() -> ImageDecodingOptions {
        var options = ImageDecodingOptions()
        options.keepsStraightAlpha = true
        options.color = .asStored()
        return options
    }

    /// Describes the pixel that differs the most, if it differs by more than a tolerance.
    private func difference(
        _ pixels: [UInt8], _ expected: ArraySlice<UInt8>, _ size: PixelSize, isExact: Bool
    ) -> String? {
        guard pixels.count == expected.count else { return "\(pixels.count) bytes in place of \(expected.count)" }
        var (worst, place, squares) = (0, 0, 0)
        for (index, pair) in zip(pixels, expected).enumerated() {
            let distance = abs(Int(pair.0) - Int(pair.1))
            squares += distance * distance
            if distance > worst { (worst, place) = (distance, index) }
        }
        if worst == 0 || (!isExact && worst <= 4) { return nil }
        let decibels = 10 * log10(255 * 255 * Double(pixels.count * 3 / 4) / Double(squares))
        if !isExact && decibels >= 40 { return nil }
        let (x, y) = (place / 4 % size.width, place / 4 / size.width)
        return "channel \(place % 4) at (\(x), \(y)) is off by \(worst): \(pixels[place]) in place of "
            + "\(expected[expected.startIndex + place]); \(decibels) dB in all"
    }

    /// Each kind must have a minimum number of files, so that a missing file is noticed.
    @Test(arguments: [
        (".png", 95), (".gif", 16), (".bmp", 16), (".qoi", 9), (".ico", 2), (".webp", 26), (".jpg", 40), (".tiff", 65),
    ])
    func pixelsAreThoseOfPillow(suffix: String, least: Int) throws {
        let entries = try PillowFixtures.entries(suffix)
        #expect(entries.count >= least)
        for entry in entries { try compare(entry) }
    }

    private func compare(_ entry: PillowFixtures.Entry) throws {
        let name = entry.name
        let picture = try decoder.image(from: entry.data, options: straight())
        #expect(picture.size == entry.size, "\(name)")
        let found = difference(
            picture.pixels.bytes, entry.expected(frame: 0), entry.size, isExact: entry.isExact)
        #expect(found == nil, "\(name): \(found ?? "")")
        let frames = try decoder.animation(from: entry.data, options: straight())
        #expect((frames?.count ?? 1) == entry.frameCount, "\(name)")
        for index in 0..<(frames?.count ?? 0) {
            let frame = try #require(try frames?.frame(at: index), "\(name)")
            let found = difference(
                frame.image.pixels.bytes, entry.expected(frame: index), entry.size, isExact: entry.isExact)
            #expect(found == nil, "\(name), frame \(index): \(found ?? "")")
        }
    }

    /// The public interface returns the same pixels, with each colour multiplied by its alpha and rounded.
    @Test func picturesComePremultipliedByRounding() throws {
        for entry in try PillowFixtures.entries() where entry.isExact {
            let options = ImageDecodingOptions(color: .asStored())
            let picture = try decoder.image(from: entry.data, options: options)
            var expected = [UInt8](entry.expected(frame: 0))
            for pixel in stride(from: 0, to: expected.count, by: 4) {
                for channel in pixel..<pixel + 3 {
                    let product = Double(expected[channel]) * Double(expected[pixel + 3]) / 255
                    expected[channel] = UInt8(product.rounded())
                }
            }
            let isSame = picture.pixels.bytes == expected
            #expect(isSame, "\(entry.name)")
        }
    }
}
#endif
