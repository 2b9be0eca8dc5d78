import TernImages
import Testing

@testable import TernTool

@Suite struct PicturePainterTests {
    private static let window = WindowSize(columns: 80, rows: 24, pixelWidth: 800, pixelHeight: 480)
    private let escape = "\u{1B}"

    private func painter(
        _ form: PictureForm = .blocks, backdrop: Backdrop = .terminal(isDark: true)
    ) -> PicturePainter {
        PicturePainter(form: form, layout: CellLayout(Self.window, form: form), backdrop: backdrop, number: 1)
    }

    private func image(_ width: Int, _ height: Int, pixel: [UInt8] = [255, 0, 0, 255]) throws -> RasterImage {
        let bytes = Array(repeatElement(pixel, count: width * height).joined())
        return try #require(RasterImage(size: PixelSize(width: width, height: height), premultiplied: bytes))
    }

    @Test func aHalfBlocksPixelsAreSquareInCellsOfOneToTwo() {
        let layout = CellLayout(Self.window, form: .blocks)
        #expect(layout.target == PixelSize(width: 80, height: 44))
        #expect(layout.cells(of: PixelSize(width: 44, height: 44)) == (44, 22))
        #expect(layout.cells(of: PixelSize(width: 3, height: 3)) == (3, 2))
    }

    @Test func thePixelFormsTakeTheTerminalsOwnPixels() {
        let layout = CellLayout(Self.window, form: .kitty)
        #expect(layout.target == PixelSize(width: 800, height: 440))
        #expect(layout.cells(of: PixelSize(width: 101, height: 40)) == (11, 2))
        let unknown = CellLayout(WindowSize(columns: 10, rows: 5), form: .sixel)
        #expect(unknown.target == PixelSize(width: 100, height: 60))
    }

    @Test func theUsersSizeTakesThePlaceOfTheWindows() {
        let layout = CellLayout(Self.window, form: .blocks, columns: 20, rows: 5)
        #expect(layout.target == PixelSize(width: 20, height: 10) && layout.fitsWindow)
        #expect(!CellLayout(Self.window, form: .blocks, rows: 24).fitsWindow)
        #expect(!CellLayout(Self.window, form: .blocks, columns: 81).fitsWindow)
    }

    @Test func whatIsCoveredIsDrawnOver() throws {
        let (first, rows) = try painter().text(of: try image(1, 2))
        #expect(first == "\(escape)[38;2;255;0;0;48;2;255;0;0m▀\(escape)[0m\n" && rows == 1)
        #expect(try painter().text(of: try image(1, 2), covering: 1).text == "\(escape)[1A\r" + first)
        #expect(try painter().text(of: try image(1, 2), covering: 3).text == "\(escape)[3A\r\(escape)[J" + first)
    }

    @Test(arguments: [PictureForm.kitty, .iterm2, .sixel])
    func thePixelFormsMakeRoomFirstAndEndBelowThePicture(form: PictureForm) throws {
        let (text, rows) = try painter(form).text(of: try image(10, 50))
        #expect(rows == 3)
        #expect(text.hasPrefix("\n\n\n\(escape)[3A\(escape)7\(escape)"))
        #expect(text.hasSuffix("\(escape)8\(escape)[3B\r"))
    }

    @Test func whatIsPartlyTransparentIsComposedOverTheBackdrop() throws {
        let half = try image(1, 1, pixel: [100, 0, 0, 128])
        #expect(PixelGrid(half, over: .terminal(isDark: true))[0, 0] == Color(red: 100, green: 0, blue: 0))
        #expect(PixelGrid(half, over: .terminal(isDark: false))[0, 0] == Color(red: 227, green: 127, blue: 127))
        let clear = try image(4, 2, pixel: [0, 0, 0, 0])
        #expect(PixelGrid(clear, over: .terminal(isDark: false))[0, 0] == nil)
        let squares = PixelGrid(clear, over: .checker(side: 2))
        #expect([0, 1, 2, 3].map { squares[$0, 0]?.red } == [153, 153, 102, 102])
    }

    @Test func theEnvironmentTellsWhatIsBehind() {
        #expect(Backdrop.terminal(environment: ["COLORFGBG": "0;default;15"]) == .terminal(isDark: false))
        #expect(Backdrop.terminal(environment: ["COLORFGBG": "15;0"]) == .terminal(isDark: true))
        #expect(Backdrop.terminal(environment: [:]) == .terminal(isDark: true))
    }

    @Test(arguments: [
        ([:], PictureForm.ascii), (["TERM": "dumb", "COLORTERM": "truecolor"], .ascii),
        (["TERM": "xterm-256color"], .blocks256), (["TERM": "xterm-256color", "COLORTERM": "truecolor"], .blocks),
        (["TERM": "xterm-direct"], .blocks), (["TERM": "xterm-kitty"], .kitty),
        (["TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"], .kitty),
        (["TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"], .iterm2),
        (["TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"], .iterm2), (["TERM": "foot"], .sixel),
        (["TERM": "screen-256color", "KITTY_WINDOW_ID": "1"], .blocks256),
        (["TERM": "xterm-kitty", "TMUX": "/tmp/x", "COLORTERM": "24bit"], .blocks),
    ])
    func theEnvironmentTellsTheForm(environment: [String: String], form: PictureForm) {
        #expect(PictureForm(environment: environment) == form)
    }
}
