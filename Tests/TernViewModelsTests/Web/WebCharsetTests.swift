import Testing

@testable import Tern
@testable import TernViewModels

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("The charset of a page")
struct WebCharsetTests {
    @Test(arguments: [
        ("<html><meta charset=shift_jis>", "shift_jis"), ("<META CHARSET=\"EUC-JP\" />", "euc-jp"),
        ("<meta http-equiv='Content-Type' content='text/html; charset=koi8-r'>", "koi8-r"),
        ("<!-- <meta charset=koi8-r> --><meta name=charset><meta charset = 'big5'>", "big5"),
        ("<meta charset=utf-16>", "utf-8"), ("<meta charset=x-nonsense>", "utf-8"), ("<meta charset=>", "utf-8"),
        ("<p>charset=koi8-r</p>", "utf-8"), ("<meta charset=koi8-r", "utf-8"), ("<!-- never closed", "utf-8"),
        ("", "utf-8"), ("\u{E9}<meta charset=windows-1252>", "windows-1252"),
    ])
    func withoutAnotherThePagesOwnWordCounts(page: String, expected: String) {
        #expect(WebCharset(of: Data(page.utf8), nil).name == expected)
    }

    @Test func theCharsetOfTheResponsePrecedesThatOfThePageAndAMarkBoth() {
        let page = Data("<meta charset=shift_jis>".utf8)
        #expect(WebCharset(of: page, "KOI8-R").name == "koi8-r")
        #expect(WebCharset(of: page, "x-nonsense").name == "utf-8")
        let marked = WebCharset(of: Data([0xEF, 0xBB, 0xBF]) + page, "koi8-r")
        #expect(marked.name == "utf-8" && marked.markLength == 3)
        #expect(WebCharset(of: Data([0xFE, 0xFF, 0, 0x61]), nil).name == "utf-16be")
        #expect(WebCharset(of: Data([0xFF, 0xFE, 0x61, 0]), nil).name == "utf-16le")
    }

    @Test func onlyTheBeginningIsLookedAt() {
        let late = String(repeating: " ", count: 1_024) + "<meta charset=koi8-r>"
        #expect(WebCharset(of: Data(late.utf8), nil).name == "utf-8")
    }
}

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
    func aTextThatACharsetCannotEncodeIsNil(charset: String) {
        #expect(TextDecoding.bytes(of: "a 😀", charset: charset) == nil)
    }

    @Test func undecodableBytesAreReplacedIfAsked() throws {
        // 日 in Shift_JIS, an invalid byte, 本, and half of a character.
        let bytes: [UInt8] = [0x93, 0xFA, 0xFF, 0x96, 0x7B, 0x93]
        #expect(throws: TextDecoding.Problem.self) { try TextDecoding.string(from: bytes, charset: "shift_jis") }
        #expect(try TextDecoding.replacing(bytes, charset: "Shift_JIS") == "日\u{FFFD}本\u{FFFD}")
        #expect(try TextDecoding.replacing([0x61, 0xFF, 0x62], charset: "utf-8") == "a\u{FFFD}b")
        #expect(throws: TextDecoding.Problem.unknownCharset("nonsense")) {
            try TextDecoding.replacing([0xFF], charset: "nonsense")
        }
    }
}
