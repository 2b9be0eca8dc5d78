/// The byte classes of RFC 3986 and RFC 9110.
///
/// HTTP compares names, schemes and hosts as ASCII, independent of the process's locale.
extension UInt8 {
    /// The byte with letters A–Z as a–z.
    package var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    package var isASCIIDigit: Bool { self &- 0x30 < 10 }

    var isASCIILetter: Bool { (self | 0x20) &- 0x61 < 26 }

    /// Whether the byte is 0x00–0x1F or 0x7F.
    var isASCIIControl: Bool { self < 0x20 || self == 0x7F }

    /// The value 0–15; nil if the byte is not a hexadecimal digit.
    var hexValue: UInt8? {
        switch self {
        case 0x30...0x39: self &- 0x30
        case 0x41...0x46: self &- 0x37
        case 0x61...0x66: self &- 0x57
        default: nil
        }
    }

    /// Whether the byte is a space or a horizontal tab: the optional whitespace of RFC 9110 §5.6.3.
    package var isHTTPWhitespace: Bool { self == 0x20 || self == 0x09 }
}

extension [UInt8] {
    /// Appends `%XX` in capitals, as RFC 3986 §2.1 requires of a producer.
    mutating func appendPercentEncoded(_ byte: UInt8) {
        append(UInt8(ascii: "%"))
        append(Self.capitalHexDigit(byte &>> 4))
        append(Self.capitalHexDigit(byte & 0x0F))
    }

    private static func capitalHexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 &+ value : 0x37 &+ value
    }
}

/// A set of ASCII characters in two words. It is read for each byte of each header and URL that is sent.
package struct ByteSet {
    /// The bytes 0–63, one bit each.
    let low: UInt64
    /// The bytes 64–127, one bit each.
    let high: UInt64

    package func contains(_ byte: UInt8) -> Bool {
        if byte >= 0x80 { return false }
        return (byte < 0x40 ? low : high) &>> UInt64(byte & 0x3F) & 1 == 1
    }

    /// `tchar` of RFC 9110 §5.6.2, the characters of methods and header names: letters, digits, ``!#$%&'*+-.^_`|~``.
    package static var token: ByteSet { ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }

    /// `unreserved` of RFC 3986 §2.3: letters, digits, `-._~`.
    static var unreserved: ByteSet { ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }

    /// The characters of a query's names and values that are not encoded: `unreserved`, `/` and `?`.
    static var queryItem: ByteSet { ByteSet(low: 0x83FF_E000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }

    /// The characters of a path or a query that are not encoded: the printable characters except ``"#%<>\^`{|}``.
    static var urlTail: ByteSet { ByteSet(low: 0xAFFF_FFD2_0000_0000, high: 0x47FF_FFFE_AFFF_FFFF) }
}

extension String {
    /// Calls `body` with the UTF-8 of the text in place. Iterating `utf8` checks the kind of string at each byte; this
    /// checks it once.
    func withUTF8Span<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        let result = unsafe utf8.withContiguousStorageIfAvailable { buffer in
            body(unsafe Span(_unsafeElements: buffer))
        }
        if let result { return result }
        // A string bridged from NSString is copied.
        return body(Array(utf8).span)
    }

    /// Returns whether two texts have the same bytes in UTF-8.
    ///
    /// `==` compares canonical equivalence, by which the Kelvin sign is `K`, and `é` equals `e` followed by a combining
    /// mark. For a server or a file system these are different texts.
    package func hasSameBytes(as other: String) -> Bool {
        // Most texts already differ in length.
        guard utf8.count == other.utf8.count else { return false }
        return withUTF8Span { bytes in
            other.withUTF8Span { others in
                // Without a way out, so that many bytes are compared at once. Both have the same count.
                var difference: UInt8 = 0
                for index in bytes.indices { unsafe difference |= bytes[unchecked: index] ^ others[unchecked: index] }
                return difference == 0
            }
        }
    }

    /// Returns the text with every byte of its UTF-8 outside a set percent-encoded.
    func percentEncoded(except kept: ByteSet) -> String {
        var result: [UInt8] = []
        for byte in utf8 {
            if kept.contains(byte) { result.append(byte) } else { result.appendPercentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns whether all bytes belong to a set. True for an empty text.
    func consists(of set: ByteSet) -> Bool {
        withUTF8Span { bytes in
            for index in bytes.indices where !set.contains(bytes[index]) { return false }
            return true
        }
    }

    /// Returns the text in a form for errors and logs: without control characters, at most `limit` characters.
    ///
    /// A line feed from a server or a user could forge a line of the log, an escape sequence could control the terminal
    /// that shows it, and a change of the writing direction could reverse the text.
    package func printable(limit: Int = 200) -> String {
        var result = ""
        for scalar in unicodeScalars.prefix(limit) {
            // Besides C0 and DEL: C1, the separators at which some viewers break lines, and direction controls.
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x2028, 0x2029, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069:
                result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        if unicodeScalars.dropFirst(limit).isEmpty { return result }
        return result + "…"
    }
}
