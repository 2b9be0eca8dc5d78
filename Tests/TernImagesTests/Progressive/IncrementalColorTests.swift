#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Returns a JPEG of 8 × 8 pixels with one mixture of four inks. The level of each ink is from 64 to 127 above or below
/// the middle.
private func inkFile(_ levels: [Int]) -> [UInt8] {
    func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, marker] + big(content.count + 2, 2) + content
    }
    var file: [UInt8] = [0xFF, 0xD8]
    // With a step of 8, a block's one coefficient is its level.
    file += segment(0xDB, [0] + [UInt8](repeating: 8, count: 64))
    file += segment(0xC0, [8, 0, 8, 0, 8, 4] + (1...4).flatMap { [UInt8($0), 0x11, 0] })
    // Two codes for the level, with 0 and 7 bits, and one for the end of a block (T.81, section F.1.2).
    file += segment(0xC4, [0x00, 1, 1] + [UInt8](repeating: 0, count: 14) + [0, 7])
    file += segment(0xC4, [0x10, 1] + [UInt8](repeating: 0, count: 15) + [0])
    file += segment(0xDA, [4] + (1...4).flatMap { [UInt8($0), 0] } + [0, 63, 0])
    let bits = levels.map { level in
        let seven = String(level > 0 ? level : level + 127, radix: 2)
        return "10" + String(repeating: "0", count: 7 - seven.count) + seven + "0"
    }
    var text = bits.joined()
    text += String(repeating: "1", count: (8 - text.count % 8) % 8)
    var rest = text[...]
    while !rest.isEmpty {
        let byte = UInt8(rest.prefix(8), radix: 2) ?? 0
        file += byte == 0xFF ? [0xFF, 0] : [byte]
        rest = rest.dropFirst(8)
    }
    return file + [0xFF, 0xD9]
}

@Suite struct IncrementalColorTests {
    /// With lcms2, the profile is applied. Without it, the metadata state that it is not. The decoder of whole files
    /// does the same.
    @Test func aProfileIsAppliedAsToAWholeFile() throws {
        let photo = try #require(InterlacedFixtures.photo(80, 60))
        let profile = ColorProfileFile.swapped
        let still = InterlacedFixtures.png(photo, interlaced: false)
        let files = [
            Tagged.jpeg([UInt8](try photo.encoded(as: .jpeg(progressive: true))), profile, pieces: [2, 1]),
            Tagged.jpeg([UInt8](try photo.encoded(as: .jpeg())), profile),
            Tagged.png([UInt8](InterlacedFixtures.png(photo, interlaced: true)), profile),
            Tagged.png([UInt8](still), profile),
            Tagged.webp([UInt8](try photo.encoded(as: .losslessWebP)), profile, size: photo.size, alpha: false),
        ]
        for file in files {
            for options in [
                ImageDecodingOptions(), ImageDecodingOptions(targetSize: PixelSize(width: 20, height: 20)),
                ImageDecodingOptions(color: .asStored()),
            ] {
                let decoder = IncrementalDecoder(options: options, showsRows: true)
                let (previews, final) = try feed(Data(file), by: 900, to: decoder)
                let whole = try CodecImageDecoder().image(from: Data(file), options: options)
                #expect(final.pixels.bytes == whole.pixels.bytes)
                #expect(final.metadata == whole.metadata)
                #expect(previews.allSatisfy { $0.metadata.colorProfile == whole.metadata.colorProfile })
                // A preview has the picture's colours, so it is closer to the picture than to the unconverted one.
                if let last = previews.last, final.metadata.colorProfile == .converted, last.size == photo.size {
                    #expect(meanSquare(last, final) < meanSquare(last, photo))
                }
            }
        }
    }

    @Test func inksAreConvertedByTheirProfile() throws {
        let file = inkFile([90, -70, 110, 100])
        for bytes in [file, Tagged.jpeg(file, ColorProfileFile.press)] {
            let (_, final) = try feed(Data(bytes), by: 7, to: IncrementalDecoder())
            let whole = try CodecImageDecoder().image(from: Data(bytes), options: ImageDecodingOptions())
            #expect(final.pixels.bytes == whole.pixels.bytes)
            #expect(final.metadata == whole.metadata)
        }
        let mixed = try CodecImageDecoder().image(from: Data(file), options: ImageDecodingOptions())
        // An ink of 218 of 255 and a key of 228. Both are counted from white.
        #expect(Array(mixed.pixels.bytes.prefix(4)) == [195, 52, 213, 255])
    }

    @Test func anAnimationsFirstFrameIsShownNotItsStandIn() throws {
        let (standIn, first) = (try gradient(20, 10), try #require(InterlacedFixtures.photo(20, 10)))
        for still in [nil, standIn] {
            let frames = [AnimatedPNGFile.Frame(image: first), AnimatedPNGFile.Frame(image: standIn)]
            let file = Data(try AnimatedPNGFile(frames: frames, still: still).bytes)
            for size in [1, 60, 10_000] {
                let decoder = IncrementalDecoder(showsRows: true)
                let (_, final) = try feed(file, by: size, to: decoder)
                #expect(final.pixels.bytes == first.pixels.bytes)
                #expect(decoder.isAnimation)
            }
        }
    }
}
#endif
