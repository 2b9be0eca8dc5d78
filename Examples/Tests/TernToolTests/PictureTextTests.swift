import TernImages
import Testing

@testable import TernTool

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Known pixels to exact text.
@Suite struct PictureTextTests {
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

    @Test func aColourIsSaidOnce() {
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

    @Test func nothingIsSaidOfAnEmptyLine() {
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
        #expect(LetterShades.lines(grid, isDark: true) == ["=@ "])
        #expect(LetterShades.lines(grid, isDark: false) == ["=  "])
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
        let text = InlineFiles.kitty(data, rows: 2, number: 7)
        let base64 = data.base64EncodedString()
        #expect(
            text == "\(escape)_Ga=T,f=100,i=7,p=1,r=2,C=1,q=2,m=1;\(base64.prefix(4_096))\(escape)\\"
                + "\(escape)_Gm=0;\(base64.dropFirst(4_096))\(escape)\\")
    }

    @Test func iterm2TakesAWholeFile() {
        #expect(
            InlineFiles.iterm2(Data([1, 2, 3]), columns: 4, rows: 2)
                == "\(escape)]1337;File=inline=1;size=3;width=4;height=2;preserveAspectRatio=1:AQID\u{7}")
    }
}
