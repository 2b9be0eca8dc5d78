#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Lossless WebP files whose header and whose data differ about alpha (RFC 9649, §3.4). The header decides, as in
/// browsers.
@Suite struct WebPAlphaTests {
    private static let size = PixelSize(width: 20, height: 12)

    private static func riff(_ content: [UInt8]) -> [UInt8] {
        AnimatedWebPFile.chunk("RIFF", Array("WEBP".utf8) + content)
    }

    private static func picture(hasAlpha: Bool, alpha: Int) -> [UInt8] {
        AnimatedWebPFile.chunk(
            "VP8L", PictureBombs.flatLossless(size.width, size.height, hasAlpha: hasAlpha, alpha: alpha))
    }

    private static let place = little(size.width - 1, 3) + little(size.height - 1, 3)

    /// Returns a picture in the simple form, in the extended form, and as the two frames of an animation.
    private static func files(hasAlpha: Bool, alpha: Int) -> [[UInt8]] {
        let picture = picture(hasAlpha: hasAlpha, alpha: alpha)
        let flags: UInt8 = hasAlpha ? 0x10 : 0
        let frame = AnimatedWebPFile.chunk("ANMF", little(0, 6) + place + little(50, 3) + [0] + picture)
        return [
            riff(picture), riff(AnimatedWebPFile.chunk("VP8X", [flags, 0, 0, 0] + place) + picture),
            riff(
                AnimatedWebPFile.chunk("VP8X", [flags | 2, 0, 0, 0] + place)
                    + AnimatedWebPFile.chunk("ANIM", little(0, 6)) + frame + frame),
        ]
    }

    private static func pieces(_ bytes: [UInt8], _ options: ImageDecodingOptions) throws -> RasterImage {
        let decoder = IncrementalDecoder(options: options)
        for byte in bytes { try decoder.append(Data([byte])) }
        return try decoder.finish()
    }

    @Test(arguments: [nil, PixelSize(width: 10, height: 6), PixelSize(width: 7, height: 7)])
    func aPictureWithoutAlphaByItsHeaderIsOpaque(target: PixelSize?) throws {
        let options = ImageDecodingOptions(targetSize: target)
        for alpha in [0, 77, 255] {
            for file in Self.files(hasAlpha: false, alpha: alpha) {
                let picture = try decoded(file, options)
                let expected = [[UInt8]](repeating: [200, 90, 30, 255], count: picture.size.pixelCount)
                #expect(picture.pixels.bytes == Array(expected.joined()))
                #expect(try Self.pieces(file, options).pixels.bytes == picture.pixels.bytes)
                let frames = try CodecImageDecoder().animation(from: Data(file), options: options)
                for index in 0..<(frames?.count ?? 0) {
                    #expect(try frames?.frame(at: index).image.pixels.bytes == picture.pixels.bytes)
                }
            }
        }
    }

    @Test func aPictureWithAlphaByItsHeaderKeepsIt() throws {
        for file in Self.files(hasAlpha: true, alpha: 51) {
            let picture = try decoded(file)
            #expect(Array(picture.pixels.bytes.prefix(4)) == [40, 18, 6, 51])
            #expect(try Self.pieces(file, ImageDecodingOptions()).pixels.bytes == picture.pixels.bytes)
        }
    }

    @Test func theRowsOfAPreviewAreOpaque() throws {
        var bytes = [UInt8](try #require(InterlacedFixtures.photo(200, 300)).encoded(as: .losslessWebP))
        #expect(bytes[24] & 0x10 == 0)
        let decoder = IncrementalDecoder(showsRows: true)
        bytes.removeLast(bytes.count / 3)
        try #require(try decoder.append(Data(bytes)))
        let preview = try #require(try decoder.preview())
        #expect(preview.pixels.bytes.prefix(4).last == 255)
        #expect(preview.pixels.bytes.last == 0)
    }

    @Test(arguments: [false, true]) func mutatedFilesEndInAnErrorOrAPicture(hasAlpha: Bool) {
        for file in Self.files(hasAlpha: hasAlpha, alpha: 9) {
            decodeMutations(of: file)
            decodeMutations(of: file, target: PixelSize(width: 9, height: 5))
        }
    }
}
#endif
