/// Pictures in sixel: bands of six rows, each painted once for each of its colours. Pure.
///
/// Colours are those of a cube of 6×6×6, with an ordered dither: no palette has to be computed, and nothing swims from one
/// frame of an animation to the next.
enum Sixel {
    private static let levels = 6
    /// Bayer's matrix.
    private static let thresholds = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5]

    /// The whole sequence. What the terminal shows through gets its background colour.
    static func text(_ grid: PixelGrid) -> String {
        var indices = [Int](repeating: -1, count: grid.width * grid.height)
        for y in 0..<grid.height {
            for x in 0..<grid.width {
                if let color = grid[x, y] { indices[y * grid.width + x] = index(color, x, y) }
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

    private static func index(_ color: Color, _ x: Int, _ y: Int) -> Int {
        let threshold = thresholds[y % 4 * 4 + x % 4] * 255 + 127
        func step(_ channel: UInt8) -> Int { (Int(channel) * (levels - 1) * 16 + threshold) / (255 * 16) }
        return step(color.red) * 36 + step(color.green) * 6 + step(color.blue)
    }

    /// One line of sixels for each colour, one over the other.
    private static func band(_ indices: [Int], _ rows: Range<Int>, width: Int) -> String {
        var bits: [Int: [UInt8]] = [:]
        for (bit, y) in rows.enumerated() {
            for x in 0..<width where indices[y * width + x] >= 0 {
                bits[indices[y * width + x], default: [UInt8](repeating: 0, count: width)][x] |= 1 << UInt8(bit)
            }
        }
        return bits.keys.sorted().map { "#\($0)" + packed(bits[$0] ?? []) }.joined(separator: "$")
    }

    /// Runs of more than three as `!n`; what is empty at the end is left out.
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
