#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Decodes a body as text, in the charset that the response names.
package enum TextDecoding {
    /// The reason why bytes cannot be decoded as text.
    package enum Problem: Error, Sendable, Hashable, CustomStringConvertible {
        /// The system has no charset of this name.
        case unknownCharset(String)
        /// The bytes are not text in the charset.
        case invalidBytes(charset: String)
        /// The declaration of an XML document cannot be read, or another one follows.
        case malformedDeclaration

        package var description: String {
            switch self {
            case .unknownCharset(let name): "the charset \"\(name.printable(limit: 64))\" is not known"
            case .invalidBytes(let name): "the bytes are not text in the charset \"\(name.printable(limit: 64))\""
            case .malformedDeclaration: "the XML declaration is malformed, repeated, or longer than 1024 bytes"
            }
        }
    }

    /// Decodes a body whose charset is named by a server that may know no better.
    ///
    /// White space and quotes around the label are ignored. A label that names no charset of the system, several ones
    /// (`utf-8,gbk`), `none`, `unicode` without a NUL in the text, and UTF-7, whose text other readers see as another
    /// one, mean what no label means: UTF-8, and windows-1252 for bytes that are not UTF-8, as in browsers.
    ///
    /// - Throws: `Problem.invalidBytes` only, for bytes that are no text in the charset that the label names.
    package static func text(from bytes: some Collection<UInt8>, label: String?) throws(Problem) -> String {
        let isMargin = { (byte: UInt8) in byte <= 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
        var name = (label ?? "").utf8.drop(while: isMargin)
        while let last = name.last, isMargin(last) { name.removeLast() }
        var charset: String? = String(decoding: name.map(\.asciiLowercased), as: UTF8.self)
        // WHATWG's name of UTF-16 in the order of small machines. Servers write it for any Unicode.
        if charset == "unicode" { charset = bytes.contains(0) ? "utf-16le" : nil }
        do {
            return try string(from: bytes, charset: charset)
        } catch {
            guard case .unknownCharset = error else { throw error }
            return try string(from: bytes, charset: nil)
        }
    }

    /// Decodes a body.
    ///
    /// A byte order mark takes precedence over the charset (RFC 3629 §6, RFC 2781 §3.2) and is not part of the text.
    /// Without a charset the text is UTF-8, and bytes that are not UTF-8 are read as windows-1252, which never fails.
    /// The names of ISO-8859-1 mean windows-1252 too, as in browsers (WHATWG Encoding §4.2): it has letters where the
    /// other has controls.
    package static func string(from bytes: some Collection<UInt8>, charset: String?) throws(Problem) -> String {
        let result = bytes.withContiguousStorageIfAvailable { buffer in
            let span = unsafe Span(_unsafeElements: buffer)
            return Result { () throws(Problem) in try string(from: span, charset: charset) }
        }
        if let result { return try result.get() }
        return try string(from: Array(bytes).span, charset: charset)
    }

    /// Decodes a body in place.
    package static func string(from bytes: Span<UInt8>, charset: String?) throws(Problem) -> String {
        let name = charset.map { String(decoding: $0.utf8.lazy.map(\.asciiLowercased), as: UTF8.self).trimmed }
        if let mark = ByteOrderMark(bytes, isUTF32Expected: name?.hasPrefix("utf-32") ?? false) {
            return try decode(bytes.extracting(mark.length..<bytes.count), charset: mark.charset)
        }
        guard let name else {
            return utf8(bytes) ?? windows1252(bytes)
        }
        return try decode(bytes, charset: name)
    }

    private static func decode(_ bytes: Span<UInt8>, charset: String) throws(Problem) -> String {
        switch charset {
        case "utf-8", "utf8":
            guard let text = utf8(bytes) else { throw .invalidBytes(charset: charset) }
            return text
        case "us-ascii", "ascii":
            // UTF-8 with a wrong label is more common than invalid bytes.
            return utf8(bytes) ?? windows1252(bytes)
        case _ where windows1252Names.contains(charset): return windows1252(bytes)
        // Its text can be read as other text, and browsers do not know it.
        case _ where utf7Names.contains(charset): throw .unknownCharset(charset)
        // Without a mark the order is big-endian (RFC 2781 §4.3; Unicode says the same for UTF-32).
        case "utf-16", "utf16": return try CharsetConverter.string(from: bytes, charset: "utf-16be")
        case "utf-32", "utf32": return try CharsetConverter.string(from: bytes, charset: "utf-32be")
        default: return try CharsetConverter.string(from: bytes, charset: charset)
        }
    }

    private static func utf8(_ bytes: Span<UInt8>) -> String? {
        unsafe bytes.withUnsafeBufferPointer { unsafe String(validating: $0, as: UTF8.self) }
    }

    static let windows1252Names: Set = [
        "iso-8859-1", "iso_8859-1", "iso8859-1", "latin1", "latin-1", "l1", "windows-1252", "cp1252", "x-cp1252",
    ]

    private static let utf7Names: Set = [
        "utf-7", "utf7", "utf-7-imap", "unicode-1-1-utf-7", "csunicode11utf7", "cp65000",
    ]

    /// The characters of 0x80 to 0x9F. Five bytes have none and stay controls, so that every text can be decoded.
    static let windows1252Block: [UInt16] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,
        0x017D,
        0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153,
        0x9D,
        0x017E, 0x0178,
    ]

    /// Decodes bytes as windows-1252.
    static func windows1252(_ bytes: Span<UInt8>) -> String {
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count)
        for index in bytes.indices {
            let byte = bytes[index]
            units.append((0x80..<0xA0).contains(byte) ? windows1252Block[Int(byte) - 0x80] : UInt16(byte))
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// Decodes each byte as the code point of its number.
    static func latin1(_ bytes: Span<UInt8>) -> String {
        var utf8: [UInt8] = []
        utf8.reserveCapacity(bytes.count + bytes.count / 8)
        for index in bytes.indices {
            let byte = bytes[index]
            if byte < 0x80 {
                utf8.append(byte)
            } else {
                utf8.append(0xC0 | byte &>> 6)
                utf8.append(0x80 | byte & 0x3F)
            }
        }
        return String(decoding: utf8, as: UTF8.self)
    }
}

/// The byte order mark at the start of a text, and its charset.
private struct ByteOrderMark {
    let length: Int
    let charset: String

    /// Finds the mark; nil without one. `FF FE 00 00` is UTF-32 only if that is expected, otherwise a NUL in UTF-16.
    init?(_ bytes: Span<UInt8>, isUTF32Expected: Bool) {
        func begins(with mark: UInt8...) -> Bool {
            bytes.count >= mark.count && mark.indices.allSatisfy { bytes[$0] == mark[$0] }
        }
        if begins(with: 0xEF, 0xBB, 0xBF) {
            (length, charset) = (3, "utf-8")
        } else if begins(with: 0x00, 0x00, 0xFE, 0xFF) {
            (length, charset) = (4, "utf-32be")
        } else if isUTF32Expected, begins(with: 0xFF, 0xFE, 0x00, 0x00) {
            (length, charset) = (4, "utf-32le")
        } else if begins(with: 0xFE, 0xFF) {
            (length, charset) = (2, "utf-16be")
        } else if begins(with: 0xFF, 0xFE) {
            (length, charset) = (2, "utf-16le")
        } else {
            return nil
        }
    }
}

extension String {
    /// The text without spaces and tabs at its ends.
    fileprivate var trimmed: String {
        let start = utf8.drop(while: \.isHTTPWhitespace)
        let length = start.reversed().drop(while: \.isHTTPWhitespace).count
        return String(decoding: start.prefix(length), as: UTF8.self)
    }
}

/// Converts XML documents to UTF-8, so that checks of their bytes and the parser read the same text.
///
/// The parser of the system knows encodings in which `<` is not a byte of its own, such as UTF-7 and EBCDIC. It never
/// receives a declaration, so that it cannot choose another encoding than this conversion.
package enum XMLEncoding {
    /// The number of bytes within which the declaration of a document ends.
    private static let longestDeclaration = 1_024

    /// Returns a document in UTF-8, without its declaration.
    ///
    /// A byte order mark overrides the declaration. Without both, the document is UTF-8, or the form of UTF-16 or
    /// UTF-32 that the zeros beside its first character show (XML 1.0, appendix F).
    ///
    /// - Throws: `.unknownCharset` for an encoding that the system does not have, and `.malformedDeclaration`.
    package static func utf8(_ document: Data) throws(TextDecoding.Problem) -> Data {
        guard let charset = try charset(of: [UInt8](document.prefix(longestDeclaration))) else {
            return try withoutDeclaration(document)
        }
        return try withoutDeclaration(Data(TextDecoding.string(from: document, charset: charset).utf8))
    }

    /// Returns a document in UTF-8 without its declaration. Keeps the line breaks, so that errors report the right
    /// line.
    package static func withoutDeclaration(_ document: Data) throws(TextDecoding.Problem) -> Data {
        var (lines, rest) = ([UInt8](), document[...])
        if beginsWithDeclaration(document) {
            let start = document.prefix(longestDeclaration)
            guard let end = start.firstRange(of: Array("?>".utf8)) else { throw .malformedDeclaration }
            lines = document[..<end.lowerBound].filter { $0 == 0x0A || $0 == 0x0D }
            rest = document[end.upperBound...]
        }
        if beginsWithDeclaration(rest.drop(while: isSpace)) { throw .malformedDeclaration }
        return lines.isEmpty && rest.startIndex == document.startIndex ? document : Data(lines) + rest
    }

    /// Returns the encoding of a document; nil for one whose text is UTF-8 as it is.
    private static func charset(of start: [UInt8]) throws(TextDecoding.Problem) -> String? {
        func begins(_ marks: [UInt8]...) -> Bool { marks.contains { start.starts(with: $0) } }
        // UTF-32 first: its marks begin with those of UTF-16.
        if begins([0, 0, 0xFE, 0xFF], [0, 0, 0, 0x3C]) { return "utf-32be" }
        if begins([0xFF, 0xFE, 0, 0], [0x3C, 0, 0, 0]) { return "utf-32le" }
        if begins([0xFE, 0xFF], [0xFF, 0xFE], [0, 0x3C]) { return "utf-16be" }
        if begins([0x3C, 0]) { return "utf-16le" }
        if begins([0xEF, 0xBB, 0xBF]) { return "utf-8" }
        return try declaredCharset(start)
    }

    /// Returns the encoding that a document declares; nil for none, and for one whose text is UTF-8 as it is.
    private static func declaredCharset(_ start: [UInt8]) throws(TextDecoding.Problem) -> String? {
        guard beginsWithDeclaration(start) else { return nil }
        guard let end = start.firstRange(of: Array("?>".utf8)) else { throw .malformedDeclaration }
        let declaration = start[..<end.lowerBound]
        guard let name = declaration.firstRange(of: Array("encoding".utf8)) else { return nil }
        var rest = declaration[name.upperBound...].drop(while: isSpace)
        guard rest.popFirst() == UInt8(ascii: "=") else { throw .malformedDeclaration }
        rest = rest.drop(while: isSpace)
        guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
            let close = rest.firstIndex(of: quote)
        else { throw .malformedDeclaration }
        let charset = String(decoding: rest[..<close].map(\.asciiLowercased), as: UTF8.self)
        return ["utf-8", "utf8", "us-ascii", "ascii"].contains(charset) ? nil : charset
    }

    /// Returns whether bytes begin with a declaration. Other instructions, such as `<?xml-stylesheet`, are none.
    package static func beginsWithDeclaration(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.starts(with: "<?xml".utf8) && bytes.dropFirst(5).first.map(isSpace) ?? true
    }

    package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) && byte != 0x0B }
}
