#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encodes images as sixels: bands of six rows, each drawn once for each of its colours. Pure.
///
/// The colours are a cube of 6×6×6 with an ordered dither. It needs no computed palette, and the pattern is stable from
/// frame to frame.
enum Sixel {
    private static let levels = 6
    /// The Bayer matrix.
    private static let thresholds = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5]

    /// Returns the whole sequence. Pixels through which the terminal shows get its background colour.
    static func text(_ grid: PixelGrid) -> String {
        var indices = [Int](repeating: -1, count: grid.width * grid.height)
        for y in 0..<grid.height {
            for x in 0..<grid.width {
                if let color = grid[x, y] { indices[y * grid.width + x] = index(of: color, x: x, y: y) }
            }
        }
        var text = "\u{1B}Pq\"1;1;\(grid.width);\(grid.height)"
        for index in Set(indices).sorted() where index >= 0 {
            let steps = [index / 36, index / 6 % 6, index % 6].map { "\($0 * 100 / (levels - 1))" }
            text += "#\(index);2;\(steps.joined(separator: ";"))"
        }
        for top in stride(from: 0, to: grid.height, by: 6) {
            text += band(indices, top..<min(top + 6, grid.height), width: grid.width) + "-"
        }
        return text + "\u{1B}\\"
    }

    private static func index(of color: Color, x: Int, y: Int) -> Int {
        let threshold = thresholds[y % 4 * 4 + x % 4] * 255 + 127
        func step(_ channel: UInt8) -> Int { (Int(channel) * (levels - 1) * 16 + threshold) / (255 * 16) }
        return step(color.red) * 36 + step(color.green) * 6 + step(color.blue)
    }

    /// Returns a line of sixels for each colour, drawn over each other.
    private static func band(_ indices: [Int], _ rows: Range<Int>, width: Int) -> String {
        var bits: [Int: [UInt8]] = [:]
        for (bit, y) in rows.enumerated() {
            for x in 0..<width where indices[y * width + x] >= 0 {
                bits[indices[y * width + x], default: [UInt8](repeating: 0, count: width)][x] |= 1 << UInt8(bit)
            }
        }
        return bits.keys.sorted().map { "#\($0)" + packed(bits[$0] ?? []) }.joined(separator: "$")
    }

    /// Encodes runs of more than three as `!n`, and omits empty sixels at the end.
    private static func packed(_ bits: [UInt8]) -> String {
        var text = ""
        var rest = bits.prefix((bits.lastIndex { $0 != 0 } ?? -1) + 1)
        while let first = rest.first {
            let run = rest.prefix { $0 == first }.count
            let sixel = String(Character(Unicode.Scalar(63 + first)))
            text += run > 3 ? "!\(run)\(sixel)" : String(repeating: sixel, count: run)
            rest = rest.dropFirst(run)
        }
        return text
    }
}

/// Encodes PNG files for terminals that decode them, at the cursor. Pure.
enum InlineImages {
    /// The size of a piece in the kitty protocol in bytes, as its specification states.
    private static let piece = 4_096

    /// Encodes a file for the kitty graphics protocol, as high as the lines, with its own proportions. The cursor does
    /// not move, a later image with the same number replaces this one, and the terminal does not reply.
    static func kitty(_ png: Data, rows: Int, number: UInt32) -> String {
        let text = Array(png.base64EncodedData())
        let pieces = stride(from: 0, to: text.count, by: piece).map { start in
            String(decoding: text[start..<min(start + piece, text.count)], as: UTF8.self)
        }
        return pieces.enumerated().map { index, text in
            let more = index + 1 < pieces.count ? 1 : 0
            let head = "a=T,f=100,i=\(number),p=1,r=\(rows),C=1,q=2,"
            return "\u{1B}_G\(index == 0 ? head : "")m=\(more);\(text)\u{1B}\\"
        }.joined()
    }

    /// Encodes a file for iTerm2's inline images, within the cells, with its own proportions. The terminal decides
    /// where the cursor ends.
    static func iterm2(_ png: Data, columns: Int, rows: Int) -> String {
        "\u{1B}]1337;File=inline=1;size=\(png.count);width=\(columns);height=\(rows);preserveAspectRatio=1:"
            + png.base64EncodedString() + "\u{7}"
    }
}
