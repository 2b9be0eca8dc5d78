#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A kind of file, and the number of its scans or passes.
enum Coming: String, CaseIterable, Sendable {
    case baselineJPEG, progressiveJPEG, png, interlacedPNG, webp, losslessWebP, gif, interlacedGIF

    var passes: Int {
        switch self {
        case .progressiveJPEG: 10
        case .interlacedPNG: 7
        case .interlacedGIF: 4
        default: 1
        }
    }

    func file(_ image: RasterImage) throws -> Data {
        switch self {
        case .baselineJPEG: try image.encoded(as: .jpeg())
        case .progressiveJPEG: try image.encoded(as: .jpeg(progressive: true))
        case .png: try image.encoded(as: .png())
        case .interlacedPNG: InterlacedFixtures.png(image, interlaced: true)
        case .webp: try image.encoded(as: .webp())
        case .losslessWebP: try image.encoded(as: .losslessWebP)
        case .gif: InterlacedFixtures.gif(image, interlaced: false, frames: 2)
        case .interlacedGIF: InterlacedFixtures.gif(image, interlaced: true, frames: 3)
        }
    }
}

/// Feeds the file in chunks, and collects the previews and the final picture.
func feed(
    _ file: Data, by size: Int, to decoder: IncrementalDecoder
) throws(ImageError) -> (previews: [RasterImage], final: RasterImage) {
    var previews: [RasterImage] = []
    for start in stride(from: 0, to: file.count, by: size) {
        let from = file.startIndex + start
        var stands = try decoder.append(file[from..<min(file.endIndex, from + size)])
        while stands {
            if let preview = try decoder.preview() { previews.append(preview) }
            stands = try decoder.advance()
        }
    }
    return (previews, try decoder.finish())
}

func meanSquare(_ left: RasterImage, _ right: RasterImage) -> Double {
    let sum = zip(left.pixels.bytes, right.pixels.bytes).reduce(0.0) { sum, pair in
        let difference = Double(pair.0) - Double(pair.1)
        return sum + difference * difference
    }
    return sum / Double(left.byteCount)
}

@Suite struct IncrementalDecoderTests {
    let whole = CodecImageDecoder()

    @Test(arguments: Coming.allCases, [1, 7, 1_000, Int.max / 2])
    func everyChunkSizeGivesAPreviewForEachScanAndTheSameFinalPicture(kind: Coming, size: Int) throws {
        let file = try kind.file(#require(InterlacedFixtures.photo(150, 110)))
        let options = ImageDecodingOptions()
        let decoder = IncrementalDecoder(options: options)
        let (previews, final) = try feed(file, by: size, to: decoder)
        #expect(previews.count == kind.passes - 1)
        #expect(final.pixels.bytes == (try whole.image(from: file, options: options)).pixels.bytes)
        #expect(!final.metadata.isPartial)
        #expect(previews.allSatisfy { $0.metadata.isPartial && $0.size == final.size })
        let errors = previews.map { meanSquare($0, final) }
        for (earlier, later) in zip(errors, errors.dropFirst()) { #expect(later < earlier) }
        if let last = errors.last { #expect(last > 0) }
        #expect(decoder.bytesCopied <= 4 * file.count)
    }

    @Test(arguments: Coming.allCases)
    func aTargetSizeGivesTheSamePictureToo(kind: Coming) throws {
        let file = try kind.file(#require(InterlacedFixtures.photo(300, 200)))
        for (size, mode) in [(40, ImageDecodingOptions.ContentMode.fit), (64, .fill)] {
            let options = ImageDecodingOptions(targetSize: PixelSize(width: size, height: size), contentMode: mode)
            let (previews, final) = try feed(file, by: 333, to: IncrementalDecoder(options: options))
            #expect(final.pixels.bytes == (try whole.image(from: file, options: options)).pixels.bytes)
            #expect(previews.count == kind.passes - 1)
            #expect(previews.allSatisfy { $0.size == final.size })
        }
    }

    @Test func anInterlacedPreviewHasNoHole() throws {
        let photo = try #require(InterlacedFixtures.photo(61, 45))
        for kind in [Coming.interlacedPNG, .interlacedGIF] {
            let (previews, _) = try feed(try kind.file(photo), by: 50, to: IncrementalDecoder())
            for preview in previews {
                let alphas = stride(from: 3, to: preview.byteCount, by: 4).map { preview.pixels.bytes[$0] }
                #expect(alphas.allSatisfy { $0 == 255 })
            }
        }
    }

    @Test(arguments: [Coming.baselineJPEG, .png, .webp, .losslessWebP, .gif])
    func rowsAreShownWhenAsked(kind: Coming) throws {
        let file = try kind.file(#require(InterlacedFixtures.photo(200, 300)))
        let decoder = IncrementalDecoder(showsRows: true)
        let (previews, final) = try feed(file, by: file.count / 5 + 1, to: decoder)
        #expect(previews.count >= 2)
        let known = previews.map { preview in
            zip(preview.pixels.bytes, final.pixels.bytes).prefix { $0 == $1 }.count / final.bytesPerRow
        }
        #expect(known == known.sorted())
        #expect(try #require(known.first) > 0)
        #expect(final.pixels.bytes == (try whole.image(from: file, options: decoder.options)).pixels.bytes)
    }

    @Test func theFirstScanIsShownAtTheMarkerThatEndsIt() throws {
        let file = [UInt8](try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(160, 120))))
        // The first scan ends at the first marker after its start that is neither stuffing nor a restart.
        let scan = try #require(file.indices.first { file[$0] == 0xFF && file[$0 + 1] == 0xDA })
        let end = try #require(
            file.indices.first { index in
                index > scan + 2 && file[index] == 0xFF && file[index + 1] != 0 && file[index + 1] & 0xF8 != 0xD0
            })
        let decoder = IncrementalDecoder()
        // libjpeg reads eight bits ahead, which includes the marker, before it counts the last block as whole.
        #expect(try decoder.append(Data(file[..<(end + 2)])))
        #expect(decoder.completedPasses == 1)
        let preview = try #require(try decoder.preview())
        #expect(preview.size == decoder.originalSize)
        #expect(try decoder.preview() == nil)
        #expect(try !decoder.append(Data(file[(end + 2)..<(end + 3)])))
    }

    @Test func boundariesThatNobodyAsksAboutCostNothing() throws {
        let file = try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(64, 64)))
        let decoder = IncrementalDecoder()
        try decoder.append(file)
        #expect(decoder.completedPasses == 1)
        #expect(try decoder.finish().metadata.isPartial == false)
        #expect(decoder.completedPasses == 10)
    }

    @Test(arguments: 1...8) func anOrientationIsApplied(orientation: Int) throws {
        let photo = try #require(InterlacedFixtures.photo(40, 24))
        let entry: [UInt8] = [1, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation), 0, 0]
        let exif: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1] + entry + [0, 0, 0, 0]
        let file = InterlacedFixtures.png(photo, interlaced: true, chunks: [("eXIf", exif)])
        let (previews, final) = try feed(file, by: 100, to: IncrementalDecoder())
        #expect(final.metadata.orientation == orientation)
        #expect(final.pixels.bytes == (try whole.image(from: file, options: ImageDecodingOptions())).pixels.bytes)
        #expect(previews.allSatisfy { $0.size == final.size })
    }

    @Test func aGIFKeepsTransparencyPlaceAndFrameLimit() throws {
        let photo = try #require(InterlacedFixtures.photo(50, 37))
        for interlaced in [false, true] {
            let file = InterlacedFixtures.gif(photo, interlaced: interlaced, frames: 3, transparent: 130, inset: 9)
            let (_, final) = try feed(file, by: 11, to: IncrementalDecoder())
            #expect(final.pixels.bytes == (try whole.image(from: file, options: ImageDecodingOptions())).pixels.bytes)
            #expect(final.size == PixelSize(width: 59, height: 46))
            let few = IncrementalDecoder(options: ImageDecodingOptions(limits: .init(frames: 2)))
            let thrown = #expect(throws: ImageError.self) { _ = try feed(file, by: 100, to: few) }
            #expect(thrown?.kind == .limitExceeded)
        }
    }
}
#endif
