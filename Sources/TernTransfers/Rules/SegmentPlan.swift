#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The division of a file into segments of about equal length, and the table of how far each has come. Pure.
///
/// The table stands behind the last byte of the partial file: the number of bytes of each segment, as eight bytes each,
/// least significant byte first. It is written after the bytes that it counts, and cut off at the end.
struct SegmentPlan: Sendable, Equatable {
    /// The greatest number of segments.
    static let mostSegments = 16
    /// The shortest segment, in bytes. A connection for less costs more than it gains.
    static let shortestSegment: Int64 = 1 << 20

    /// The size of the whole file in bytes.
    let size: Int64
    /// The positions of the segments, in order, without gaps.
    let ranges: [Range<Int64>]

    /// Divides a file into at most `count` segments; nil if it is too short for two.
    init?(size: Int64, count: Int, shortest: Int64 = shortestSegment) {
        let count = Int64(min(max(count, 1), Self.mostSegments))
        let segments = min(count, size / max(1, shortest))
        guard segments >= 2 else { return nil }
        self.init(size: size, segments: Int(segments))
    }

    /// Divides a file into exactly this number of segments.
    init(size: Int64, segments: Int) {
        self.size = size
        let (length, rest) = size.quotientAndRemainder(dividingBy: Int64(segments))
        var start: Int64 = 0
        ranges = (0..<Int64(segments)).map { index in
            let end = start + length + (index < rest ? 1 : 0)
            defer { start = end }
            return start..<end
        }
    }

    /// The length of the partial file with its table.
    var lengthWithTable: Int64 { size + Int64(8 * ranges.count) }

    /// The position of a segment's entry in the partial file.
    func position(ofEntry index: Int) -> Int64 { size + Int64(8 * index) }

    /// Returns the entry of a number of bytes.
    static func entry(_ count: Int64) -> Data {
        Data((0..<8).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) })
    }

    /// Reads a table; nil if it has the wrong length or a number that its segment cannot have.
    func counts(from table: Data) -> [Int64]? {
        let bytes = Array(table)
        guard bytes.count == 8 * ranges.count else { return nil }
        var counts: [Int64] = []
        for (index, range) in ranges.enumerated() {
            let word = bytes[(8 * index)..<(8 * index + 8)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard let count = Int64(exactly: word), count <= range.upperBound - range.lowerBound else { return nil }
            counts.append(count)
        }
        return counts
    }
}
