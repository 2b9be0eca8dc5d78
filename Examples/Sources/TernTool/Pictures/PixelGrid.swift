import TernImages

/// A colour as a terminal shows it.
struct Color: Hashable, Sendable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8
}

/// What is behind transparent pixels.
enum Backdrop: Equatable, Sendable {
    /// The terminal itself. What is transparent stays untouched; what is partly so is composed over black or white.
    case terminal(isDark: Bool)
    /// Squares of two greys, of so many pixels a side.
    case checker(side: Int)

    /// What the environment says of the terminal's background: `COLORFGBG=15;0` is dark. Without a word it is taken for
    /// dark.
    static func terminal(environment: [String: String]) -> Backdrop {
        let background = environment["COLORFGBG"]?.split(separator: ";").last.flatMap { Int($0) }
        return .terminal(isDark: background.map { $0 != 7 && $0 != 15 } ?? true)
    }

    /// The grey at a pixel.
    func grey(_ x: Int, _ y: Int) -> UInt8 {
        switch self {
        case .terminal(let isDark): isDark ? 0 : 255
        case .checker(let side): (x / side + y / side).isMultiple(of: 2) ? 153 : 102
        }
    }

    /// Whether what is behind a transparent pixel is the terminal's own.
    var isOpen: Bool { if case .terminal = self { true } else { false } }
}

/// The pixels of a picture over a backdrop: colours, and nil where the terminal shows through.
struct PixelGrid {
    let width: Int
    let height: Int
    private let colors: [Color?]

    init(width: Int, height: Int, _ colors: [Color?]) {
        (self.width, self.height, self.colors) = (width, height, colors)
    }

    /// A picture's pixels, which are premultiplied: what is behind shows by what alpha leaves.
    init(_ image: RasterImage, over backdrop: Backdrop) {
        let (width, height) = (image.size.width, image.size.height)
        let colors = image.withPixels { pixels in
            (0..<width * height).map { index -> Color? in
                // The closure's bytes are four for each pixel.
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

    /// The colour of a pixel; nil for the terminal's own, and outside.
    subscript(x: Int, y: Int) -> Color? {
        x < width && y < height ? colors[y * width + x] : nil
    }

    /// The pixels as a picture; open ones are transparent.
    var image: RasterImage? {
        let bytes = colors.flatMap { color -> [UInt8] in
            color.map { [$0.red, $0.green, $0.blue, 255] } ?? [0, 0, 0, 0]
        }
        return RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes)
    }
}
