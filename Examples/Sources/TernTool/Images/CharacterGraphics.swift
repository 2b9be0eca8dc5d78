import TernImages

/// Draws images with half blocks: each cell shows two pixels, one above the other, with the colours of `▀` and of its
/// background. Pure.
enum HalfBlocks {
    private static let reset = "\u{1B}[0m"

    /// Returns a line of text for every two rows of pixels. Each ends with the terminal's own colours.
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

    /// The current colours; nil for the terminal's own.
    private struct Pen: Equatable {
        var ink: Color?
        var paper: Color?

        /// Changes the colours and returns the sequence for the difference; empty without one.
        mutating func change(to ink: Color?, on paper: Color?, isTrueColor: Bool) -> String {
            var codes: [String] = []
            if ink != self.ink { codes.append(Self.code(ink, layer: 38, isTrueColor: isTrueColor)) }
            if paper != self.paper { codes.append(Self.code(paper, layer: 48, isTrueColor: isTrueColor)) }
            (self.ink, self.paper) = (ink, paper)
            return codes.isEmpty ? "" : "\u{1B}[\(codes.joined(separator: ";"))m"
        }

        private static func code(_ color: Color?, layer: Int, isTrueColor: Bool) -> String {
            guard let color else { return "\(layer + 1)" }
            return isTrueColor
                ? "\(layer);2;\(color.red);\(color.green);\(color.blue)" : "\(layer);5;\(Palette.index(of: color))"
        }
    }
}

/// The 256 colours of xterm: 16 of the user's, a cube of 6×6×6, and 24 greys.
enum Palette {
    private static let levels: [Int] = [0, 95, 135, 175, 215, 255]

    /// Returns the nearest colour of the cube or the greys. The user's own colours are unknown.
    static func index(of color: Color) -> Int {
        let channels = [color.red, color.green, color.blue].map { Int($0) }
        let steps = channels.map { channel in
            levels.indices.min { abs(levels[$0] - channel) < abs(levels[$1] - channel) } ?? 0
        }
        // The greys are 8, 18, … 238.
        let grey = min(23, max(0, (channels.reduce(0, +) / 3 - 3) / 10))
        func distance(_ other: [Int]) -> Int { zip(channels, other).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } }
        let isGrey = distance(Array(repeating: 8 + 10 * grey, count: 3)) < distance(steps.map { levels[$0] })
        return isGrey ? 232 + grey : 16 + 36 * steps[0] + 6 * steps[1] + steps[2]
    }
}

/// Draws images with characters, for terminals without other support: the brighter a cell, the more of it the character
/// covers. Pure.
enum ASCIIArt {
    private static let shades = Array(" .:-=+*#%@")

    /// Returns a line for every two rows of pixels. On a bright background the characters represent the dark pixels.
    static func lines(_ grid: PixelGrid, isDark: Bool) -> [String] {
        stride(from: 0, to: grid.height, by: 2).map { row in
            String((0..<grid.width).map { letter([grid[$0, row], grid[$0, row + 1]].compactMap(\.self), isDark) })
        }
    }

    private static func letter(_ colors: [Color], _ isDark: Bool) -> Character {
        guard !colors.isEmpty else { return " " }
        // The weights of ITU-R BT.601, in thousandths.
        let sum = colors.reduce(0) { $0 + 299 * Int($1.red) + 587 * Int($1.green) + 114 * Int($1.blue) }
        let light = sum / colors.count / 1_000
        return shades[(isDark ? light : 255 - light) * (shades.count - 1) / 255]
    }
}

/// The space for an image in a terminal. Pure.
struct CellLayout: Equatable {
    /// The number of cells in a row.
    let columns: Int
    /// The number of rows.
    let rows: Int
    /// The size of a cell in pixels.
    let cell: PixelSize
    /// Whether an image of all rows can be replaced. The cursor cannot return to lines that have scrolled away.
    let fitsWindow: Bool

    /// Creates a layout of the whole window except two lines, for the progress and the prompt, or of the size that the
    /// user gave.
    init(_ window: WindowSize, form: GraphicsProtocol, columns: Int? = nil, rows: Int? = nil) {
        let cell = form.cell(in: window)
        self.cell = PixelSize(width: cell.width, height: cell.height)
        self.columns = columns ?? window.columns
        self.rows = rows ?? max(1, window.rows - 2)
        fitsWindow = self.rows < window.rows && self.columns <= window.columns
    }

    /// The size to decode to. The image fits into it, and a smaller image stays smaller.
    var target: PixelSize { PixelSize(width: columns * cell.width, height: rows * cell.height) }

    /// Returns the cells that an image covers.
    func cells(of size: PixelSize) -> (columns: Int, rows: Int) {
        (
            min(columns, (size.width + cell.width - 1) / cell.width),
            min(rows, (size.height + cell.height - 1) / cell.height)
        )
    }
}

/// A colour in a terminal.
struct Color: Hashable, Sendable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8
}

/// The background of transparent pixels.
enum Backdrop: Equatable, Sendable {
    /// The terminal. Fully transparent pixels stay untouched; partly transparent ones are composed over black or white.
    case terminal(isDark: Bool)
    /// A checkerboard of two greys with squares of this side in pixels.
    case checker(side: Int)

    /// Returns the terminal background that the environment states: `COLORFGBG=15;0` is dark. Without the variable it
    /// counts as dark.
    static func terminal(environment: [String: String]) -> Backdrop {
        let background = environment["COLORFGBG"]?.split(separator: ";").last.flatMap { Int($0) }
        return .terminal(isDark: background.map { $0 != 7 && $0 != 15 } ?? true)
    }

    /// Returns the grey at a pixel.
    func grey(_ x: Int, _ y: Int) -> UInt8 {
        switch self {
        case .terminal(let isDark): isDark ? 0 : 255
        case .checker(let side): (x / side + y / side).isMultiple(of: 2) ? 153 : 102
        }
    }

    /// Whether the terminal shows through transparent pixels.
    var isOpen: Bool { if case .terminal = self { true } else { false } }
}

/// The pixels of an image over a backdrop: colours, and nil where the terminal shows through.
struct PixelGrid {
    let width: Int
    let height: Int
    private let colors: [Color?]

    init(width: Int, height: Int, _ colors: [Color?]) {
        (self.width, self.height, self.colors) = (width, height, colors)
    }

    /// Composes the premultiplied pixels of an image over a backdrop, in sRGB. One that cannot be converted is clear.
    init(_ image: RasterImage, over backdrop: Backdrop) {
        let image = (try? image.converted(to: .sRGB)) ?? RasterImage(color: .clear, size: image.size)
        let (width, height) = (image.size.width, image.size.height)
        let colors = image.withPixels { pixels in
            (0..<width * height).map { index -> Color? in
                // The buffer has four bytes for each pixel.
                let bytes = unsafe pixels.unsafeLoadUnaligned(fromByteOffset: index * 4, as: UInt32.self).littleEndian
                let alpha = bytes >> 24
                if alpha == 0, backdrop.isOpen { return nil }
                let rest = (255 - alpha) * UInt32(backdrop.grey(index % width, index / width)) / 255
                return Color(
                    red: UInt8(min(255, (bytes & 255) + rest)), green: UInt8(min(255, (bytes >> 8 & 255) + rest)),
                    blue: UInt8(min(255, (bytes >> 16 & 255) + rest)))
            }
        }
        self.init(width: width, height: height, colors)
    }

    /// The colour of a pixel; nil for the terminal's own, and outside the image.
    subscript(x: Int, y: Int) -> Color? {
        x < width && y < height ? colors[y * width + x] : nil
    }

    /// The pixels as an image; pixels through which the terminal shows are transparent.
    var image: RasterImage? {
        let bytes = colors.flatMap { color -> [UInt8] in
            color.map { [$0.red, $0.green, $0.blue, 255] } ?? [0, 0, 0, 0]
        }
        return RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes)
    }
}
