import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct PreviewPointsTests {
    /// Returns the numbers of bytes at which a preview is due.
    private func points(_ file: Data, in size: Int, showsRows: Bool = false) -> (at: [Int], scans: Int) {
        var points = PreviewPoints(showsRows: showsRows)
        var at: [Int] = []
        var start = 0
        while start < file.count {
            let end = min(start + size, file.count)
            if points.receive(file[start..<end]) { at.append(end) }
            start = end
        }
        return (at, points.scans)
    }

    #if os(Linux)
    @Test func theScansOfAProgressiveJPEGAreCountedForEverySplit() throws {
        let file = try Pictures.jpeg(320, 240, progressive: true)
        let whole = points(file, in: file.count)
        #expect(whole.at.isEmpty, "a file that has ended needs no preview")
        #expect(whole.scans > 3)
        for size in [1, 7, 100, 1_000] {
            let split = points(file, in: size)
            #expect(split.scans == whole.scans)
            #expect(!split.at.isEmpty && split.at.count < whole.scans)
            for (one, next) in zip(split.at, split.at.dropFirst()) { #expect(next - one >= next / 8) }
        }
    }

    @Test func anotherFileHasPointsOnlyIfItsRowsAreShown() throws {
        for file in [try Pictures.jpeg(320, 240), try Pictures.png(320, 240)] {
            #expect(points(file, in: 500).at.isEmpty)
        }
        #expect(!points(try Pictures.jpeg(320, 240), in: 500, showsRows: true).at.isEmpty)
    }
    #endif

    @Test func anInterlacedPNGHasPointsByItsGrowth() {
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        func header(interlacing: UInt8) -> [UInt8] {
            signature + [0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 0, 0, 0, 1, 0, 8, 2, 0, 0, interlacing]
        }
        let body = [UInt8](repeating: 5, count: 50_000)
        let at = points(Data(header(interlacing: 1) + body), in: 1_000).at
        #expect(at.first == 2_000 && at.count > 10 && at.count < 40)
        #expect(points(Data(header(interlacing: 0) + body), in: 1_000).at.isEmpty)
    }

    @Test func damagedBytesNeverStopTheCount() {
        var bytes = [UInt8](repeating: 0xFF, count: 20_000)
        bytes.replaceSubrange(0..<2, with: [0xFF, 0xD8])
        #expect(points(Data(bytes), in: 64).scans == 0)
        let zeros = Data([0xFF, 0xD8] + [UInt8](repeating: 0, count: 20_000))
        #expect(points(zeros, in: 64).at.isEmpty)
    }
}
