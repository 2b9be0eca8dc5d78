import Foundation
import Testing

@testable import TernJSON

/// Strings are read by eight bytes at a time. These tests move each kind of byte to each place of such a word.
@Suite("JSON: strings, word by word")
struct StringWordTests {
    private let decoder = TernJSONDecoder()

    private func decode(_ bytes: [UInt8]) -> String? { try? decoder.decode(String.self, from: bytes) }

    /// The bytes at both ends of each range that the table of well-formed sequences names (Unicode, table 3-7).
    private static let ends: [UInt8] = [
        0x20, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF,
        0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
    ]

    @Test("three bytes beside characters of one, two and three bytes are UTF-8 or refused", arguments: ends)
    func threeBytes(first: UInt8) {
        let neighbours = ["", "a", "é", "中", "中文", "абв", "ab", "中a"].map { Array($0.utf8) }
        var accepted = 0
        for second in Self.ends {
            for third in Self.ends {
                for neighbour in neighbours {
                    let text = neighbour + [first, second, third] + neighbour + Array("中文字".utf8)
                    let expected = String(validating: text, as: UTF8.self)
                    let found = decode([0x22] + text + [0x22])
                    if found != expected { Issue.record("\(text)") }
                    accepted += found == nil ? 0 : 1
                }
            }
        }
        // Continuation bytes, and bytes that begin no character, are never first.
        let isNever = (0x80...0xC1).contains(first) || first >= 0xF0
        #expect((accepted == 0) == isNever)
    }

    @Test("a damaged byte in a long text is found, and named by its offset", arguments: 0..<47)
    func damagedByte(place: Int) {
        let characters = "中文字漢語абвгдежзийклabcdefgh".unicodeScalars.map { Array(String($0).utf8) }
        var text = Array(characters.joined())
        text[place] = 0xFF
        let error = #expect(throws: DecodingError.self) {
            _ = try decoder.decode(String.self, from: [0x22] + text + [0x22])
        }
        // The character whose byte is damaged is named by its first byte.
        let starts = characters.indices.map { characters[..<$0].reduce(1) { $0 + $1.count } }
        let start = starts.last { $0 <= place + 1 }
        #expect(error.flatMap { TernJSONErrorPlace(of: $0) }?.offset == start)
    }

    @Test("after a backslash, eight letters and u are accepted", arguments: 0..<24)
    func escapes(place: Int) {
        let meanings: [UInt8: UInt8] = [
            0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 0x08, 0x66: 0x0C, 0x6E: 0x0A, 0x72: 0x0D, 0x74: 0x09,
        ]
        let before = [UInt8](repeating: 0x78, count: place)
        let after = [UInt8](repeating: 0x79, count: 23 - place)
        for letter in UInt8.min...UInt8.max where letter != UInt8(ascii: "u") {
            let found = decode([0x22] + before + [0x5C, letter] + after + [0x22]).map { Array($0.utf8) }
            #expect(found == meanings[letter].map { before + [$0] + after }, "\(letter)")
        }
        // Beside each other, and at the end of the text.
        let all = Array(#"\"\\\/\b\f\n\r\t\u00e9\u4e2d\ud83d\ude00"#.utf8)
        let written = Array("\"\\/\u{8}\u{C}\n\r\té中😀".utf8)
        let found = decode([0x22] + before + all + after + all + [0x22])
        #expect(found.map { Array($0.utf8) } == before + written + after + written)
    }

    @Test("a string that ends early is refused at each length", arguments: 0..<40)
    func endsEarly(count: Int) {
        let text = Array(#""abcdefg\nhij\u00e9kl中文\\mnopqrstu\"""#.utf8).prefix(count)
        #expect(decode(Array(text)) == nil)
    }
}
