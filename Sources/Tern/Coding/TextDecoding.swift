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

        package var description: String {
            switch self {
            case .unknownCharset(let name): "the charset \"\(name.printable(limit: 64))\" is not known"
            case .invalidBytes(let name): "the bytes are not text in the charset \"\(name.printable(limit: 64))\""
            }
        }
    }

    /// Decodes a body.
    ///
    /// A byte order mark takes precedence over the charset (RFC 3629 §6, RFC 2781 §3.2) and is not part of the text.
    /// Without a charset the text is UTF-8, and bytes that are not UTF-8 are read as ISO-8859-1, which never fails.
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
            return utf8(bytes) ?? latin1(bytes)
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
            return utf8(bytes) ?? latin1(bytes)
        case "iso-8859-1", "iso_8859-1", "iso8859-1", "latin1", "latin-1", "l1": return latin1(bytes)
        // Without a mark the order is big-endian (RFC 2781 §4.3; Unicode says the same for UTF-32).
        case "utf-16", "utf16": return try CharsetConverter.string(from: bytes, charset: "utf-16be")
        case "utf-32", "utf32": return try CharsetConverter.string(from: bytes, charset: "utf-32be")
        default: return try CharsetConverter.string(from: bytes, charset: charset)
        }
    }

    private static func utf8(_ bytes: Span<UInt8>) -> String? {
        unsafe bytes.withUnsafeBufferPointer { unsafe String(validating: $0, as: UTF8.self) }
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
/// The parser of the system knows encodings in which `<` is no byte of its own, such as UTF-7 and EBCDIC.
package enum XMLEncoding {
    /// The number of bytes within which the declaration of a document ends.
    private static let longestDeclaration = 1_024

    /// Returns a document in UTF-8, without the declaration of another encoding.
    ///
    /// A byte order mark overrides the declaration. Without both, the document is UTF-8, or UTF-16 if one of its first two
    /// bytes is zero (XML 1.0, appendix F).
    ///
    /// - Throws: `.unknownCharset` for an encoding that the system does not have, and for a declaration that cannot be read.
    package static func utf8(_ document: Data) throws(TextDecoding.Problem) -> Data {
        let start = [UInt8](document.prefix(longestDeclaration))
        let charset: String
        if start.starts(with: [0xFE, 0xFF]) || start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0, 0x3C]) {
            charset = "utf-16be"
        } else if start.starts(with: [0x3C, 0]) {
            charset = "utf-16le"
        } else if start.starts(with: [0xEF, 0xBB, 0xBF]) {
            charset = "utf-8"
        } else {
            guard let declared = try declaredCharset(start) else { return document }
            charset = declared
        }
        return Data(withoutDeclaration(try TextDecoding.string(from: document, charset: charset)).utf8)
    }

    /// Returns the encoding that a document declares; nil for none, and for one whose text is UTF-8 as it is.
    private static func declaredCharset(_ start: [UInt8]) throws(TextDecoding.Problem) -> String? {
        // Other instructions, such as `<?xml-stylesheet`, are no declarations.
        guard start.starts(with: "<?xml".utf8), start.count > 5, isSpace(start[5]) else { return nil }
        guard let end = start.firstRange(of: Array("?>".utf8)) else { throw .unknownCharset("") }
        let declaration = start[..<end.lowerBound]
        guard let name = declaration.firstRange(of: Array("encoding".utf8)) else { return nil }
        var rest = declaration[name.upperBound...].drop(while: isSpace)
        guard rest.popFirst() == UInt8(ascii: "=") else { throw .unknownCharset("") }
        rest = rest.drop(while: isSpace)
        guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
            let close = rest.firstIndex(of: quote)
        else { throw .unknownCharset("") }
        let charset = String(decoding: rest[..<close].map(\.asciiLowercased), as: UTF8.self)
        return ["utf-8", "utf8", "us-ascii", "ascii"].contains(charset) ? nil : charset
    }

    /// Returns a text without its declaration. Keeps the line breaks, so that errors report the right line.
    package static func withoutDeclaration(_ text: String) -> String {
        guard text.hasPrefix("<?xml"), let end = text.firstRange(of: "?>") else { return text }
        let lines = text[..<end.lowerBound].filter(\.isNewline)
        return lines + text[end.upperBound...]
    }

    package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) && byte != 0x0B }
}
