/// Percent-encodes query items by AFNetworking's rule.
///
/// Everything is encoded except letters, digits and `-._~/?`. A space becomes `%20` and never `+`, which many servers
/// read as a plus. `[`, `]`, `&` and `=` in names and values cannot be confused with delimiters. `/` and `?` are valid
/// in a query (RFC 3986 §3.4). Text that is already encoded is encoded again.
package enum QueryEncoding {
    /// Returns `name=value` pairs joined by `&`, in order. A nil value gives the bare name.
    package static func encode(_ items: [(String, String?)]) -> String {
        var result: [UInt8] = []
        for (index, (name, value)) in items.enumerated() {
            append(name: name, value: value, isFirst: index == 0, to: &result)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Appends `name=value`, after `&` unless it is the first pair. A nil value gives the bare name.
    static func append(
        name: String, value: String?, isFirst: Bool, to result: inout [UInt8], usesPlus: Bool = false
    ) {
        if isFirst { result.reserveCapacity(64) } else { result.append(UInt8(ascii: "&")) }
        append(name, to: &result, usesPlus: usesPlus)
        guard let value else { return }
        result.append(UInt8(ascii: "="))
        append(value, to: &result, usesPlus: usesPlus)
    }

    /// - Parameter usesPlus: Whether a space becomes `+`.
    private static func append(_ text: String, to result: inout [UInt8], usesPlus: Bool) {
        for byte in text.utf8 {
            if ByteSet.queryItem.contains(byte) {
                result.append(byte)
            } else if byte == UInt8(ascii: " "), usesPlus {
                result.append(UInt8(ascii: "+"))
            } else {
                result.appendPercentEncoded(byte)
            }
        }
    }
}
