/// Hides the values of JSON keys in a text. The text need not be valid JSON as a whole: it can be lines of JSON,
/// events, or a truncated part. All other bytes stay unchanged. Pure.
///
/// A string becomes `"<redacted>"` and a number `0`, so that a type can still be decoded; `true`, `false` and `null`
/// stay. In an object or an array under a secret key, all values are hidden.
struct JSONSecrets {
    private let bytes: [UInt8]
    private let isSecret: ([UInt8]) -> Bool
    private var index = 0
    private var result: [UInt8] = []

    private static let quote = UInt8(ascii: "\"")

    init(_ bytes: [UInt8], isSecret: @escaping ([UInt8]) -> Bool) {
        self.bytes = bytes
        self.isSecret = isSecret
    }

    mutating func redacted() -> [UInt8] {
        guard bytes.contains(Self.quote) else { return bytes }
        result.reserveCapacity(bytes.count)
        while index < bytes.count {
            if let key = takeString(hides: false), isAtColon, isSecret(key) { hideValue() }
        }
        return result
    }

    /// Consumes the current byte, or the string that begins here, and returns the text of a string.
    private mutating func takeString(hides: Bool) -> [UInt8]? {
        guard bytes[index] == Self.quote else {
            result.append(bytes[index])
            index += 1
            return nil
        }
        let (text, end) = string(at: index)
        let isKey = isColon(after: end)
        if hides, !isKey { result += "\"\(SecretRedactor.hidden)\"".utf8 } else { result += bytes[index..<end] }
        index = end
        return text
    }

    private var isAtColon: Bool { isColon(after: index) }

    private func isColon(after end: Int) -> Bool {
        bytes[end...].first { !Self.isSpace($0) } == UInt8(ascii: ":")
    }

    /// Copies the bytes up to the value after a colon, and replaces the value.
    private mutating func hideValue() {
        takeSpaces()
        takeByte()
        takeSpaces()
        guard index < bytes.count else { return }
        switch bytes[index] {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            var depth = 0
            repeat {
                switch bytes[index] {
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
                default: break
                }
                hideScalar()
            } while depth > 0 && index < bytes.count
        default:
            hideScalar()
        }
    }

    /// Hides the string or number at the current position, or consumes one byte.
    private mutating func hideScalar() {
        let byte = bytes[index]
        guard byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else {
            _ = takeString(hides: true)
            return
        }
        while index < bytes.count, Self.isOfNumber(bytes[index]) { index += 1 }
        result.append(UInt8(ascii: "0"))
    }

    private mutating func takeByte() {
        result.append(bytes[index])
        index += 1
    }

    private mutating func takeSpaces() {
        while index < bytes.count, Self.isSpace(bytes[index]) { takeByte() }
    }

    /// Returns the text of the string whose quote is here, and the end of the string. A truncated string ends with its
    /// line.
    private func string(at start: Int) -> (text: [UInt8], end: Int) {
        var text: [UInt8] = []
        var index = start + 1
        while index < bytes.count {
            switch bytes[index] {
            case Self.quote: return (text, index + 1)
            case 0x0A, 0x0D: return (text, index)
            case UInt8(ascii: "\\"):
                guard index + 1 < bytes.count else { return (text, bytes.count) }
                let digits = String(
                    decoding: bytes[min(index + 2, bytes.count)..<min(index + 6, bytes.count)], as: UTF8.self)
                if bytes[index + 1] == UInt8(ascii: "u"), let code = UInt16(digits, radix: 16) {
                    // The relevant names are ASCII.
                    text.append(UInt8(exactly: code) ?? UInt8(ascii: "?"))
                    index = min(index + 6, bytes.count)
                } else {
                    text.append(bytes[index + 1])
                    index += 2
                }
            default:
                text.append(bytes[index])
                index += 1
            }
        }
        return (text, bytes.count)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.eE".utf8.contains(byte)
    }
}
