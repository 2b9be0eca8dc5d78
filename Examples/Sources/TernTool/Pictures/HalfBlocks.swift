/// Pictures of half blocks: each cell shows two pixels, one above the other, by the colours of `▀` and of what is behind
/// it. Pure.
enum HalfBlocks {
    private static let reset = "\u{1B}[0m"

    /// A line of text for every two rows of pixels. Each ends with the terminal's own colours.
    static func lines(_ grid: PixelGrid, isTrueColor: Bool) -> [String] {
        stride(from: 0, to: grid.height, by: 2).map { row in
            var line = ""
            var pen = Pen()
            for x in 0..<grid.width {
                let (top, bottom) = (grid[x, row], grid[x, row + 1])
                let (block, ink, paper): (Character, Color?, Color?) =
                    switch (top, bottom) {
                    case (let top?, let bottom): ("▀", top, bottom)
                    case (nil, let bottom?): ("▄", bottom, nil)
                    case (nil, nil): (" ", pen.ink, nil)
                    }
                line += pen.change(to: ink, on: paper, isTrueColor: isTrueColor)
                line.append(block)
            }
            return pen == Pen() ? line : line + reset
        }
    }

    /// The colours that are set; nil for the terminal's own.
    private struct Pen: Equatable {
        var ink: Color?
        var paper: Color?

        /// The sequence that changes what differs; empty where nothing does.
        mutating func change(to ink: Color?, on paper: Color?, isTrueColor: Bool) -> String {
            var codes: [String] = []
            if ink != self.ink { codes.append(Self.code(ink, 38, isTrueColor)) }
            if paper != self.paper { codes.append(Self.code(paper, 48, isTrueColor)) }
            (self.ink, self.paper) = (ink, paper)
            return codes.isEmpty ? "" : "\u{1B}[\(codes.joined(separator: ";"))m"
        }

        private static func code(_ color: Color?, _ layer: Int, _ isTrueColor: Bool) -> String {
            guard let color else { return "\(layer + 1)" }
            return isTrueColor
                ? "\(layer);2;\(color.red);\(color.green);\(color.blue)" : "\(layer);5;\(Palette.index(of: color))"
        }
    }
}

/// The 256 colours of xterm: 16 of the user's, a cube of 6×6×6, and 24 greys.
enum Palette {
    private static let levels: [Int] = [0, 95, 135, 175, 215, 255]

    /// The nearest colour of the cube or of the greys; the user's own may be any.
    static func index(of color: Color) -> Int {
        let channels = [color.red, color.green, color.blue].map { Int($0) }
        let steps = channels.map { channel in
            levels.indices.min { abs(levels[$0] - channel) < abs(levels[$1] - channel) } ?? 0
        }
        // Greys are 8, 18, … 238.
        let grey = min(23, max(0, (channels.reduce(0, +) / 3 - 3) / 10))
        func distance(_ other: [Int]) -> Int { zip(channels, other).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } }
        let isGrey = distance(Array(repeating: 8 + 10 * grey, count: 3)) < distance(steps.map { levels[$0] })
        return isGrey ? 232 + grey : 16 + 36 * steps[0] + 6 * steps[1] + steps[2]
    }
}
