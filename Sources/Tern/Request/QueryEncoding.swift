/// Percent-encoding of query items by AFNetworking's rule.
///
/// Everything is encoded but letters, digits and `-._~/?`: a space is `%20`, never `+`, which many servers take for a
/// plus, and `[`, `]`, `&` and `=` in names and values cannot be mistaken for structure. `/` and `?` may stand in a
/// query (RFC 3986 §3.4). Text that is encoded already is encoded again.
package enum QueryEncoding {
    /// One name or value.
    package static func escape(_ text: String) -> String {
        if text.consists(of: .queryItem) { return text }
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count + 16)
        append(text, to: &result)
        return String(decoding: result, as: UTF8.self)
    }

    /// `name=value` pairs joined by `&`, in their order; a nil value gives the bare name.
    package static func encode(
        _ items: [Request.Query.Item], spaces: FormEncoder.Spaces = .percentEncoded
    ) -> String {
        var result: [UInt8] = []
        for (index, item) in items.enumerated() {
            append(item.name, item.value, isFirst: index == 0, to: &result, spaces)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// `name=value` pairs joined by `&`, in their order; a nil value gives the bare name.
    package static func encode(_ items: [(String, String?)]) -> String {
        var result: [UInt8] = []
        for (index, (name, value)) in items.enumerated() {
            append(name, value, isFirst: index == 0, to: &result)
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func append(
        _ name: String, _ value: String?, isFirst: Bool, to result: inout [UInt8],
        _ spaces: FormEncoder.Spaces = .percentEncoded
    ) {
        if isFirst { result.reserveCapacity(64) } else { result.append(UInt8(ascii: "&")) }
        append(name, to: &result, spaces)
        guard let value else { return }
        result.append(UInt8(ascii: "="))
        append(value, to: &result, spaces)
    }

    private static func append(
        _ text: String, to result: inout [UInt8], _ spaces: FormEncoder.Spaces = .percentEncoded
    ) {
        for byte in text.utf8 {
            if ByteSet.queryItem.contains(byte) {
                result.append(byte)
            } else if byte == UInt8(ascii: " "), spaces == .plus {
                result.append(UInt8(ascii: "+"))
            } else {
                result.appendPercentEncoded(byte)
            }
        }
    }
}
