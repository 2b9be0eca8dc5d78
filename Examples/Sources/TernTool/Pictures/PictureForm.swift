import ArgumentParser

/// How a picture is told to a terminal.
enum PictureForm: String, CaseIterable, ExpressibleByArgument, Sendable {
    /// The kitty graphics protocol: all pixels, transparency too.
    case kitty
    /// iTerm2's inline images: the same.
    case iterm2
    /// Sixel: all pixels in at most 216 colours.
    case sixel
    /// Half blocks, two pixels in a cell, in 24-bit colours.
    case blocks
    /// Half blocks in the 256 colours of a palette.
    case blocks256
    /// Shades of plain letters, with no control sequence.
    case ascii

    /// What the terminal understands, by what its environment says of it. Nothing is asked of the terminal itself: a
    /// question that it does not know would be waited for, and an answer that comes late typed into the shell.
    init(environment: [String: String]) {
        let term = environment["TERM"] ?? "dumb"
        let program = environment["TERM_PROGRAM"] ?? ""
        // What a multiplexer does not know itself it does not hand on.
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

    private static func blocks(_ environment: [String: String], _ term: String) -> PictureForm {
        let isTrueColor = ["truecolor", "24bit"].contains(environment["COLORTERM"] ?? "") || term.hasSuffix("-direct")
        return isTrueColor ? .blocks : .blocks256
    }

    /// Whether it can draw over what it has drawn.
    var redraws: Bool { self != .ascii }

    /// Pixels of one cell: those of letters and half blocks are given, those of the others the terminal's. Where it does
    /// not tell them, they are guessed: about twice as high as wide.
    func cell(in window: WindowSize) -> (width: Int, height: Int) {
        switch self {
        case .blocks, .blocks256, .ascii: return (1, 2)
        case .kitty, .iterm2, .sixel:
            let (width, height) = (window.pixelWidth / window.columns, window.pixelHeight / window.rows)
            return width > 0 && height > 0 ? (width, height) : (10, 20)
        }
    }
}
