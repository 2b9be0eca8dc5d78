import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Turns a picture into what a terminal is sent to show it. Pure.
struct PicturePainter: Sendable {
    let form: PictureForm
    let layout: CellLayout
    let backdrop: Backdrop
    /// The number of the picture in the kitty protocol: another one of the same number takes its place.
    var number = UInt32.random(in: 1...0xFFFF_FFFF)

    private static let escape = "\u{1B}"

    /// What shows a picture, from the beginning of a line on, and ends on the line below it, and how many lines it takes.
    ///
    /// - Parameter covered: lines of the picture that it takes the place of, right above the cursor; nil for none.
    func text(of image: RasterImage, covering covered: Int? = nil) throws(ImageError) -> (text: String, rows: Int) {
        let (columns, rows) = layout.cells(of: image.size)
        var text = covered.map { $0 > 0 ? "\(Self.escape)[\($0)A\r" : "\r" } ?? ""
        // What was there was of another size.
        if let covered, covered != rows { text += "\(Self.escape)[J" }
        switch form {
        case .blocks, .blocks256:
            let lines = HalfBlocks.lines(PixelGrid(image, over: backdrop), isTrueColor: form == .blocks)
            text += lines.map { $0 + "\n" }.joined()
        case .ascii:
            let isDark = backdrop != .terminal(isDark: false)
            text += LetterShades.lines(PixelGrid(image, over: backdrop), isDark: isDark).map { $0 + "\n" }.joined()
        case .kitty:
            text += reserved(rows, InlineFiles.kitty(try png(image), rows: rows, number: number))
        case .iterm2:
            text += reserved(rows, InlineFiles.iterm2(try png(image), columns: columns, rows: rows))
        case .sixel:
            text += reserved(rows, Sixel.text(PixelGrid(image, over: backdrop)))
        }
        return (text, rows)
    }

    /// Makes the lines first, so that the window has scrolled before the picture is drawn, and is where it was after it.
    private func reserved(_ rows: Int, _ picture: String) -> String {
        let lines = String(repeating: "\n", count: rows)
        return "\(lines)\(Self.escape)[\(rows)A\(Self.escape)7\(picture)\(Self.escape)8\(Self.escape)[\(rows)B\r"
    }

    /// The terminal shows through what is transparent, and composes the rest itself.
    private func png(_ image: RasterImage) throws(ImageError) -> Data {
        let picture = backdrop.isOpen ? image : PixelGrid(image, over: backdrop).image ?? image
        return try picture.encoded(as: .png(level: 1))
    }
}
