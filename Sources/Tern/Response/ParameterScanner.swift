/// Reads `value; name=value; name="quoted"`, the form that `Content-Type` and `Content-Disposition` share
/// (RFC 9110 §5.6.6).
struct ParameterScanner {
    /// A name in lower case with its value, out of its quotes.
    struct Parameter: Hashable {
        var name: String
        var value: String
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Whether the text begins with a parameter, the leading value being left out.
    var startsWithParameter: Bool {
        bytes.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "\"") }.contains(UInt8(ascii: "="))
    }

    /// What stands before the first semicolon, without whitespace around it.
    mutating func leadingValue() -> String {
        let start = position
        skip { $0 != UInt8(ascii: ";") }
        return trimmed(start..<position)
    }

    /// The next parameter; nil at the end. What is no parameter is passed over.
    mutating func next() -> Parameter? {
        while position < bytes.count {
            skip { $0 == UInt8(ascii: ";") || $0.isHTTPWhitespace }
            let start = position
            skip { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
            let name = trimmed(start..<position).lowercased()
            guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { continue }
            position += 1
            skip { $0.isHTTPWhitespace }
            let value = self.value()
            if !name.isEmpty { return Parameter(name: name, value: value) }
        }
        return nil
    }

    private mutating func value() -> String {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
            let start = position
            skip { $0 != UInt8(ascii: ";") }
            return trimmed(start..<position)
        }
        var content: [UInt8] = []
        position += 1
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            // A quoted pair: the backslash goes, what it protects stays.
            if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count { position += 1 }
            content.append(bytes[position])
            position += 1
        }
        skip { $0 != UInt8(ascii: ";") }
        return String(decoding: content, as: UTF8.self)
    }

    private mutating func skip(while condition: (UInt8) -> Bool) {
        while position < bytes.count, condition(bytes[position]) { position += 1 }
    }

    private func trimmed(_ range: Range<Int>) -> String {
        let start = bytes[range].drop { $0.isHTTPWhitespace }
        let length = start.reversed().drop { $0.isHTTPWhitespace }.count
        return String(decoding: start.prefix(length), as: UTF8.self)
    }
}
