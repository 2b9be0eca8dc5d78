#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#endif

/// Compares thumbnails of JPEGs with those of the whole picture. libjpeg scales by eighths and rounds a picture's sides
/// up, and only the visible part of its result is resized.
@Suite struct ScaledJPEGTests {
    /// Returns a picture with a few waves along both sides and a slope. The smallest thumbnail still shows them, so
    /// that shifts are visible.
    private static func picture(_ width: Int, _ height: Int) throws -> RasterImage {
        var pixels = [UInt8](repeating: 255, count: width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                let (across, down) = (Double(x), Double(y))
                let wave = sin(across / Double(width) * 33) * cos(down / Double(height) * 28) * 80 + 128
                let at = (y * width + x) * 4
                pixels[at] = UInt8(wave)
                pixels[at + 1] = UInt8(wave / 2 + across / Double(width) * 120)
                pixels[at + 2] = UInt8(255 - wave / 2 - down / Double(height) * 120)
            }
        }
        return try #require(RasterImage(size: PixelSize(width: width, height: height), premultiplied: pixels))
    }

    private static func difference(_ one: RasterImage, _ other: RasterImage) -> Double {
        let squares = zip(one.pixels.bytes, other.pixels.bytes).reduce(into: 0) { sum, pair in
            let distance = Int(pair.0) - Int(pair.1)
            sum += distance * distance
        }
        guard squares > 0 else { return .infinity }
        // Alpha is the same everywhere, so it does not count.
        return 10 * log10(255 * 255 / (Double(squares) / Double(one.pixels.bytes.count * 3 / 4)))
    }

    @Test(arguments: [(1_000, 667), (1_001, 667), (1_003, 751), (801, 1_207), (999, 333), (643, 477), (1_023, 769)])
    func aThumbnailIsThatOfTheWholePicture(side: (Int, Int)) throws {
        let whole = try Self.picture(side.0, side.1)
        for isProgressive in [false, true] {
            let file = try whole.encoded(as: .jpeg(quality: 95, progressive: isProgressive))
            let full = try CodecImageDecoder().image(from: file, options: ImageDecodingOptions())
            for length in [60, 100, 151] {
                let options = ImageDecodingOptions(targetSize: PixelSize(width: length, height: length))
                let small = try CodecImageDecoder().image(from: file, options: options)
                let decoder = IncrementalDecoder(options: options)
                var stands = try decoder.append(file)
                while stands { stands = try decoder.advance() }
                #expect(try decoder.finish().pixels.bytes == small.pixels.bytes)
                let measured = Self.difference(small, try full.resized(to: small.size))
                #expect(measured >= 50, "\(side) to \(small.size): \(measured) dB")
            }
        }
    }
}
#endif
