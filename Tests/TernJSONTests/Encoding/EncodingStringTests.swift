import Foundation
import TernJSON
import Testing

@Suite("JSON encoding: strings, beside Foundation's encoder")
struct EncodingStringTests {
    private let formats: [TernJSONEncoder.OutputFormatting] = [.sortedKeys, [.sortedKeys, .withoutEscapingSlashes]]

    @Test func eachCharacterAtEachPlace() throws {
        let special = (0...0x2F).compactMap { Unicode.Scalar($0) } + ["\\", "\u{7F}", "\u{2028}", "\u{2029}", "é", "🙂"]
        for formatting in formats {
            let encoders = Encoders(formatting)
            for length in 0...20 {
                var texts: [String] = []
                for scalar in special {
                    for place in 0...length {
                        texts.append(
                            String(repeating: "x", count: place) + String(scalar)
                                + String(repeating: "y", count: length - place))
                    }
                }
                try encoders.expectSameText(texts)
            }
        }
    }

    @Test func severalEscapes() throws {
        var generator = Generator(state: 9)
        let pieces = ["a", "\"", "\\", "/", "\n", "\u{0}", "\u{1F}", "ü", "漢字", "🙂", "abcdefgh", "https://x/"]
        for formatting in formats {
            let encoders = Encoders(formatting)
            for _ in 0..<3_000 {
                let text = (0..<Int.random(in: 0...30, using: &generator)).map { _ in
                    pieces.randomElement(using: &generator) ?? ""
                }.joined()
                try encoders.expectSameText(text)
                try encoders.expectSameText([text: 1])
                try encoders.expectSameText(
                    Closure { encoder in
                        var container = encoder.container(keyedBy: AnyKey.self)
                        try container.encode(text, forKey: AnyKey(stringValue: text))
                    })
            }
        }
    }

    /// The text of a string by the definition, a byte at a time.
    private func reference(_ text: String, escapesSlashes: Bool) -> String {
        let letters: [UInt8: String] = [8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 0x22: "\"", 0x5C: "\\"]
        var result: [UInt8] = [0x22]
        for byte in text.utf8 {
            if let letter = letters[byte] {
                result += ("\\" + letter).utf8
            } else if byte < 0x20 {
                result += (byte < 16 ? "\\u000" : "\\u00").utf8
                result += String(byte, radix: 16).utf8
            } else if byte == 0x2F && escapesSlashes {
                result += "\\/".utf8
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result + [0x22], as: UTF8.self)
    }

    private func expectReference(_ texts: [String], sourceLocation: SourceLocation = #_sourceLocation) throws {
        // Few expectations: each takes a millisecond in a debug build.
        let wrong = try texts.filter { text in
            let (escaped, plain) = (reference(text, escapesSlashes: true), reference(text, escapesSlashes: false))
            return try encodedText(text, []) != escaped || encodedText(text, .withoutEscapingSlashes) != plain
        }
        #expect(wrong == [], sourceLocation: sourceLocation)
    }

    @Test func all256CharactersAtTheBordersOfWords() throws {
        for length in [1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65] {
            let places = Set([0, 1, 7, 8, 15, 16, 31, 32, length / 2, length - 2, length - 1])
                .filter { $0 >= 0 && $0 < length }
            for byte in UInt8.min...UInt8.max {
                let character = String(Unicode.Scalar(byte))
                try expectReference(
                    places.map { place in
                        String(repeating: "x", count: place) + character
                            + String(repeating: "y", count: length - place - 1)
                    })
            }
        }
    }

    @Test func runsOfEscapesOfAllLengths() throws {
        for length in 0...100 {
            for escape in ["\"", "/", "\n", "\u{2}"] {
                try expectReference([
                    String(repeating: escape, count: length),
                    String(repeating: escape + "abc", count: length),
                    String(repeating: "x", count: length) + String(repeating: escape, count: 40),
                    String(repeating: escape, count: 40) + String(repeating: "x", count: length) + escape,
                    String(repeating: escape + "0123456789abcdefghijklmnopqrstu", count: length / 8),
                ])
            }
        }
        try Encoders().expectSameText((0...70).map { String(repeating: "a\"b\\c/\n", count: $0) })
    }

    @Test func stringsAtTheEndOfTheRoom() throws {
        // The memory of a text grows at each of these lengths.
        for padding in 900...1_030 {
            let value = [String(repeating: "x", count: padding), String(repeating: "\u{1}", count: 20), "/", "y"]
            let parts = value.map { reference($0, escapesSlashes: true) }
            #expect(try encodedText(value, []) == "[" + parts.joined(separator: ",") + "]")
        }
    }

    @Test func aLongStringOfEscapesTakesSixTimesTheRoom() throws {
        let text = String(repeating: "\u{1}", count: 1_000_000)
        #expect(try TernJSONEncoder().encode(text).count == 6_000_002)
    }

    @Test func keysWithSlashesFollowTheSetting() throws {
        let value = Closure { encoder in
            var container = encoder.container(keyedBy: ShortKey.self)
            try container.encode(1, forKey: .slash)
            try container.encode([1], forKey: .dash)
            try container.encode(Point(), forKey: .a)
        }
        for _ in 0..<2 {
            for formatting in formats { try Encoders(formatting).expectSameText(value) }
        }
    }

    @Test func stringsOfObjectiveC() throws {
        let text = NSString(string: "bridged \"text\" ü") as String
        try Encoders().expectSameText([text: text])
        try Encoders().expectSameText(String("abcdef/ghijklmnopqrstuvwxyz".dropFirst(3)))
    }
}
