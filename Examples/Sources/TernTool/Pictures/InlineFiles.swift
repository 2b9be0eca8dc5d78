#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Pictures that a terminal decodes itself, of a PNG file, from the cursor on. Pure.
enum InlineFiles {
    /// Bytes of a piece of the kitty protocol, as its specification has them.
    private static let piece = 4_096

    /// By the kitty graphics protocol, as high as the lines, in its own proportions. The cursor stays; another picture of
    /// the same number takes this one's place; the terminal answers nothing.
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

    /// By iTerm2's inline images, within the cells, in its own proportions. The cursor is left wherever the terminal puts
    /// it.
    static func iterm2(_ png: Data, columns: Int, rows: Int) -> String {
        "\u{1B}]1337;File=inline=1;size=\(png.count);width=\(columns);height=\(rows);preserveAspectRatio=1:"
            + png.base64EncodedString() + "\u{7}"
    }
}
