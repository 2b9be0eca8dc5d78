import Testing

@testable import Tern

@Suite("Charsets both ways")
struct CharsetTests {
    @Test(arguments: [
        ("shift_jis", "日本語 \\ ~"), ("euc-jp", "日本語"), ("windows-1252", "“é” €"), ("iso-8859-1", "é"), ("utf-8", "😀"),
        ("koi8-r", "Привет"), ("gb2312", "中文"), ("us-ascii", "plain"),
    ])
    func textGoesBackIntoItsCharset(charset: String, text: String) throws {
        let bytes = try #require(TextDecoding.bytes(of: text, charset: charset))
        #expect(try TextDecoding.string(from: bytes, charset: charset) == text)
    }

    @Test(arguments: ["shift_jis", "windows-1252", "iso-8859-1", "us-ascii", "no-such-charset", "utf-8//TRANSLIT"])
    func whatACharsetCannotHoldIsNil(charset: String) {
        #expect(TextDecoding.bytes(of: "a 😀", charset: charset) == nil)
    }

    @Test func undecodableBytesAreReplacedIfAsked() throws {
        // 日 in Shift_JIS, a byte that is none, 本, and half of a character.
        let bytes: [UInt8] = [0x93, 0xFA, 0xFF, 0x96, 0x7B, 0x93]
        #expect(throws: TextDecoding.Problem.self) { try TextDecoding.string(from: bytes, charset: "shift_jis") }
        #expect(try TextDecoding.replacing(bytes, charset: "Shift_JIS") == "日\u{FFFD}本\u{FFFD}")
        #expect(try TextDecoding.replacing([0x61, 0xFF, 0x62], charset: "utf-8") == "a\u{FFFD}b")
        #expect(throws: TextDecoding.Problem.unknownCharset("nonsense")) {
            try TextDecoding.replacing([0xFF], charset: "nonsense")
        }
    }
}
