import Tern

/// Parses the parts of structured fields (RFC 9651) that caching uses: dictionaries and lists of strings, Booleans and
/// inner lists. Parameters are checked and ignored.
struct StructuredFields {
    /// A member of a dictionary or a list.
    enum Value: Sendable, Hashable {
        case boolean(Bool)
        case string(String)
        /// A number, a token, bytes, or an inner list with an item of these.
        case other
        case strings([String])
    }

    private let bytes: [UInt8]
    private var index = 0

    /// The limits on a field: bytes and members.
    private static let limits = (bytes: 16 << 10, members: 256)

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the dictionary of all values of a field. Of equal keys, the last one counts. nil without the field, and
    /// if it is malformed.
    static func dictionary(_ name: String, in headers: Headers) -> [String: Value]? {
        var parser: StructuredFields? = parser(name, in: headers)
        return parser?.dictionary()
    }

    /// Returns the strings of a list; nil without the field, and if it is malformed or has an item that is no string.
    static func strings(_ name: String, in headers: Headers) -> [String]? {
        guard var parser = parser(name, in: headers), let members = parser.list() else { return nil }
        let strings = members.compactMap { if case .string(let text) = $0 { text } else { nil } }
        return strings.count == members.count ? strings : nil
    }

    private static func parser(_ name: String, in headers: Headers) -> StructuredFields? {
        let values = headers.values(for: name)
        guard !values.isEmpty, values.reduce(0, { $0 + $1.utf8.count }) <= limits.bytes else { return nil }
        return StructuredFields(Array(values.joined(separator: ", ").utf8))
    }

    // MARK: Members

    private mutating func dictionary() -> [String: Value]? {
        var result: [String: Value] = [:]
        let isValid = members { parser in
            guard let key = parser.key() else { return false }
            if parser.skip(.equals) {
                guard let value = parser.value() else { return false }
                result[key] = value
            } else {
                guard parser.skipParameters() else { return false }
                result[key] = .boolean(true)
            }
            return true
        }
        return isValid ? result : nil
    }

    private mutating func list() -> [Value]? {
        var result: [Value] = []
        let isValid = members { parser in
            guard let value = parser.value() else { return false }
            result.append(value)
            return true
        }
        return isValid ? result : nil
    }

    /// Reads members that are separated by commas, without a comma at the end.
    private mutating func members(_ member: (inout StructuredFields) -> Bool) -> Bool {
        var count = 0
        skipSpace()
        while index < bytes.count {
            count += 1
            guard count <= Self.limits.members, member(&self) else { return false }
            skipSpace()
            if index == bytes.count { return true }
            guard skip(.comma) else { return false }
            skipSpace()
            if index == bytes.count { return false }
        }
        return true
    }

    // MARK: Items

    private mutating func value() -> Value? {
        let value = skip(UInt8(ascii: "(")) ? innerList() : item()
        guard let value, skipParameters() else { return nil }
        return value
    }

    private mutating func innerList() -> Value? {
        var strings: [String] = []
        var hasOthers = false
        while index < bytes.count {
            while skip(0x20) {}
            if skip(UInt8(ascii: ")")) { return hasOthers ? .other : .strings(strings) }
            guard let item = item(), skipParameters() else { return nil }
            if case .string(let text) = item { strings.append(text) } else { hasOthers = true }
            guard index < bytes.count, bytes[index] == 0x20 || bytes[index] == UInt8(ascii: ")") else { return nil }
        }
        return nil
    }

    private mutating func item() -> Value? {
        guard index < bytes.count else { return nil }
        switch bytes[index] {
        case .quote: return string().map { .string($0) }
        case UInt8(ascii: "?"):
            index += 1
            if skip(UInt8(ascii: "1")) { return .boolean(true) }
            return skip(UInt8(ascii: "0")) ? .boolean(false) : nil
        case UInt8(ascii: ":"):
            guard let end = bytes[(index + 1)...].firstIndex(of: UInt8(ascii: ":")) else { return nil }
            index = end + 1
            return .other
        default:
            let start = index
            while index < bytes.count,
                ByteSet.token.contains(bytes[index]) || bytes[index] == UInt8(ascii: ":")
                    || bytes[index] == UInt8(ascii: "/") || bytes[index] == UInt8(ascii: "@")
            {
                index += 1
            }
            return index > start ? .other : nil
        }
    }

    private mutating func string() -> String? {
        var result: [UInt8] = []
        index += 1
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            switch byte {
            case .quote: return String(decoding: result, as: UTF8.self)
            case .backslash:
                guard index < bytes.count, bytes[index] == .quote || bytes[index] == .backslash else { return nil }
                result.append(bytes[index])
                index += 1
            case 0x20...0x7E: result.append(byte)
            default: return nil
            }
        }
        return nil
    }

    private mutating func key() -> String? {
        let start = index
        while index < bytes.count, Self.isKey(bytes[index]) { index += 1 }
        guard index > start, bytes[start] == UInt8(ascii: "*") || !bytes[start].isASCIIDigit && bytes[start] != 0x2D,
            bytes[start] != UInt8(ascii: "."), bytes[start] != UInt8(ascii: "_")
        else { return nil }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    private static func isKey(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || byte.isASCIIDigit || [0x5F, 0x2D, 0x2E, 0x2A].contains(byte)
    }

    private mutating func skipParameters() -> Bool {
        while skip(.semicolon) {
            while skip(0x20) {}
            guard key() != nil else { return false }
            if skip(.equals), item() == nil { return false }
        }
        return true
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipSpace() { while index < bytes.count, bytes[index].isHTTPWhitespace { index += 1 } }
}
