import Testing

@testable import Tern

/// Texts in the charsets that servers still name, encoded by Python's codecs.
@Suite("Charsets of responses")
struct ValidationCharsetTests {
    private func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8).compactMap(\.hexValue)
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    @Test(
        arguments: [
            ("gbk", "d6d0b9fae946d6ec", "中国镕朱"),
            ("gb2312", "d6d0b9fae946", "中国镕"),
            ("x-gbk", "9d68d7d6", "漢字"),
            ("GB18030", "d6d0b9fa9439fc36", "中国😀"),
            ("Shift_JIS", "93fa967b8cea87405c7eb6c5", "日本語①\\~ｶﾅ"),
            ("x-sjis", "955c8ea6", "表示"),
            ("windows-31j", "eee0ed95", "髙﨑"),
            ("EUC-JP", "c6fccbdcb8ec8eb68ec55c7e", "日本語ｶﾅ\\~"),
            ("ISO-2022-JP", "1b2442467c4b5c386c1b2842", "日本語"),
            ("Big5", "a4a4a4e5", "中文"),
            ("EUC-KR", "c7d1b1b9beee", "한국어"),
            ("ks_c_5601-1987", "8c63b9e6b0a2c7cf", "똠방각하"),
            ("windows-1250", "50f8ed6c699a209e6c759d6f75e86bfd2080", "Příliš žluťoučký €"),
            ("windows-1251", "d1fae5f8fc20e5f9b8208820b9", "Съешь ещё € №"),
            ("windows-1252", "936e61ef76659420962080", "“naïve” – €"),
            ("windows-1253", "cee5f3eae5f0dce6f92080", "Ξεσκεπάζω €"),
            ("windows-1254", "50696a616d616cfd206861737461207961f0fd7a20fe6f66f67265", "Pijamalı hasta yağız şoföre"),
            ("windows-1255", "e3e220f1f7f8ef2080", "דג סקרן €"),
            ("windows-1256", "e4d520cddfede32080", "نص حكيم €"),
            ("windows-1257", "ceecf0fe20dbd82080", "Īģšž ŪŲ €"),
            ("windows-1258", "5469ea6e6720e3f5fdf020fe", "Tiêng ăơưđ ₫"),
            ("iso-8859-1", "c7612064e96ae020ff", "Ça déjà ÿ"),
            ("iso-8859-2", "50f8ed6c69b920be6c75bb6f75e86bfd", "Příliš žluťoučký"),
            ("iso-8859-3", "45b66ffe616ef86f", "Eĥoŝanĝo"),
            ("iso-8859-4", "cfbbb9bebc", "Īģšžŧ"),
            ("iso-8859-5", "c1ead5e8ec20d5e9f120f0", "Съешь ещё №"),
            ("iso-8859-6", "e6d520cde3eae5", "نص حكيم"),
            ("iso-8859-7", "cee5f3eae5f0dce6f9", "Ξεσκεπάζω"),
            ("iso-8859-8", "e3e220f1f7f8ef", "דג סקרן"),
            ("iso-8859-8-i", "e3e2", "דג"),
            ("iso-8859-9", "50696a616d616cfd207961f0fd7a20fe6f66f672", "Pijamalı yağız şoför"),
            ("iso-8859-10", "def372756e6e20afb9", "Þórunn Ŋđ"),
            ("iso-8859-11", "e0bbe7b9c1b9d8c9c2ec", "เป็นมนุษย์"),
            ("tis-620", "c0d2c9d2e4b7c2", "ภาษาไทย"),
            ("iso-8859-13", "ceecf0fe20a5b4", "Īģšž „“"),
            ("iso-8859-14", "d0feb820a1", "Ŵŷẁ Ḃ"),
            ("iso-8859-15", "bc7576726520a420b8", "Œuvre € ž"),
            ("iso-8859-16", "de6172e320ba6120a4", "Țară șa €"),
            ("koi8-r", "f3dfc5dbd820c5dda3", "Съешь ещё"),
            ("koi8-u", "bdc1cecfcb20a7d6c1cb", "Ґанок їжак"),
            ("macintosh", "826120d2648e6a88d3", "Ça “déjà”"),
            ("x-mac-roman", "ce75767265", "Œuvre"),
            ("ibm866", "91eaa5e8ec", "Съешь"),
            ("x-cp1251", "c4e0", "Да"),
        ])
    func charsetsOfTheWebAreDecoded(charset: String, hex: String, expected: String) throws {
        #expect(try TextDecoding.string(from: bytes(hex), charset: charset) == expected)
        #expect(try TextDecoding.string(from: bytes(hex), charset: charset.lowercased()) == expected)
    }

    /// JSON escapes with `\`: a table that reads it as a yen sign breaks every string with a quotation mark in it.
    @Test(arguments: [
        "shift_jis", "sjis", "x-sjis", "euc-jp", "gbk", "gb2312", "big5", "euc-kr", "windows-1252", "iso-8859-2",
        "koi8-r",
        "windows-874",
    ])
    func asciiIsASCIIInEveryCharset(charset: String) throws {
        let ascii = (0x20..<0x7F).map { UInt8($0) } + [0x09, 0x0A, 0x0D]
        #expect(try TextDecoding.string(from: ascii, charset: charset) == String(decoding: ascii, as: UTF8.self))
    }

    @Test(
        arguments: [
            ("utf-16", "fffe61003dd800de", "a😀"), ("utf-16", "feff0061d83dde00", "a😀"), ("utf-16le", "fffe6100", "a"),
            ("utf-16be", "feff0061", "a"), ("utf-8", "fffe6100", "a"), ("shift_jis", "efbbbf61", "a"),
            ("utf-16", "fffe", ""),
        ])
    func byteOrderMarksDecide(charset: String, hex: String, expected: String) throws {
        #expect(try TextDecoding.string(from: bytes(hex), charset: charset) == expected)
    }

    @Test(arguments: ["x-klingon", "windows-9999", "iso-8859-99", "utf-8; DROP", "none", "binary"])
    func unknownCharsetIsNamedInTheError(charset: String) {
        #expect(throws: TextDecoding.Problem.unknownCharset(charset.lowercased())) {
            try TextDecoding.string(from: [0x61], charset: charset)
        }
        #expect("\(TextDecoding.Problem.unknownCharset(charset))".contains(charset))
    }

    @Test(arguments: [("shift_jis", "82"), ("gbk", "ff"), ("euc-jp", "a4"), ("big5", "a4"), ("windows-1253", "aa")])
    func undecodableBytesAreAnError(charset: String, hex: String) {
        #expect(throws: TextDecoding.Problem.invalidBytes(charset: charset)) {
            try TextDecoding.string(from: bytes(hex), charset: charset)
        }
    }
}
