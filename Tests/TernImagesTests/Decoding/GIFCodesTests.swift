#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A GIF of one frame, given by the codes of its pixels. Each index is its own grey.
struct GIFCodes: CustomTestStringConvertible {
    var width = 1
    var height: Int
    /// The size that the file states for codes. The table is cleared by the code 1 << size.
    var size = 2
    var codes: [Int]
    /// The size of a sub-block in bytes.
    var block = 255
    /// The bytes behind the sub-blocks.
    var end: [UInt8] = [0, 0x3B]

    var testDescription: String { "\(width)x\(height), size \(size), codes \(codes.prefix(12))" }

    var bytes: [UInt8] {
        let greys = (0..<256).flatMap { [UInt8](repeating: UInt8($0), count: 3) }
        let header = Array("GIF89a".utf8) + little(width, 2) + little(height, 2) + [0xF7, 0, 0] + greys
        let frame = [0x2C, 0, 0, 0, 0] + little(width, 2) + little(height, 2) + [0, UInt8(size)]
        let packed = packed
        let blocks = stride(from: 0, to: packed.count, by: block).flatMap { start in
            let part = packed[start..<min(packed.count, start + block)]
            return [UInt8(part.count)] + part
        }
        return header + frame + blocks + end
    }

    /// Packs the codes. They grow by a bit when the next code to be defined needs it, up to 12 bits.
    private var packed: [UInt8] {
        var (bytes, pool, held) = ([UInt8](), 0, 0)
        let clear = 1 << min(size, 8)
        var (bits, next) = (min(size, 8) + 1, clear + 1)
        for code in codes {
            pool |= code << held
            held += bits
            while held >= 8 {
                bytes.append(UInt8(pool & 255))
                pool >>= 8
                held -= 8
            }
            if code == clear {
                (bits, next) = (min(size, 8) + 1, clear + 1)
            } else if next < 4096 {
                next += 1
                if next >= 1 << bits, bits < 12 { bits += 1 }
            }
        }
        return held > 0 ? bytes + [UInt8(pool & 255)] : bytes
    }

    /// Returns the codes of indices below 4. The table is cleared when it is full, or never.
    static func codes(of indices: [UInt8], clears: Bool) -> [Int] {
        var codes = [4]
        // The code of each string, by the code of the string without its last index, and that index.
        var (table, next) = ([Int: Int](), 6)
        var last: Int?
        for index in indices.map(Int.init) {
            guard let text = last else {
                last = index
                continue
            }
            if let longer = table[text * 4 + index] {
                last = longer
                continue
            }
            codes.append(text)
            if next < 4096 {
                table[text * 4 + index] = next
                next += 1
            } else if clears {
                codes.append(4)
                (table, next) = ([:], 6)
            }
            last = index
        }
        return codes + [last ?? 0, 5]
    }
}

@Suite struct GIFCodesTests {
    /// Codes of frames with one pixel a row, and what they give, which is what giflib gives.
    static let rows: [(file: GIFCodes, indices: [UInt8], error: ImageError.Kind?)] = [
        (GIFCodes(height: 2, codes: [4, 1, 2, 5]), [1, 2], nil),
        (GIFCodes(height: 2, codes: [1, 2, 5]), [1, 2], nil),
        (GIFCodes(height: 2, codes: [4, 1, 2]), [1, 2], nil),
        (GIFCodes(height: 3, codes: [4, 4, 1, 4, 2, 4, 3, 5]), [1, 2, 3], nil),
        // Codes that define themselves. The last string goes on behind the frame.
        (GIFCodes(height: 6, codes: [4, 1, 6, 7, 5]), [1, 1, 1, 1, 1, 1], nil),
        (GIFCodes(height: 5, codes: [4, 1, 6, 7, 5]), [1, 1, 1, 1, 1], nil),
        (GIFCodes(height: 6, codes: [4, 0, 1, 2, 7, 5]), [0, 1, 2, 1, 2], .corrupt),
        // Each size of codes.
        (GIFCodes(height: 4, size: 0, codes: [1, 0, 0, 3, 2]), [0, 0, 0, 0], nil),
        (GIFCodes(height: 4, size: 1, codes: [2, 1, 0, 4, 3]), [1, 0, 1, 0], nil),
        (GIFCodes(height: 4, size: 8, codes: [256, 255, 0, 258, 257]), [255, 0, 255, 0], nil),
        (GIFCodes(height: 1, size: 9, codes: [256, 255]), [], .corrupt),
        (GIFCodes(height: 1, size: 255, codes: [256, 255]), [], .corrupt),
        // Unknown codes: the last string and a 2, if there is a last one.
        (GIFCodes(height: 1, codes: [4, 6]), [], .corrupt),
        (GIFCodes(height: 1, codes: [7, 1]), [], .corrupt),
        (GIFCodes(height: 3, codes: [4, 1, 7]), [1, 1, 2], nil),
        (GIFCodes(height: 4, codes: [4, 1, 7, 3, 5]), [1, 1, 2, 3], nil),
        (GIFCodes(height: 4, codes: [4, 1, 7, 7, 5]), [1, 1, 2], .corrupt),
        (GIFCodes(height: 6, codes: [4, 1, 7, 4, 3, 0, 6]), [1, 1, 2, 3, 0, 3], nil),
        // The code 9 begins with 10, which is defined later.
        (GIFCodes(height: 10, codes: [4, 1, 1, 1, 10, 0, 3, 9, 5]), [1, 1, 1, 1, 2, 0, 3, 0, 3, 0], nil),
        (GIFCodes(height: 9, codes: [4, 1, 1, 1, 10, 0, 9, 5]), [1, 1, 1, 1, 2, 0], .corrupt),
        // The end, in each place.
        (GIFCodes(height: 3, codes: [4, 1, 2, 5]), [1, 2], .corrupt),
        (GIFCodes(height: 1, codes: [5]), [], .corrupt),
        (GIFCodes(height: 1, codes: []), [], .corrupt),
        // The bits behind the last code are two codes of 0.
        (GIFCodes(height: 5, codes: [4, 1, 2]), [1, 2, 0, 0], .corrupt),
        (GIFCodes(height: 2, codes: [4, 1, 2, 5], end: [2, 7, 7, 0, 0x3B]), [1, 2], nil),
        (GIFCodes(height: 2, codes: [4, 1, 2, 5, 5, 5, 5, 5, 5, 5], block: 1), [1, 2], nil),
        (GIFCodes(height: 5, codes: [4, 1, 2], end: [0, 2, 0x0A, 0x2D, 0, 0x3B]), [1, 2, 0, 0], .corrupt),
        (GIFCodes(height: 3, codes: [4, 1, 2, 3], end: []), [1, 2], .truncated),
        (GIFCodes(height: 3, codes: [4, 1, 2, 3], end: [3, 0]), [1, 2], .truncated),
    ]

    @Test(arguments: rows) func codesGiveTheirRows(
        file: GIFCodes, indices: [UInt8], error: ImageError.Kind?
    ) throws {
        #expect(errorKind(file.bytes) == error)
        #expect(try Self.indices(file) == indices)
    }

    @Test func aTableStaysFullUntilItIsCleared() throws {
        let pixels = (0..<5000).map { $0 * $0 / 3 % 4 }
        let codes = [4] + pixels + [4095, 6, 4, 3, 0, 6, 5]
        let shown = pixels + pixels[4089...4090] + pixels[0...1] + [3, 0, 3, 0]
        let file = GIFCodes(height: shown.count, codes: codes)
        #expect(try Self.indices(file).map(Int.init) == shown)
        #expect(errorKind(file.bytes) == nil)
    }

    @Test(arguments: [1, 7, 480, 65_535], [false, true])
    func longStringsCrossRowsAndBlocks(width: Int, clears: Bool) throws {
        let height = max(2, 30_000 / width)
        let pixels = (0..<width * height).map { UInt8($0 * ($0 / 3000) % 7 % 4) }
        for block in [255, 3] {
            let codes = GIFCodes.codes(of: pixels, clears: clears)
            let file = GIFCodes(width: width, height: height, codes: codes, block: block)
            #expect(try Self.indices(file) == pixels)
        }
    }

    /// Returns the indices of the pixels that are shown. Whole files and files in pieces give the same.
    private static func indices(_ file: GIFCodes) throws -> [UInt8] {
        let options = ImageDecodingOptions(allowsPartial: true)
        let whole = try decoded(file.bytes, options)
        let decoder = IncrementalDecoder(options: options)
        for byte in file.bytes.prefix(4096) { try decoder.append(Data([byte])) }
        try decoder.append(Data(file.bytes.dropFirst(4096)))
        #expect(try decoder.finish().pixels.bytes == whole.pixels.bytes)
        let bytes = whole.pixels.bytes
        return stride(from: 0, to: bytes.count, by: 4).filter { bytes[$0 + 3] == 255 }.map { bytes[$0] }
    }
}
#endif
