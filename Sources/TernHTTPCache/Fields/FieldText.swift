import Tern

// Reads the values of header fields byte by byte. Every byte comes from a server or a caller and can be anything.

extension UInt8 {
    static let comma = UInt8(ascii: ",")
    static let equals = UInt8(ascii: "=")
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")
    static let semicolon = UInt8(ascii: ";")
}

/// Functions on the text of header fields. ASCII only, so that no result depends on the process's locale.
enum FieldText {
    /// Returns a text with letters A–Z as a–z.
    static func lowercased(_ text: some Sequence<UInt8>) -> String {
        String(decoding: text.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Returns bytes without the whitespace around them.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while bytes.first?.isHTTPWhitespace == true { bytes.removeFirst() }
        while bytes.last?.isHTTPWhitespace == true { bytes.removeLast() }
        return bytes
    }

    /// Splits a value at commas outside of quoted strings (RFC 9110 §5.6.1), without whitespace and empty members. In
    /// a quoted string that does not end, each comma separates.
    static func members(_ value: String) -> [ArraySlice<UInt8>] {
        let bytes = Array(value.utf8)
        var members: [ArraySlice<UInt8>] = []
        var (start, index) = (0, 0)
        // Looked for once, so that the time stays linear.
        var isBroken = false
        while index < bytes.count {
            if !isBroken, bytes[index] == .quote, let end = endOfQuote(bytes, from: index) {
                index = end
            } else {
                isBroken = isBroken || bytes[index] == .quote
                if bytes[index] == .comma {
                    members.append(trimmed(bytes[start..<index]))
                    start = index + 1
                }
                index += 1
            }
        }
        members.append(trimmed(bytes[start...]))
        return members.filter { !$0.isEmpty }
    }

    /// Returns the members of all values of a field.
    static func members(of name: String, in headers: Headers) -> [ArraySlice<UInt8>] {
        headers.values(for: name).flatMap { members($0) }
    }

    /// Returns the position after the quoted string that begins at `start`; nil if it does not end.
    static func endOfQuote(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start + 1
        while index < bytes.count {
            switch bytes[index] {
            case .quote: return index + 1
            case .backslash: index += 2
            default: index += 1
            }
        }
        return nil
    }

    /// Returns the content of a whole quoted string without its escapes (RFC 9110 §5.6.4).
    static func unquoted(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var isEscaped = false
        for byte in bytes.dropFirst().dropLast() {
            if byte == .backslash, !isEscaped {
                isEscaped = true
            } else {
                result.append(byte)
                isEscaped = false
            }
        }
        return result
    }

    /// Reads a number of seconds (RFC 9111 §1.2.2). Returns nil for anything but digits; values above 2³¹ count as 2³¹.
    static func seconds(_ text: some Sequence<UInt8>) -> Int64? {
        number(text, limit: CacheTime.longestSeconds)
    }

    /// Reads a number of digits, not above a limit. Returns nil for anything but digits.
    static func number(_ text: some Sequence<UInt8>, limit: Int64) -> Int64? {
        var (result, count): (Int64, Int) = (0, 0)
        for byte in text {
            guard byte.isASCIIDigit else { return nil }
            let (product, isOver) = result.multipliedReportingOverflow(by: 10)
            let (sum, isTooMuch) = product.addingReportingOverflow(Int64(byte - 0x30))
            result = isOver || isTooMuch ? limit : min(limit, sum)
            count += 1
        }
        return count > 0 ? result : nil
    }
}
