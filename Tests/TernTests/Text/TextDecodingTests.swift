import Tern
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("TextDecoding")
struct TextDecodingTests {
    @Test(
        arguments: [
            ("utf-8", Array("naïve 漢".utf8), "naïve 漢"), ("UTF8", [0x61], "a"), (" utf-8 ", [0x61], "a"),
            ("utf-8", [], ""),
            ("iso-8859-1", [0xE9, 0x80, 0x81, 0x9F], "é€\u{81}Ÿ"), ("Latin1", [0xFF], "ÿ"), ("us-ascii", [0x41], "A"),
            ("us-ascii", [0xC3, 0xA9], "é"), ("us-ascii", [0xE9], "é"), ("windows-1252", [0x80, 0x93], "€“"),
            ("iso-8859-15", [0xA4], "€"), ("windows-1251", [0xCF, 0xF0, 0xE8], "При"),
            ("koi8-r", [0xF0, 0xD2, 0xC9], "При"),
            ("shift_jis", [0x93, 0xFA, 0x96, 0x7B], "日本"), ("euc-jp", [0xC6, 0xFC, 0xCB, 0xDC], "日本"),
            ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x46, 0x7C, 0x4B, 0x5C, 0x1B, 0x28, 0x42], "日本"),
            ("gb18030", [0xD6, 0xD0, 0xB9, 0xFA], "中国"), ("big5", [0xA4, 0xA4], "中"), ("euc-kr", [0xC7, 0xD1], "한"),
            ("utf-16", [0xFE, 0xFF, 0x00, 0x61], "a"), ("utf-16", [0xFF, 0xFE, 0x61, 0x00], "a"),
            ("utf-16", [0x00, 0x61], "a"),
            ("utf-16le", [0x3D, 0xD8, 0x00, 0xDE], "😀"), ("utf-16be", [0xD8, 0x3D, 0xDE, 0x00], "😀"),
            ("utf-32", [0xFF, 0xFE, 0x00, 0x00, 0x61, 0x00, 0x00, 0x00], "a"),
            ("utf-32", [0x00, 0x00, 0x00, 0x61], "a"),
            ("windows-1252", [], ""),
        ] as [(String, [UInt8], String)])
    func namedCharsetsAreDecoded(charset: String, bytes: [UInt8], expected: String) throws {
        #expect(try TextDecoding.string(from: bytes, charset: charset) == expected)
        #expect(try TextDecoding.string(from: Data(bytes), charset: charset.uppercased()) == expected)
    }

    @Test(
        arguments: [
            (Array("naïve".utf8), "naïve"), ([0xE9], "é"), ([], ""), ([0x61, 0xC3], "aÃ"),
            ([0xEF, 0xBB, 0xBF, 0x61], "a"),
            ([0xFE, 0xFF, 0x00, 0x61], "a"), ([0xFF, 0xFE, 0x61, 0x00], "a"),
            ([0x00, 0x00, 0xFE, 0xFF, 0x00, 0x00, 0x00, 0x61], "a"), ([0xEF, 0xBB, 0xBF], ""),
        ] as [([UInt8], String)])
    func textWithoutACharsetIsUTF8OrLatin1(bytes: [UInt8], expected: String) throws {
        #expect(try TextDecoding.string(from: bytes, charset: nil) == expected)
    }

    /// The labels of servers that mean none, and the text of two bodies with each.
    @Test(arguments: [
        nil, "", "utf-8,gbk", "utf-8, utf-8", "none", "utf8mb4", "unicode", "\"utf-8\"", "'utf-8'", " \"utf8 ", "utf-7",
        "UTF7",
        "binary", "8bit", "default", "utf 8", "../x", "utf-8//IGNORE", "\r\n", "x\0y", "iso-8859-1\"", "x-user-defined",
        "%s",
    ])
    func labelsThatNameNoCharsetMeanUTF8OrWindows1252(label: String?) throws {
        if label?.contains("8859") != true {
            #expect(try TextDecoding.text(from: Array("é+AGE-".utf8), label: label) == "é+AGE-")
        }
        guard label?.filter({ !"\"' ".contains($0) }).hasPrefix("utf8") != true, label?.contains("utf-8\"") != true,
            label?.contains("utf-8'") != true
        else { return }
        #expect(try TextDecoding.text(from: [0xE9, 0x80], label: label) == "é€")
    }

    @Test func labelsOfCharsetsAreObeyed() throws {
        #expect(try TextDecoding.text(from: [0xCF, 0xF0], label: " \"Windows-1251\" ") == "Пр")
        #expect(try TextDecoding.text(from: [0x61, 0x00], label: "unicode") == "a")
        #expect(throws: TextDecoding.Problem.invalidBytes(charset: "utf-8")) {
            try TextDecoding.text(from: [0xFF], label: "'utf-8'")
        }
    }

    @Test func everyByteOfWindows1252GoesBothWays() throws {
        let bytes = (0...255).map { UInt8($0) }
        let text = try TextDecoding.string(from: bytes, charset: "windows-1252")
        #expect(text.unicodeScalars.count == 256 && text.contains("€"))
        #expect(TextDecoding.bytes(of: text, charset: "iso-8859-1") == bytes)
        #expect(TextDecoding.bytes(of: "\u{80}", charset: "latin1") == nil)
        #expect(TextDecoding.bytes(of: "я", charset: "latin1") == nil)
    }

    @Test func bytesCanComeInPieces() throws {
        let bytes = [UInt8]("éa".utf8.reversed())
        #expect(try TextDecoding.string(from: bytes.reversed() as ReversedCollection, charset: "utf-8") == "éa")
        #expect(
            try TextDecoding.string(from: [0x61, 0xCF].reversed() as ReversedCollection, charset: "koi8-r") == "оa")
    }

    @Test func aByteOrderMarkWinsOverTheCharset() throws {
        #expect(try TextDecoding.string(from: [0xEF, 0xBB, 0xBF, 0xC3, 0xA9], charset: "iso-8859-1") == "é")
        #expect(try TextDecoding.string(from: [0xFF, 0xFE, 0x61, 0x00], charset: "utf-8") == "a")
    }

    @Test(arguments: ["", "no-such-charset", "utf-8//TRANSLIT", "utf-8//IGNORE", "a b", "../x", "\r\n", "x\0y"])
    func unknownCharsetsAreNamed(charset: String) throws {
        let problem = #expect(throws: TextDecoding.Problem.self) {
            try TextDecoding.string(from: [0x61], charset: charset)
        }
        guard case .unknownCharset = problem else {
            Issue.record("\(String(describing: problem))")
            return
        }
        #expect(!"\(try #require(problem))".utf8.contains { $0 < 0x20 })
    }

    @Test(
        arguments: [
            ("utf-8", [0xFF]), ("utf-16", [0x61]), ("utf-16le", [0x00, 0xD8]), ("shift_jis", [0x93]),
            ("euc-jp", [0xFF, 0xFF]),
            ("utf-8", [0xEF, 0xBB, 0xBF, 0xFF]), ("utf-32be", [0x00, 0x61]),
        ] as [(String, [UInt8])])
    func undecodableBytesAreRefused(charset: String, bytes: [UInt8]) throws {
        let problem = #expect(throws: TextDecoding.Problem.self) {
            try TextDecoding.string(from: bytes, charset: charset)
        }
        guard case .invalidBytes = problem else {
            Issue.record("\(String(describing: problem))")
            return
        }
    }

    @Test(arguments: [1, 127, 128, 129, 255, 256, 257, 5_000, 3_000_000])
    func longTextsAreConvertedWhole(count: Int) throws {
        // Cyrillic text doubles in UTF-8, which exceeds the first buffer of the converter.
        let text = try TextDecoding.string(from: [UInt8](repeating: 0xCF, count: count), charset: "windows-1251")
        #expect(text.unicodeScalars.count == count)
        #expect(text.unicodeScalars.allSatisfy { $0 == "П" })
    }
}
