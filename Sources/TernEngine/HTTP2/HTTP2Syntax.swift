/// The character sets of field names and field values, and comparisons of names.
enum HTTP2Syntax {
    /// The characters of a token (RFC 9110 §5.6.2), one bit each, from 0 to 63 and from 64 to 127.
    private static var tokenLow: UInt64 { 0x03FF_6CFA_0000_0000 }
    private static var tokenHigh: UInt64 { 0x57FF_FFFF_C7FF_FFFE }

    static func isTokenCharacter(_ byte: UInt8) -> Bool {
        byte < 64 ? tokenLow >> UInt64(byte) & 1 == 1 : byte < 128 && tokenHigh >> UInt64(byte - 64) & 1 == 1
    }

    static func isToken(_ bytes: ArraySlice<UInt8>) -> Bool { !bytes.isEmpty && bytes.allSatisfy(isTokenCharacter) }

    static func isToken(_ text: String.UTF8View) -> Bool { !text.isEmpty && text.allSatisfy(isTokenCharacter) }

    /// Returns a Boolean value that indicates whether the bytes contain no control character except the tab (RFC 9110
    /// §5.5).
    static func isValue(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    /// Returns a Boolean value that indicates whether a range of the bytes is a name, which has lower-case letters.
    static func matches(_ name: StaticString, _ bytes: [UInt8], in range: Range<Int>) -> Bool {
        guard range.count == name.utf8CodeUnitCount else { return false }
        let start = unsafe name.utf8Start
        for offset in 0..<range.count where unsafe bytes[range.lowerBound + offset] != start[offset] { return false }
        return true
    }

    /// Returns a Boolean value that indicates whether the bytes are a name, which has lower-case letters.
    static func matches(_ name: StaticString, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count == name.utf8CodeUnitCount else { return false }
        let start = unsafe name.utf8Start
        for offset in 0..<bytes.count where unsafe bytes[offset] != start[offset] { return false }
        return true
    }

    /// Returns the number that the bytes are; nil if they are not 1 to 18 digits. 18 digits fit into 64 bits, and no
    /// body is longer.
    static func number(_ bytes: UnsafeRawBufferPointer) -> Int64? {
        guard 1...18 ~= bytes.count else { return nil }
        var value: Int64 = 0
        for index in 0..<bytes.count {
            let digit = unsafe bytes[index] &- 0x30
            guard digit < 10 else { return nil }
            value = value * 10 + Int64(digit)
        }
        return value
    }
}
