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
