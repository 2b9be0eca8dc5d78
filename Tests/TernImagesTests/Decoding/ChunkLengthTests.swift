#if os(Linux)
import Testing

@testable import TernImages

/// Decodes PNG files of about 100 bytes with a chunk that claims the largest length of the format, in every way. A
/// decoder takes memory for bytes that are there, and not for a length that a file only claims.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ChunkLengthTests {
    /// The chunk types of the standard (W3C PNG, third edition, §4.7), its extensions and its registry, of files in use
    /// beside them, and of no meaning: critical, ancillary, and safe to copy.
    static let types = [
        "IHDR", "PLTE", "IDAT", "IEND", "acTL", "bKGD", "cHRM", "cICP", "cLLI", "eXIf", "fcTL", "fdAT", "gAMA", "hIST",
        "iCCP", "iTXt", "mDCV", "pHYs", "sBIT", "sPLT", "sRGB", "tEXt", "tIME", "tRNS", "zTXt", "dSIG", "fRAc", "gIFg",
        "gIFt", "gIFx", "oFFs", "pCAL", "sCAL", "sTER", "CgBI", "JHDR", "MHDR", "caBX", "eXIF", "iDOT", "mkBF", "vpAg",
        "zxIf", "TERN", "TeRn", "teRN", "teRn",
    ]

    private enum Place: CaseIterable { case first, beforeData, afterData }

    /// Returns a picture of 1 × 1 with a chunk whose head claims the length. No byte of the chunk's data follows.
    private static func file(_ type: String, claiming length: Int, at place: Place) -> [UInt8] {
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        let claim = big(length, 4) + Array(type.utf8) + [0, 0, 0, 0, 0]
        let header = chunk("IHDR", big(1, 4) + big(1, 4) + [8, 0, 0, 0, 0])
        // A stored block of a row's filter and its only pixel, with the Adler-32 checksum (RFC 1950, RFC 1951).
        let data = chunk("IDAT", [0x78, 0x01, 1, 2, 0, 0xFD, 0xFF, 0, 0x80, 0, 0x82, 0, 0x81])
        return switch place {
        case .first: signature + claim + header + data + chunk("IEND", [])
        case .beforeData: signature + header + claim + data + chunk("IEND", [])
        case .afterData: signature + header + data + claim + chunk("IEND", [])
        }
    }

    @Test(.disabled(if: DecodingMemoryTests.isSanitized, "a sanitizer holds memory of its own"))
    func aClaimedLengthTakesNoMemory() async {
        await #expect(processExitsWith: .success) {
            do { try ChunkLengthTests.measure() } catch { Issue.record(error) }
        }
    }

    /// Decodes each file, and fails if the process has grown by 32 MiB at any time, or has asked for 1 GiB.
    private static func measure() throws {
        try DecodingMemoryTests.forgetPeak()
        let before = try DecodingMemoryTests.size("VmRSS:")
        let asked = try DecodingMemoryTests.size("VmPeak:")
        for type in types {
            for place in Place.allCases {
                for length in [0x7FFF_FFFF, 0x7FFF_FFFE, 0xFFFF_FFFF, 600 << 20] {
                    let bytes = file(type, claiming: length, at: place)
                    for way in ["whole", "frames", "pieces"] {
                        for partial in [false, true] {
                            let options = ImageDecodingOptions(allowsPartial: partial)
                            let outcome = DecodingMemoryTests.decode(bytes, options, way)
                            let grown = try DecodingMemoryTests.peakSize() - before
                            let reserved = try DecodingMemoryTests.size("VmPeak:") - asked
                            guard grown < 32 << 20, reserved < 1 << 30 else {
                                throw DecodingMemoryTests.CheckFailure(
                                    description: "\(type) of \(length) bytes, \(place), \(way): "
                                        + "\(grown >> 20) MiB, \(reserved >> 20) MiB asked for, \(outcome)")
                            }
                        }
                    }
                }
            }
        }
    }

    /// A chunk that claims more than there is hides the header or the data, so there is no picture.
    @Test(arguments: types) func aPictureBehindAClaimedLengthIsNone(type: String) {
        for place in [Place.first, .beforeData] {
            for partial in [false, true] where type != "IDAT" || !partial {
                let bytes = Self.file(type, claiming: 0x7FFF_FFFF, at: place)
                let options = ImageDecodingOptions(allowsPartial: partial)
                #expect(errorKind(bytes, options) != nil, "\(type), \(place)")
            }
        }
    }

    /// libpng kept the bytes of a long chunk in a buffer that it copied with every piece.
    @Test func aLongChunkIsPassedOver() throws {
        var bytes = Self.file("teRn", claiming: 0, at: .beforeData)
        let head = bytes.startIndex + 33
        bytes.replaceSubrange(head..<head + 13, with: chunk("tEXt", [UInt8](repeating: 65, count: 9 << 20)))
        #expect(DecodingMemoryTests.decode(bytes, ImageDecodingOptions(), "whole") == "1×1")
        #expect(DecodingMemoryTests.decode(bytes, ImageDecodingOptions(), "pieces") == "1×1")
    }

    /// Only consecutive chunks make up a picture's data (§11.2.4).
    @Test func aChunkBetweenPictureDataDividesThem() throws {
        let file = [UInt8](try gradient(20, 20).encoded(as: .png()))
        let at = try #require(file.firstRange(of: Array("IDAT".utf8))).lowerBound - 4
        let length = file[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
        let data = Array(file[at + 8..<at + 8 + length])
        let parts = [Array(data.prefix(40)), Array(data.dropFirst(40))].map { chunk("IDAT", $0) }
        let whole = Array(file.prefix(at)) + parts[0] + parts[1] + Array(file.dropFirst(at + 12 + length))
        #expect(errorKind(whole) == nil)
        for name in ["tEXt", "teRn", "gAMA", "eXIf"] {
            let between = chunk(name, [77, 77, 0, 42])
            let divided =
                Array(file.prefix(at)) + parts[0] + between + parts[1] + Array(file.dropFirst(at + 12 + length))
            #expect(errorKind(divided) == .corrupt, "\(name)")
            #expect(DecodingMemoryTests.decode(divided, ImageDecodingOptions(), "pieces").contains("corrupt"))
        }
    }
}
#endif
