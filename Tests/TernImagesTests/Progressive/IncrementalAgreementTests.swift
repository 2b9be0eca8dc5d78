#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Damaged files of which the decoder of whole files and that of arriving bytes once made different pictures, found by
/// fuzzing.
@Suite struct IncrementalAgreementTests {
    private func expectSame(_ data: Data) throws {
        let whole = try CodecImageDecoder().image(from: data, options: ImageDecodingOptions())
        let decoder = IncrementalDecoder()
        for byte in data { try decoder.append(Data([byte])) }
        let pieces = try decoder.finish()
        #expect(pieces.size == whole.size)
        #expect(pieces.metadata == whole.metadata)
        #expect(pieces.pixels.bytes == whole.pixels.bytes)
    }

    @Test func aWebPWhoseHeaderDeniesItsAlpha() throws {
        var bytes = [UInt8](try gradient(40, 30, alpha: true).encoded(as: .webp()))
        try #require(Array(bytes[12..<16]) == Array("VP8X".utf8))
        bytes[20] = 0
        try expectSame(Data(bytes))
    }

    @Test func aPNGWhoseOrientationFailsItsChecksum() throws {
        var bytes = [UInt8](try gradient(40, 30).encoded(as: .png()))
        let exif: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0]
        bytes.insert(contentsOf: [0, 0, 0, UInt8(exif.count)] + Array("eXIf".utf8) + exif + [1, 2, 3, 4], at: 33)
        try expectSame(Data(bytes))
    }
}
#endif
