import TernImages
import Testing

@testable import TernTool

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct ImagePainterTests {
    private static let window = WindowSize(columns: 80, rows: 24, pixelWidth: 800, pixelHeight: 480)
    private let escape = "\u{1B}"

    private func painter(
        _ form: GraphicsProtocol = .blocks, backdrop: Backdrop = .terminal(isDark: true)
    ) -> ImagePainter {
        ImagePainter(form: form, layout: CellLayout(Self.window, form: form), backdrop: backdrop, number: 1)
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

    @Test(arguments: [0, -1, 10_001, .max]) func sizesOutOfReachAreRefused(size: Int) {
        var command = ImageCommand()
        (command.source, command.loops, command.height, command.width) = ("a.png", nil, nil, size)
        #expect(throws: (any Error).self) { try command.validate() }
        (command.height, command.width) = (size, nil)
        #expect(throws: (any Error).self) { try command.validate() }
        (command.height, command.width) = (10_000, 1)
        #expect(throws: Never.self) { try command.validate() }
    }

    @Test func aCoveredImageIsReplaced() throws {
        let (first, rows) = try painter().text(of: try image(1, 2))
        #expect(first == "\(escape)[38;2;255;0;0;48;2;255;0;0m▀\(escape)[0m\n" && rows == 1)
        #expect(try painter().text(of: try image(1, 2), covering: 1).text == "\(escape)[1A\r" + first)
        #expect(try painter().text(of: try image(1, 2), covering: 3).text == "\(escape)[3A\r\(escape)[J" + first)
    }

    @Test(arguments: [GraphicsProtocol.kitty, .iterm2, .sixel])
    func thePixelFormsMakeRoomFirstAndEndBelowThePicture(form: GraphicsProtocol) throws {
        let (text, rows) = try painter(form).text(of: try image(10, 50))
        #expect(rows == 3)
        #expect(text.hasPrefix("\n\n\n\(escape)[3A\(escape)7\(escape)"))
        #expect(text.hasSuffix("\(escape)8\(escape)[3B\r"))
    }

    @Test func partlyTransparentPixelsAreComposedOverTheBackdrop() throws {
        let half = try image(1, 1, pixel: [100, 0, 0, 128])
        #expect(PixelGrid(half, over: .terminal(isDark: true))[0, 0] == Color(red: 100, green: 0, blue: 0))
        #expect(PixelGrid(half, over: .terminal(isDark: false))[0, 0] == Color(red: 227, green: 127, blue: 127))
        let clear = try image(4, 2, pixel: [0, 0, 0, 0])
        #expect(PixelGrid(clear, over: .terminal(isDark: false))[0, 0] == nil)
        let squares = PixelGrid(clear, over: .checker(side: 2))
        #expect([0, 1, 2, 3].map { squares[$0, 0]?.red } == [153, 153, 102, 102])
    }

    @Test func theEnvironmentStatesTheBackground() {
        #expect(Backdrop.terminal(environment: ["COLORFGBG": "0;default;15"]) == .terminal(isDark: false))
        #expect(Backdrop.terminal(environment: ["COLORFGBG": "15;0"]) == .terminal(isDark: true))
        #expect(Backdrop.terminal(environment: [:]) == .terminal(isDark: true))
    }

    @Test(arguments: [
        ([:], GraphicsProtocol.ascii), (["TERM": "dumb", "COLORTERM": "truecolor"], .ascii),
        (["TERM": "xterm-256color"], .blocks256), (["TERM": "xterm-256color", "COLORTERM": "truecolor"], .blocks),
        (["TERM": "xterm-direct"], .blocks), (["TERM": "xterm-kitty"], .kitty),
        (["TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"], .kitty),
        (["TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"], .iterm2),
        (["TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"], .iterm2), (["TERM": "foot"], .sixel),
        (["TERM": "screen-256color", "KITTY_WINDOW_ID": "1"], .blocks256),
        (["TERM": "xterm-kitty", "TMUX": "/tmp/x", "COLORTERM": "24bit"], .blocks),
    ])
    func theEnvironmentTellsTheForm(environment: [String: String], form: GraphicsProtocol) {
        #expect(GraphicsProtocol(environment: environment) == form)
    }
}

/// Tests known pixels against exact text.
@Suite struct TerminalGraphicsTests {
    private static let red = Color(red: 255, green: 0, blue: 0)
    private static let blue = Color(red: 0, green: 0, blue: 255)
    private static let white = Color(red: 255, green: 255, blue: 255)
    private let escape = "\u{1B}"

    @Test func aCellIsTwoPixels() {
        let grid = PixelGrid(width: 1, height: 2, [Self.red, Self.blue])
        #expect(
            HalfBlocks.lines(grid, isTrueColor: true) == ["\(escape)[38;2;255;0;0;48;2;0;0;255m▀\(escape)[0m"])
        #expect(HalfBlocks.lines(grid, isTrueColor: false) == ["\(escape)[38;5;196;48;5;21m▀\(escape)[0m"])
    }

    @Test func aColourIsSetOnce() {
        let grid = PixelGrid(width: 3, height: 2, [Self.red, Self.red, Self.white, Self.blue, Self.blue, Self.blue])
        #expect(
            HalfBlocks.lines(grid, isTrueColor: true) == [
                "\(escape)[38;2;255;0;0;48;2;0;0;255m▀▀\(escape)[38;2;255;255;255m▀\(escape)[0m"
            ])
    }

    @Test func theTerminalShowsThroughWhatIsTransparent() {
        let grid = PixelGrid(width: 4, height: 2, [nil, Self.red, nil, Self.red, nil, nil, Self.blue, Self.blue])
        #expect(
            HalfBlocks.lines(grid, isTrueColor: true) == [
                " \(escape)[38;2;255;0;0m▀\(escape)[38;2;0;0;255m▄"
                    + "\(escape)[38;2;255;0;0;48;2;0;0;255m▀\(escape)[0m"
            ])
    }

    @Test func anEmptyLineHasNoColourSequence() {
        #expect(HalfBlocks.lines(PixelGrid(width: 2, height: 1, [nil, nil]), isTrueColor: true) == ["  "])
    }

    @Test func anOddRowHasNothingBelowIt() {
        let lines = HalfBlocks.lines(PixelGrid(width: 1, height: 3, [nil, nil, Self.red]), isTrueColor: true)
        #expect(lines == [" ", "\(escape)[38;2;255;0;0m▀\(escape)[0m"])
    }

    @Test(arguments: [
        (Color(red: 0, green: 0, blue: 0), 16), (white, 231), (Color(red: 128, green: 128, blue: 128), 244),
        (Color(red: 95, green: 135, blue: 175), 67), (Color(red: 250, green: 5, blue: 10), 196),
    ])
    func thePalettesNearestColourIsTaken(color: Color, index: Int) { #expect(Palette.index(of: color) == index) }

    @Test func lettersShadeByBrightness() {
        let grid = PixelGrid(
            width: 3, height: 2, [Color(red: 0, green: 0, blue: 0), Self.white, nil, Self.white, Self.white, nil])
        #expect(ASCIIArt.lines(grid, isDark: true) == ["=@ "])
        #expect(ASCIIArt.lines(grid, isDark: false) == ["=  "])
    }

    @Test func sixelsPaintABandOnceForEachColour() {
        let row: [Color?] = [Self.red, Self.red, Self.red, Self.red, Self.red, nil, Self.white, nil]
        #expect(
            Sixel.text(PixelGrid(width: 8, height: 1, row))
                == "\(escape)Pq\"1;1;8;1#180;2;100;0;0#215;2;100;100;100#180!5@$#215!6?@-\(escape)\\")
    }

    @Test func sixelsBandsAreSixRowsHigh() {
        let text = Sixel.text(PixelGrid(width: 1, height: 8, Array(repeating: Self.white, count: 8)))
        #expect(text == "\(escape)Pq\"1;1;1;8#215;2;100;100;100#215~-#215B-\(escape)\\")
    }

    @Test func kittyTakesPiecesOf4096Bytes() {
        let data = Data(repeating: 0, count: 3_100)
        let text = InlineImages.kitty(data, rows: 2, number: 7)
        let base64 = data.base64EncodedString()
        #expect(
            text == "\(escape)_Ga=T,f=100,i=7,p=1,r=2,C=1,q=2,m=1;\(base64.prefix(4_096))\(escape)\\"
                + "\(escape)_Gm=0;\(base64.dropFirst(4_096))\(escape)\\")
    }

    @Test func iterm2TakesAWholeFile() {
        #expect(
            InlineImages.iterm2(Data([1, 2, 3]), columns: 4, rows: 2)
                == "\(escape)]1337;File=inline=1;size=3;width=4;height=2;preserveAspectRatio=1:AQID\u{7}")
    }
}
