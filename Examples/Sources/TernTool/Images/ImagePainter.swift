import ArgumentParser
import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Converts an image to the bytes that show it in a terminal. Pure.
struct ImagePainter: Sendable {
    let form: GraphicsProtocol
    let layout: CellLayout
    let backdrop: Backdrop
    /// The number of the image in the kitty protocol; a later image with the same number replaces it.
    var number = UInt32.random(in: 1...0xFFFF_FFFF)

    private static let escape = "\u{1B}"

    /// Returns the text that shows an image from the beginning of a line and ends on the line below it, and the number
    /// of lines.
    ///
    /// - Parameter covered: The lines of the image to replace, directly above the cursor; nil for none.
    func text(of image: RasterImage, covering covered: Int? = nil) throws(ImageError) -> (text: String, rows: Int) {
        let (columns, rows) = layout.cells(of: image.size)
        var text = covered.map { $0 > 0 ? "\(Self.escape)[\($0)A\r" : "\r" } ?? ""
        // The previous image had another size.
        if let covered, covered != rows { text += "\(Self.escape)[J" }
        switch form {
        case .blocks, .blocks256:
            let lines = HalfBlocks.lines(PixelGrid(image, over: backdrop), isTrueColor: form == .blocks)
            text += lines.map { $0 + "\n" }.joined()
        case .ascii:
            let isDark = backdrop != .terminal(isDark: false)
            text += ASCIIArt.lines(PixelGrid(image, over: backdrop), isDark: isDark).map { $0 + "\n" }.joined()
        case .kitty:
            text += reserved(rows, InlineImages.kitty(try png(image), rows: rows, number: number))
        case .iterm2:
            text += reserved(rows, InlineImages.iterm2(try png(image), columns: columns, rows: rows))
        case .sixel:
            text += reserved(rows, Sixel.text(PixelGrid(image, over: backdrop)))
        }
        return (text, rows)
    }

    /// Writes the empty lines first, so that the window scrolls before the image is drawn and not after it.
    private func reserved(_ rows: Int, _ picture: String) -> String {
        let lines = String(repeating: "\n", count: rows)
        return "\(lines)\(Self.escape)[\(rows)A\(Self.escape)7\(picture)\(Self.escape)8\(Self.escape)[\(rows)B\r"
    }

    /// Encodes the image with its transparency, which the terminal composes itself.
    private func png(_ image: RasterImage) throws(ImageError) -> Data {
        let picture = backdrop.isOpen ? image : PixelGrid(image, over: backdrop).image ?? image
        return try picture.encoded(as: .png(level: 1))
    }
}

/// The protocol that transfers an image to a terminal.
enum GraphicsProtocol: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// The kitty graphics protocol: all pixels, with transparency.
    case kitty
    /// The inline images of iTerm2: all pixels, with transparency.
    case iterm2
    /// Sixel: all pixels in at most 216 colours.
    case sixel
    /// Half blocks, two pixels in a cell, in 24-bit colours.
    case blocks
    /// Half blocks in a palette of 256 colours.
    case blocks256
    /// Shades of ASCII characters, without control sequences.
    case ascii

    /// Selects the protocol from the terminal's description in the environment. The terminal is not queried, because an
    /// unknown query would never be answered, and a late answer would be typed into the shell.
    init(environment: [String: String]) {
        let term = environment["TERM"] ?? "dumb"
        let program = environment["TERM_PROGRAM"] ?? ""
        // A multiplexer does not pass on protocols that it does not know.
        let isNested =
            environment["TMUX"] != nil || environment["STY"] != nil || term.hasPrefix("screen")
            || term.hasPrefix("tmux")
        switch (term, program) {
        case ("dumb", _), ("", _): self = .ascii
        case _ where isNested: self = Self.blocks(environment, term)
        case ("xterm-kitty", _), ("xterm-ghostty", _), (_, "ghostty"): self = .kitty
        case _ where environment["KITTY_WINDOW_ID"] != nil: self = .kitty
        case (_, "iTerm.app"), (_, "WezTerm"), (_, "mintty"): self = .iterm2
        case _ where environment["LC_TERMINAL"] == "iTerm2": self = .iterm2
        case _ where term.hasPrefix("foot") || term.hasPrefix("mlterm") || term.contains("sixel"): self = .sixel
        default: self = Self.blocks(environment, term)
        }
    }

    private static func blocks(_ environment: [String: String], _ term: String) -> GraphicsProtocol {
        let isTrueColor = ["truecolor", "24bit"].contains(environment["COLORTERM"] ?? "") || term.hasSuffix("-direct")
        return isTrueColor ? .blocks : .blocks256
    }

    /// Whether an image can replace an earlier one.
    var redraws: Bool { self != .ascii }

    /// Returns the pixels of one cell. They are fixed for characters and half blocks, and otherwise reported by the
    /// terminal. Without a report, a cell counts as about twice as high as wide.
    func cell(in window: WindowSize) -> (width: Int, height: Int) {
        switch self {
        case .blocks, .blocks256, .ascii: return (1, 2)
        case .kitty, .iterm2, .sixel:
            let (width, height) = (window.pixelWidth / window.columns, window.pixelHeight / window.rows)
            return width > 0 && height > 0 ? (width, height) : (10, 20)
        }
    }
}

/// Describes a loaded image in one line. Pure.
struct ImageSummary {
    let name: String
    let response: ImageResponse
    /// Whether the image is a local file, for which no cache is used.
    let isFile: Bool
    let time: Duration

    var line: String {
        let image = response.image
        var parts = ["\(image.metadata.originalSize)", image.format?.rawValue ?? "unknown format"]
        if let count = response.animation?.count, count > 1 { parts.append("\(count) frames") }
        parts.append(isFile ? "from a file" : "from \(origin)")
        if response.isStale { parts.append("stale") }
        let bytes = response.data.map { "\(ByteText.size(Int64($0.count))) in " } ?? ""
        parts.append(bytes + DurationText.span(time))
        return "\(Terminal.plain(name)): \(parts.joined(separator: ", "))"
    }

    private var origin: String {
        switch response.source {
        case .memory: "memory"
        case .processed, .original: "the disk"
        case .network: "the network"
        case .revalidated: "the disk, asked for again"
        }
    }
}
