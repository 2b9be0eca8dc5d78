/// The byte classes of RFC 3986 and RFC 9110, and the one-line text that errors may quote.
///
/// HTTP's names, schemes and hosts are compared as ASCII, whatever the process's locale says.
extension UInt8 {
    /// Letters A–Z become a–z; every other byte stays as it is.
    var asciiLowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    var isASCIIDigit: Bool { self &- 0x30 < 10 }

    var isASCIILetter: Bool { (self | 0x20) &- 0x61 < 26 }

    /// 0x00–0x1F and 0x7F.
    var isASCIIControl: Bool { self < 0x20 || self == 0x7F }

    /// 0–15, or nil if the byte is no hexadecimal digit.
    var hexValue: UInt8? {
        switch self {
        case 0x30...0x39: self &- 0x30
        case 0x41...0x46: self &- 0x37
        case 0x61...0x66: self &- 0x57
        default: nil
        }
    }

    /// `tchar` of RFC 9110 §5.6.2: what methods and header names are made of.
    var isTokenCharacter: Bool {
        if isASCIILetter || isASCIIDigit { return true }
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            return true
        default: return false
        }
    }

    /// `unreserved` of RFC 3986 §2.3.
    var isUnreservedInURL: Bool {
        if isASCIILetter || isASCIIDigit { return true }
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): return true
        default: return false
        }
    }

    /// Space or horizontal tab: the optional whitespace of RFC 9110 §5.6.3.
    var isHTTPWhitespace: Bool { self == 0x20 || self == 0x09 }
}

extension [UInt8] {
    /// Appends `%XX`, in capitals as RFC 3986 §2.1 asks of a producer.
    mutating func appendPercentEncoded(_ byte: UInt8) {
        append(UInt8(ascii: "%"))
        append(Self.capitalHexDigit(byte &>> 4))
        append(Self.capitalHexDigit(byte & 0x0F))
    }

    private static func capitalHexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 &+ value : 0x37 &+ value
    }
}

extension String {
    /// The text as it may stand in an error or a log line: without control characters, at most `limit` characters.
    ///
    /// A line feed taken over from a server or a user could forge a line of the log.
    func printable(limit: Int = 200) -> String {
        var result = ""
        for scalar in unicodeScalars.prefix(limit) {
            // Besides C0 and DEL: C1, and the separators that some viewers break lines at.
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x2028, 0x2029:
                result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        if unicodeScalars.dropFirst(limit).isEmpty { return result }
        return result + "…"
    }
}
