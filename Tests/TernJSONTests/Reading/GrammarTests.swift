import Foundation
import Testing

@testable import TernJSON

/// The verdicts of RFC 8259 on texts. `ill` texts must be refused, `well` ones accepted.
@Suite("JSON: grammar")
struct GrammarTests {
    private let decoder = TernJSONDecoder()

    private func accepts(_ bytes: [UInt8]) -> Bool {
        (try? decoder.decode(JSONValue.self, from: bytes)) != nil
    }

    // MARK: Texts that are JSON

    static let well: [String] = [
        // Arrays
        "[]", "[ ]", " [] ", "[[]   ]", "[\"\"]", "[\"a\"]", "[false]", "[null, 1, \"1\", {}]", "[null]", "[1\n]",
        " [1]", "[1,null,null,null,2]", "[2] ", "[[[[[]]]],[]]", "[\n1\t,\r2 ]", "[1 ]", "[ 1]",
        // Numbers
        "[123e65]", "[0e+1]", "[0e1]", "[ 4]", "[-0.000000000000000000000000000000000000000000000000000000000000001]",
        "[20e1]", "[-0]", "[-123]", "[-1]", "[-0.0]", "[1E22]", "[1E-2]", "[1E+2]", "[123e45]", "[123.456e78]",
        "[1e-2]",
        "[1e+2]", "[123]", "[123.456789]", "0", "-7.5", "1e1", "[1.0E0]", "[0.1]", "[0]", "[10.01e-01]",
        "[-9223372036854775808]", "[18446744073709551615]",
        "[123123e100000]".replacingOccurrences(of: "100000", with: "10"),
        // Objects
        "{\"asd\":\"sdf\", \"dfg\":\"fgh\"}", "{\"asd\":\"sdf\"}", "{\"a\":\"b\",\"a\":\"c\"}",
        "{\"a\":\"b\",\"a\":\"b\"}",
        "{}", "{ }", "{\"\":0}", "{\"foo\\u0000bar\": 42}", "{ \"min\": -1.0e+28, \"max\": 1.0e+28 }",
        "{\"x\":[{\"id\": \"xxx\"}], \"id\": \"yyy\"}", "{\"a\":[]}", "{\"title\":\"\\u041f\\u043e\\u043b\"}",
        "{\n\"a\": \"b\"\n}",
        "{\"a\" : 1 , \"b\":2}",
        // Strings
        "[\"\\u0060\\u012a\\u12AB\"]", "[\"\\uD801\\udc37\"]", "[\"\\ud83d\\ude39\\ud83d\\udc8d\"]",
        "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[\"\\\\u0000\"]", "[\"\\\"\"]", "[\"a/*b*/c/*d//e\"]", "[\"\\\\a\"]",
        "[\"\\\\n\"]", "[\"\\u0012\"]", "[\"\\uFFFF\"]", "[\"asd\"]", "[ \"asd\"]", "[\"\\uDBFF\\uDFFF\"]",
        "[\"new\\u00A0line\"]", "[\"\u{10FFFF}\"]", "[\"\u{FFFF}\"]", "[\"\\u0000\"]", "[\"\\u002c\"]", "[\"π\"]",
        "[\"𛿿\"]",
        "[\"asd \"]", "\" \"", "[\"\\uD834\\uDd1e\"]", "[\"\\u0821\"]", "[\"\\u0123\"]", "[\"\u{2028}\"]",
        "[\"\u{2029}\"]",
        "[\"\\u0061\\u30af\\u30EA\\u30b9\"]", "[\"new\\u000Aline\"]", "[\"\u{7F}\"]", "[\"\\uA66D\"]", "[\"⍂㈴⍂\"]",
        "[\"\\u0022\"]", "[\"\\uDBFF\\uDFFE\"]", "[\"\\uD83F\\uDFFE\"]", "[\"\\u200B\"]", "[\"\\u2064\"]",
        "[\"\\uFDD0\"]",
        "[\"\\uFFFE\"]", "[\"€𝄞\"]", "[\"a\u{7F}a\"]", "\"\\u005C\\u0022\"", "[\"日本語のテキスト\"]", "[\"\\u00e9\u{301}\"]",
        // Single values
        "false", "42", "-0.1", "null", "\"asd\"", "true", "\"\"", "[\"a\"]\n", "[true]", " \t\r\n1 \t\r\n",
    ]

    @Test("texts of RFC 8259 are accepted", arguments: well)
    func accepted(text: String) {
        #expect(accepts(Array(text.utf8)))
        #expect(accepts(Array(" \(text)\n".utf8)))
    }

    // MARK: Texts that are not JSON

    static let ill: [String] = [
        // Arrays
        "[1 true]", "[\"\": 1]", "[\"\"],", "[,1]", "[1,,2]", "[\"x\",,]", "[\"x\"]]", "[\"\",]", "[\"x\"", "[x",
        "[3[4]]",
        "[,]", "[-]", "[   , \"\"]", "[\"a\",\n4\n,1,", "[1,]", "[1,,]", "[\"\u{B}a\"\\f]", "[*]", "[\"\"", "[1,",
        "[1,\n1\n,1",
        "[{}", "]", "[", "[[", "[1", "[1}", "[}", "[[]", "[]]", "[\"a", "[\"asd]", "[\"a\":1]",
        // Literals
        "[fals]", "[nul]", "[tru]", "[True]", "[FALSE]", "nulL", "[nulll]", "[truefalse]", "t", "f", "n", "tru",
        "[nan]",
        // Numbers
        "[++1234]", "[+1]", "[+Inf]", "[-01]", "[-1.0.]", "[-2.]", "[-NaN]", "[.-1]", "[.2e-3]", "[0.1.2]", "[0.3e+]",
        "[0.3e]", "[0.e1]", "[0E+]", "[0E]", "[0e+]", "[0e]", "[1.0e+]", "[1.0e-]", "[1.0e]", "[1 000.0]", "[1eE2]",
        "[2.e+3]",
        "[2.e-3]", "[2.e3]", "[9.e+]", "[Inf]", "[NaN]", "[\u{FF11}]", "[1+2]", "[0x1]", "[0x42]", "[Infinity]",
        "[0e+-1]",
        "[-123.123foo]", "[-Infinity]", "[-foo]", "[- 1]", "[-012]", "[-.123]", "[-1x]", "[1ea]", "[1e]", "[1.]",
        "[.123]",
        "[1.2a-3]", "[1.8011670033376514H-308]", "[012]", "-", "1.", "1e", "1e+", "00", "01", "0.", "[1a]", "[1_000]",
        "[-]",
        "[--1]", "[+]", "[.]", "[e1]", "[0 1]",
        // Objects
        "[\"x\", truth]", "{[: \"x\"}", "{\"x\", null}", "{\"x\"::\"b\"}", "{🇨🇭}", "{\"a\":\"a\" 123}", "{key: 'value'}",
        "{\"a\" b}", "{:\"b\"}", "{\"a\" \"b\"}", "{\"a\":", "{\"a\"", "{1:1}", "{9999E9999:1}",
        "{null:null,null:null}",
        "{\"id\":0,,,,,}", "{'a':0}", "{\"id\":0,}", "{\"a\":\"b\"}/**/", "{\"a\":\"b\"}/**//", "{\"a\":\"b\"}//",
        "{\"a\":\"b\"}/",
        "{\"a\":\"b\",,\"c\":\"d\"}", "{a: \"b\"}", "{\"a\":\"a", "{ \"foo\" : \"bar\", \"a\" }", "{\"a\":\"b\"}#",
        "{,}", "{,\"a\":1}",
        "{\"a\"}", "{\"a\":}", "{\"a\":1]", "{]", "{", "}", "{{", "{\"a\":1 \"b\":2}", "{\"a\":1,", "{\"a\":{}",
        "{\"a\":/*x*/1}",
        // Strings
        "[\"\\uD800\\\"]", "[\"\\uD800\\u\"]", "[\"\\uD800\\u1\"]", "[\"\\uD800\\u1x\"]", "[é]", "[\"\\\\\\\"]",
        "[\"\\x00\"]",
        "[\"\\\t\"]", "[\"\\🌀\"]", "[\"\\u00A\"]", "[\"\\uD834\\uDd\"]", "[\"\\uD800\\uD800\\x\"]", "[\"\\a\"]",
        "[\"\\uqqqq\"]",
        "[\\u0020\"asd\"]", "[\\n]", "\"", "['single quote']", "abc", "[\"\\", "[\"\\u", "[\"\\u1", "[\"new\nline\"]",
        "[\"\t\"]",
        "\"\\UA66D\"", "[\"\\uD800\"]", "[\"\\uDC00\"]", "[\"\\uD800a\"]", "[\"\\uDd1ea\"]", "[\"\\uD800\\uD800\"]",
        "[\"\\uDFAA\"]",
        "[\"\\uD888\\u1234\"]", "[\"\\uD800\\n\"]", "[\"\\uDd1e\\uD834\"]", "[\"\\uD800\\uDBFF\"]", "[\"\\u 123\"]",
        "[\"\\u+123\"]",
        // Structure
        "", " ", "<.>", "[<null>]", "[1]x", "[1]]", "{\"a\": true} \"x\"", "[][]", "123\u{0}", "{}}", "{\"\":",
        "{\"a\":/*comment*/\"b\"}",
        "{\"a\": true} \"x\"", "['", "[,", "[{", "[\"a\"x", "{\"a\":\"b\"}{", "[\u{2060}]", "[\u{C}]", "[\u{A0}]",
        "\u{85}1", "*",
        "{\"a\":\"b\"}#{}", "[\\u000A\"\"]", "[1", "[ false, nul", "[ true, fals", "[ false, tru", "\u{FEFF}", "//",
        "1 2", "\"a\" \"b\"",
    ]

    @Test("other texts are refused", arguments: ill)
    func refused(text: String) {
        #expect(!accepts(Array(text.utf8)))
    }

    @Test("control characters in strings are refused, each of them")
    func controlCharacters() {
        for byte in UInt8(0)..<0x20 {
            #expect(!accepts(Array("[\"a".utf8) + [byte] + Array("a\"]".utf8)))
            #expect(!accepts(Array("[\"a2345678a".utf8) + [byte] + Array("a2345678\"]".utf8)))
        }
    }

    // MARK: Bytes that are not UTF-8

    static let illBytes: [[UInt8]] = [
        [0xFF], [0x81], [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF0, 0x80, 0x80, 0xAF],
        [0xFC, 0x83, 0xBF, 0xBF, 0xBF, 0xBF],
        [0xFC, 0x80, 0x80, 0x80, 0x80, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0xBF, 0xBF, 0xBF], [0xE6, 0x97, 0xA5, 0xE8],
        [0xE9],
        [0xE0, 0xFF], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xC3], [0xE2, 0x82], [0xF0, 0x9D, 0x84],
        [0xF5, 0x80, 0x80, 0x80], [0xC1, 0xBF],
        [0xE0, 0x9F, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80], [0xC3, 0x28], [0xE2, 0x28, 0xA1],
        [0xE2, 0x82, 0x28],
        [0xF0, 0x28, 0x8C, 0xBC], [0xF0, 0x90, 0x28, 0xBC], [0xF0, 0x28, 0x8C, 0x28], [0x80], [0xBF],
        [0xED, 0xBF, 0xBF], [0xFE],
    ]

    @Test("strings and keys that are not UTF-8 are refused", arguments: illBytes)
    func invalidUTF8(bytes: [UInt8]) {
        for padding in ["", "abcdefgh", "äöü", "\\n"] {
            let text = Array(padding.utf8) + bytes
            #expect(!accepts(Array("[\"".utf8) + text + Array("\"]".utf8)))
            #expect(!accepts(Array("[\"".utf8) + text + Array("abcdefghij\"]".utf8)))
            #expect(!accepts(Array("{\"".utf8) + text + Array("\":1}".utf8)))
            #expect(!accepts(Array("[".utf8) + text + Array("]".utf8)))
            #expect(!accepts(Array("[\"".utf8) + text))
        }
    }

    @Test("every scalar value is accepted raw and escaped, and comes back")
    func allScalars() throws {
        for start in stride(from: UInt32(0x20), to: 0x11_0000, by: 0x1000) {
            let scalars = (start..<start + 0x1000).compactMap(Unicode.Scalar.init).filter { $0 != "\"" && $0 != "\\" }
            var text = String.UnicodeScalarView()
            text.append(contentsOf: scalars)
            let plain = String(text)
            let escaped = plain.utf16.map { "\\u" + String(String(0x10000 + UInt32($0), radix: 16).dropFirst()) }
                .joined()
            #expect(try decoder.decode(String.self, from: "\"\(plain)\"").utf8.elementsEqual(plain.utf8))
            #expect(try decoder.decode(String.self, from: "\"\(escaped)\"").utf8.elementsEqual(plain.utf8))
        }
    }

    // MARK: Encodings

    @Test("a byte order mark in UTF-8 is ignored at the beginning only")
    func byteOrderMark() {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        #expect(accepts(mark + Array("{}".utf8)))
        #expect(!accepts(mark))
        #expect(!accepts(mark + mark + Array("{}".utf8)))
        #expect(!accepts(Array("[".utf8) + mark + Array("]".utf8)))
        #expect(!accepts([0xEF, 0xBB] + Array("{}".utf8)))
    }

    @Test("UTF-16 and UTF-32 are refused by name")
    func otherEncodings() throws {
        let text = "[\"é\"]"
        let encodings: [(String.Encoding, String)] = [
            (.utf16, "UTF-16"), (.utf16LittleEndian, "UTF-16"), (.utf16BigEndian, "UTF-16"), (.utf32, "UTF-32"),
            (.utf32LittleEndian, "UTF-32"), (.utf32BigEndian, "UTF-32"),
        ]
        for (encoding, name) in encodings {
            let data = try #require(text.data(using: encoding))
            let error = #expect(throws: DecodingError.self) { try decoder.decode(JSONValue.self, from: data) }
            #expect("\(String(describing: error))".contains("\(name), expected UTF-8"))
        }
    }

    // MARK: Depth

    @Test("arrays and objects nest 512 levels deep, and not one more")
    func depth() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            func nested(_ depth: Int) -> [UInt8] {
                let text = String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
                return Array(text.utf8)
            }
            #expect(accepts(nested(512)))
            #expect(!accepts(nested(513)))
            #expect(!accepts(Array(String(repeating: open, count: 100_000).utf8)))
        }
        #expect(!accepts(Array(String(repeating: "[", count: 100_000).utf8)))
    }

    @Test("the depth can be limited")
    func depthLimit() throws {
        var decoder = TernJSONDecoder()
        decoder.depthLimit = 2
        #expect(throws: Never.self) { try decoder.decode(JSONValue.self, from: "[[1]]") }
        #expect(throws: DecodingError.self) { try decoder.decode(JSONValue.self, from: "[[[1]]]") }
        decoder.depthLimit = 0
        #expect(throws: Never.self) { try decoder.decode(JSONValue.self, from: "1") }
        #expect(throws: DecodingError.self) { try decoder.decode(JSONValue.self, from: "[]") }
        decoder.depthLimit = 100_000
        let deep = String(repeating: "[", count: 50_000) + String(repeating: "]", count: 50_000)
        #expect(throws: DecodingError.self) { try decoder.decode(JSONValue.self, from: deep) }
        struct Skips: Decodable { let a: Int }
        #expect(try decoder.decode(Skips.self, from: "{\"b\":\(deep),\"a\":1}").a == 1)
    }

    // MARK: Any bytes

    @Test("damaged texts are refused or accepted as by Foundation, and never read beyond the end")
    func damagedTexts() throws {
        var generator = Generator(state: 5)
        let seeds = Self.well.joined(separator: " ").utf8.map { $0 } + Array("\u{1F600}é\\u00e9\\ud83d\\ude00".utf8)
        for _ in 0..<100_000 {
            let start = Int.random(in: 0..<seeds.count, using: &generator)
            var bytes = Array(seeds[start..<min(seeds.count, start + Int.random(in: 1...40, using: &generator))])
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            // An array of its own has the memory's end directly after it, as the address sanitizer sees it.
            if accepts(bytes) {
                #expect((try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil)
            }
        }
    }
}
