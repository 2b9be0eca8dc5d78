#if os(Linux)
import Testing

@testable import TernImages

/// Decodes progressive JPEGs that repeat little information many times.
@Suite struct ScanBombTests {
    /// Splits a file into the segments from the tables of one scan to those of the next, and the bytes before and after
    /// them.
    private static func scans(_ file: [UInt8]) -> (head: [UInt8], scans: [[UInt8]], end: [UInt8]) {
        var starts: [Int] = []
        var at = 2
        while at + 4 <= file.count, file[at + 1] != 0xD9 {
            let begin = at
            // Tables belong to the scan behind them.
            while file[at + 1] == 0xC4 { at += 2 + Int(file[at + 2]) << 8 + Int(file[at + 3]) }
            let isScan = file[at + 1] == 0xDA
            at += 2 + Int(file[at + 2]) << 8 + Int(file[at + 3])
            guard isScan else { continue }
            starts.append(begin)
            while file[at] != 0xFF || file[at + 1] == 0 || (0xD0...0xD7).contains(file[at + 1]) { at += 1 }
        }
        let bounds = starts + [at]
        let pieces = zip(bounds, bounds.dropFirst()).map { Array(file[$0..<$1]) }
        return (Array(file[..<(starts.first ?? at)]), pieces, Array(file[at...]))
    }

    private static func progressive(_ width: Int, _ height: Int) throws -> [UInt8] {
        let size = PixelSize(width: width, height: height)
        let picture = try #require(
            RasterImage(size: size, premultiplied: [UInt8](repeating: 200, count: size.pixelCount * 4)))
        return [UInt8](try picture.encoded(as: .jpeg(progressive: true)))
    }

    @Test func aRepeatedScanOfALargePictureEndsAtOnce() throws {
        let (head, scans, end) = Self.scans(try Self.progressive(4000, 3000))
        let bomb = head + scans.joined() + (0..<300).flatMap { _ in scans[scans.count - 1] } + end
        var kind: ImageError.Kind?
        // The limit on the number of scans is high, so that only the repetition can be detected.
        let options = ImageDecodingOptions(limits: .init(scans: 10_000))
        let time = processorTime { kind = errorKind(bomb, options) }
        #expect(kind == .limitExceeded)
        #expect(time < .milliseconds(300))
    }

    /// libjpeg ignores the wrong length of a segment that it does not need, and decodes the scans behind it.
    @Test(arguments: [0, 1] as [UInt8])
    func aWrongLengthBeforeTheScansHidesNone(length: UInt8) throws {
        let (head, scans, end) = Self.scans(try Self.progressive(64, 64))
        let start = head[..<2] + [0xFF, 0xE0, 0, length] + head[2...]
        #expect(errorKind(start + scans.joined() + end) == nil)
        let repeated = (0..<9).flatMap { _ in scans[scans.count - 1] }
        #expect(errorKind(start + scans.joined() + repeated + end) == .limitExceeded)
    }

    @Test func scansThatTakeTurnsAreFoundToo() throws {
        let (head, scans, end) = Self.scans(try Self.progressive(64, 64))
        let turns = (0..<5).flatMap { _ in scans[scans.count - 1] + scans[scans.count - 2] }
        #expect(errorKind(head + scans.joined() + turns + end) == .limitExceeded)
        #expect(errorKind(head + scans.joined() + end) == nil)
    }

    @Test func theScansOfALargePictureHaveABudget() throws {
        // 400 million pixels allow fewer than ten passes over these pixels, but every picture may have 12.
        let (head, scans, end) = Self.scans(try Self.progressive(6400, 6400))
        let longer = head + scans.joined() + scans[0] + scans[1]
        let options = ImageDecodingOptions(targetSize: PixelSize(width: 100, height: 100))
        #expect(scans.count == 10)
        #expect(errorKind(longer + end, options) == nil)
        let thrown = #expect(throws: ImageError.self) { try decoded(longer + scans[2] + end, options) }
        #expect(thrown?.message.contains("12 scans") == true)
    }

    @Test func aRepeatedScanOfASequentialPictureIsFound() throws {
        let (head, scans, end) = Self.scans(JPEGFiles.separate)
        #expect(scans.count == 3)
        #expect(errorKind(head + scans.joined() + scans[2] + scans[2] + end) == nil)
        #expect(errorKind(head + scans.joined() + (0..<9).flatMap { _ in scans[2] } + end) == .limitExceeded)
    }
}
#endif
