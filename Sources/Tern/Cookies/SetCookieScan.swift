/// Whether the raw head of a response may hold a `Set-Cookie` field: so that a head without one need not be parsed.
package enum SetCookieScan {
    private static let name = Array("set-cookie".utf8)

    /// Never false for a head with such a field at the beginning of a line; obsolete line folding does not matter, since
    /// a folded line begins with a space.
    package static func mayBePresent(in head: [UInt8]) -> Bool {
        let bytes = head.span
        var index = 0
        while index + name.count < bytes.count {
            // Few lines begin with an S.
            if bytes[index] | 0x20 == name[0], matches(bytes, at: index) { return true }
            while index < bytes.count, bytes[index] != 0x0A { index += 1 }
            index += 1
        }
        return false
    }

    private static func matches(_ bytes: Span<UInt8>, at start: Int) -> Bool {
        for offset in name.indices where bytes[start + offset].asciiLowercased != name[offset] { return false }
        return bytes[start + name.count] == UInt8(ascii: ":")
    }
}
