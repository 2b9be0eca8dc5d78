import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

struct DiskTrailerTests {
    private let trailer = DiskTrailer(
        checksum: 7, size: 9, created: -5, expires: .max, key: Data("key".utf8), metadata: bytes(300),
        tags: ["", "tag", "\u{E9}"])

    @Test func aTrailerIsDecodedAsEncoded() {
        let bytes = trailer.encoded()
        #expect(DiskTrailer(bytes) == trailer)
        #expect(DiskTrailer.count(footer: bytes.suffix(16)) == bytes.count)
        #expect(DiskTrailer(bytes.dropFirst(0) + Data()) == trailer)
    }

    @Test func anyChangedByteIsDetected() {
        let bytes = trailer.encoded()
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x10
            #expect(DiskTrailer(damaged) == nil, "byte \(index)")
        }
        for count in 0..<bytes.count { #expect(DiskTrailer(bytes.prefix(count)) == nil) }
    }
}
