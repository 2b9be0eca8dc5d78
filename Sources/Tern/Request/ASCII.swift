/// The byte classes of RFC 3986 and RFC 9110.
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

/// A set of ASCII characters, as two words: looked up for each byte of each header and URL that is sent.
struct ByteSet {
    /// Bit n for the byte n, 0–63.
    let low: UInt64
    /// Bit n for the byte 64 + n.
    let high: UInt64

    func contains(_ byte: UInt8) -> Bool {
        if byte >= 0x80 { return false }
        return (byte < 0x40 ? low : high) &>> UInt64(byte & 0x3F) & 1 == 1
    }

    /// `tchar` of RFC 9110 §5.6.2, what methods and header names are made of: letters, digits, ``!#$%&'*+-.^_`|~``.
    static var token: ByteSet { ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE) }

    /// `unreserved` of RFC 3986 §2.3: letters, digits, `-._~`.
    static var unreserved: ByteSet { ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }

    /// What may stand unencoded in a name or a value of a query: `unreserved`, `/` and `?`.
    static var queryItem: ByteSet { ByteSet(low: 0x83FF_E000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE) }

    /// What stands in a path or a query as it is: the printable characters but ``"#%<>\^`{|}``.
    static var urlTail: ByteSet { ByteSet(low: 0xAFFF_FFD2_0000_0000, high: 0x47FF_FFFE_AFFF_FFFF) }
}
