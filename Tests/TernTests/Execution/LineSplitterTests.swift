import Testing

@testable import Tern

@Suite("LineSplitter")
struct LineSplitterTests {
    /// Returns the lines of consecutive pieces.
    private func lines(_ pieces: [[UInt8]]) -> [String] {
        var splitter = LineSplitter()
        var lines: [String] = []
        for piece in pieces {
            splitter.add(piece)
            while let line = splitter.next(isAtEnd: false) { lines.append(line) }
        }
        while let line = splitter.next(isAtEnd: true) { lines.append(line) }
        return lines
    }

    private func lines(_ text: String) -> [String] { lines([Array(text.utf8)]) }

    @Test func everyLineEndCounts() {
        #expect(lines("a\nb\r\nc\rd") == ["a", "b", "c", "d"])
    }

    @Test func finalLineEndStartsNoLine() {
        for end in ["\n", "\r\n", "\r"] { #expect(lines("a\(end)b\(end)") == ["a", "b"]) }
    }

    @Test func emptyLinesAreLines() {
        #expect(lines("\n\n\n") == ["", "", ""])
        #expect(lines("\r\r\n\n") == ["", "", ""])
        #expect(lines("a\n\nb") == ["a", "", "b"])
    }

    @Test func emptyTextHasNoLines() {
        #expect(lines("") == [])
        #expect(lines([[], []]) == [])
    }

    @Test func aCarriageReturnAtTheEndOfAPieceWaitsForTheNext() {
        var splitter = LineSplitter()
        splitter.add(Array("a\r".utf8))
        #expect(splitter.next(isAtEnd: false) == nil)
        splitter.add(Array("\nb\r".utf8))
        #expect(splitter.next(isAtEnd: false) == "a")
        #expect(splitter.next(isAtEnd: false) == nil)
        splitter.add(Array("c".utf8))
        #expect(splitter.next(isAtEnd: false) == "b")
        #expect(splitter.next(isAtEnd: false) == nil)
        #expect(splitter.next(isAtEnd: true) == "c")
        #expect(splitter.next(isAtEnd: true) == nil)
    }

    @Test func everyCutGivesTheSameLines() {
        let text = Array("één\r\n\n\rtwo 🎈\nthree\r\r\nfour".utf8)
        let whole = lines([text])
        #expect(whole == ["één", "", "", "two 🎈", "three", "", "four"])
        for first in 0...text.count {
            for second in first...text.count {
                #expect(lines([Array(text[..<first]), Array(text[first..<second]), Array(text[second...])]) == whole)
            }
        }
        #expect(lines(text.map { [$0] }) == whole)
    }

    @Test func invalidUTF8IsReplaced() {
        #expect(lines([[0x61, 0xFF, 0x62, 0x0A, 0xC3]]) == ["a\u{FFFD}b", "\u{FFFD}"])
    }

    @Test(arguments: ["123\n1234\n1", "123\r\n1234", "123\n12345\r\n"], [1, 2, 64])
    func aLineOverTheLimitIsTooLongHoweverItIsCut(text: String, size: Int) {
        var splitter = LineSplitter(limit: 3)
        var lines: [String] = []
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            splitter.add(bytes[start..<min(start + size, bytes.count)])
            while let line = splitter.next(isAtEnd: false) { lines.append(line) }
        }
        while let line = splitter.next(isAtEnd: true) { lines.append(line) }
        #expect(lines == ["123"] && splitter.isTooLong)
    }

    @Test func longLineInManyPiecesIsScannedOnce() {
        // 4 MiB in pieces of 64 bytes: reading each byte again with each piece would take minutes.
        let piece = [UInt8](repeating: 0x78, count: 64)
        let lines = lines(Array(repeating: piece, count: 65_536) + [[0x0A]])
        #expect(lines.map(\.utf8.count) == [4 << 20])
    }
}
