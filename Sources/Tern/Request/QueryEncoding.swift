/// Percent-encoding of query items by AFNetworking's rule.
///
/// Everything is encoded but letters, digits and `-._~/?`: a space is `%20`, never `+`, which many servers take for a
/// plus, and `[`, `]`, `&` and `=` in names and values cannot be mistaken for structure. `/` and `?` may stand in a
/// query (RFC 3986 §3.4). Text that is encoded already is encoded again.
package enum QueryEncoding {
    /// One name or value.
    package static func escape(_ text: String) -> String {
        if text.utf8.allSatisfy(isKept) { return text }
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count + 16)
        append(text, to: &result)
        return String(decoding: result, as: UTF8.self)
    }

    /// `name=value` pairs joined by `&`, in their order; a nil value gives the bare name.
    package static func encode(_ items: [(String, String?)]) -> String {
        var result: [UInt8] = []
        for (index, (name, value)) in items.enumerated() {
            if index > 0 { result.append(UInt8(ascii: "&")) }
            append(name, to: &result)
            guard let value else { continue }
            result.append(UInt8(ascii: "="))
            append(value, to: &result)
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func append(_ text: String, to result: inout [UInt8]) {
        for byte in text.utf8 {
            if isKept(byte) { result.append(byte) } else { result.appendPercentEncoded(byte) }
        }
    }

    private static func isKept(_ byte: UInt8) -> Bool {
        byte.isUnreservedInURL || byte == Reference.slash || byte == Reference.query
    }
}
