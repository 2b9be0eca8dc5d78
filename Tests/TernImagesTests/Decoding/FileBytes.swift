#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Returns the lowest bytes of a number, lowest byte first, as in Windows formats and GIF.
func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }

/// Returns the lowest bytes of a number, highest byte first, as in PNG.
func big(_ value: Int, _ count: Int) -> [UInt8] { little(value, count).reversed() }

/// Decodes the bytes. Arguments that are left out have their default.
func decoded(
    _ bytes: [UInt8], _ options: ImageDecodingOptions = ImageDecodingOptions()
) throws(ImageError) -> RasterImage {
    try CodecImageDecoder().image(from: Data(bytes), options: options)
}

/// Returns the kind of the error that decoding throws; nil if it returns a picture.
func errorKind(_ bytes: [UInt8], _ options: ImageDecodingOptions = ImageDecodingOptions()) -> ImageError.Kind? {
    do throws(ImageError) {
        _ = try decoded(bytes, options)
        return nil
    } catch {
        return error.kind
    }
}

/// Decodes mutations of a file, which are the same in every run. Each must end with a picture or an error, not with a
/// crash.
func decodeMutations(of bytes: [UInt8], rounds: Int = 64, target: PixelSize? = nil) {
    var state: UInt64 = 42
    func random(_ below: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % below
    }
    for round in 0..<rounds {
        var mutated = bytes
        switch round % 4 {
        case 0: mutated.removeLast(random(mutated.count))
        case 1:
            mutated.insert(contentsOf: repeatElement(UInt8(random(256)), count: random(40)), at: random(bytes.count))
        default: break
        }
        // Half of the changes are in the headers, where they have the most effect.
        for _ in 0...random(6) where !mutated.isEmpty {
            mutated[random(random(2) == 0 ? min(mutated.count, 64) : mutated.count)] = UInt8(random(256))
        }
        let options = ImageDecodingOptions(
            targetSize: target, limits: .init(pixels: 1_000_000), allowsPartial: round.isMultiple(of: 3))
        do throws(ImageError) {
            let picture = try decoded(mutated, options)
            #expect(picture.byteCount == picture.size.pixelCount * 4)
            if let frames = try CodecImageDecoder().animation(from: Data(mutated), options: options) {
                for index in 0..<min(frames.count, 4) { _ = try frames.frame(at: index) }
            }
        } catch {
            #expect(error.kind != .invalidArgument)
        }
    }
}
#endif
