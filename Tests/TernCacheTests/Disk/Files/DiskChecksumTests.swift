import Testing

@testable import DiskCrashChild
@testable import TernCache

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

struct DiskChecksumTests {
    /// Vectors of the xxHash specification and its reference implementation.
    @Test func knownVectorsAreMet() {
        #expect(DiskChecksum.of(Data()) == 0xEF46_DB37_51D8_E999)
        #expect(DiskChecksum.of(Data("a".utf8)) == 0xD24E_C4F1_A98C_6E5B)
        #expect(DiskChecksum.of(Data("abc".utf8)) == 0x44BC_2CF5_AD77_0999)
    }

    @Test func piecesGiveTheChecksumOfTheWhole() {
        for count in [0, 1, 31, 32, 33, 63, 64, 100, 1_000] {
            let data = bytes(count)
            for piece in [1, 7, 32, 45] {
                var checksum = DiskChecksum()
                for start in stride(from: 0, to: count, by: piece) {
                    checksum.update(Data(data[start..<min(start + piece, count)]))
                }
                #expect(checksum.value == DiskChecksum.of(data))
            }
        }
    }
}
