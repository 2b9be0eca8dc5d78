/// A body as text, in the charset that the response names.
package enum TextDecoding {
    /// Why bytes are no text.
    package enum Problem: Error, Sendable, Hashable, CustomStringConvertible {
        /// The system knows no charset of that name.
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
    /// A byte order mark wins over the charset (RFC 3629 §6, RFC 2781 §3.2) and is not part of the text. Without a
    /// charset the text is UTF-8, and bytes that are not are read as ISO-8859-1, which never fails.
    package static func string(from bytes: some Collection<UInt8>, charset: String?) throws(Problem) -> String {
        let name = charset.map(normalized)
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            return try utf8(bytes.dropFirst(3), charset: charset)
        }
        // A charset of its own for each byte order takes the mark for a part of the text; the mark is none.
        if bytes.starts(with: [0xFF, 0xFE, 0x00, 0x00]), name?.hasPrefix("utf-32") == true || name == "ucs-4" {
            return try CharsetConverter.string(from: Array(bytes.dropFirst(4)), charset: "UTF-32LE")
        }
        if bytes.starts(with: [0x00, 0x00, 0xFE, 0xFF]) {
            return try CharsetConverter.string(from: Array(bytes.dropFirst(4)), charset: "UTF-32BE")
        }
        if bytes.starts(with: [0xFF, 0xFE]) {
            return try utf16(Array(bytes.dropFirst(2)), isBigEndian: false)
        }
        if bytes.starts(with: [0xFE, 0xFF]) {
            return try utf16(Array(bytes.dropFirst(2)), isBigEndian: true)
        }
        switch name {
        case nil, "utf-8", "utf8", "unicode-1-1-utf-8": return try utf8(bytes, charset: charset)
        case "us-ascii", "ascii", "iso-ir-6", "ansi_x3.4-1968":
            // Mislabelled UTF-8 is more common than bytes that mean nothing.
            return try utf8(bytes, charset: nil)
        case "iso-8859-1", "iso_8859-1", "iso8859-1", "latin1", "latin-1", "l1": return latin1(bytes)
        // Without a mark the order is big-endian (RFC 2781 §4.3; Unicode has the same for UTF-32).
        case "utf-16", "utf16", "utf-16be": return try utf16(Array(bytes), isBigEndian: true)
        case "utf-16le": return try utf16(Array(bytes), isBigEndian: false)
        case "utf-32", "utf32", "ucs-4": return try CharsetConverter.string(from: Array(bytes), charset: "UTF-32BE")
        case .some(let other): return try CharsetConverter.string(from: Array(bytes), charset: other)
        }
    }

    /// nil as the charset: ISO-8859-1 is the fallback. A charset that was named is held to.
    private static func utf8(_ bytes: some Collection<UInt8>, charset: String?) throws(Problem) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        if let charset { throw .invalidBytes(charset: charset) }
        return latin1(bytes)
    }

    private static func latin1(_ bytes: some Collection<UInt8>) -> String {
        String(String.UnicodeScalarView(bytes.lazy.map { Unicode.Scalar($0) }))
    }

    private static func utf16(_ bytes: [UInt8], isBigEndian: Bool) throws(Problem) -> String {
        let name = isBigEndian ? "utf-16be" : "utf-16le"
        guard bytes.count.isMultiple(of: 2) else { throw .invalidBytes(charset: name) }
        let (high, low) = isBigEndian ? (0, 1) : (1, 0)
        let units = stride(from: 0, to: bytes.count, by: 2).map { index in
            UInt16(bytes[index + high]) << 8 | UInt16(bytes[index + low])
        }
        guard let text = String(validating: units, as: UTF16.self) else { throw .invalidBytes(charset: name) }
        return text
    }

    private static func normalized(_ charset: String) -> String {
        let bytes = charset.utf8.filter { !$0.isHTTPWhitespace }.map(\.asciiLowercased)
        return String(decoding: bytes, as: UTF8.self)
    }
}
