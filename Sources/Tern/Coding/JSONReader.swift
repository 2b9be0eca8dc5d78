#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Reads a JSON text (RFC 8259) to a ``JSONValue`` in one pass, without recursion.
///
/// Takes time and memory in proportion to the size of the text. Foundation's decoder calls `JSONValue` for each value, which can
/// only try one kind after the other, and each wrong one is an error that describes its whole path.
package struct JSONReader {
    /// The deepest nesting of arrays and objects, as that of Foundation's decoder.
    package static let maximumDepth = 512

    private struct OpenContainer {
        let isObject: Bool
        /// The numbers of values and names that were read before it.
        let values: Int
        let names: Int
    }

    private let bytes: [UInt8]
    private var index = 0
    private var open: [OpenContainer] = []
    /// The values and names of the open containers.
    private var values: [JSONValue] = []
    private var names: [String] = []
    private var count = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Reads a text in UTF-8, UTF-16 or UTF-32. A byte order mark is skipped. If a name occurs twice in an object, the first value
    /// counts, as for Foundation's decoder.
    ///
    /// - Throws: `DecodingError` for bytes that are no JSON text, for a number that a `Double` cannot hold, and beyond
    ///   ``maximumDepth``; `CancellationError`, and the error of ``DecodingLimit``.
    package static func value(of data: Data) throws -> JSONValue {
        var reader = JSONReader(try utf8(data))
        return try reader.read()
    }

    private mutating func read() throws -> JSONValue {
        while true {
            var value = JSONValue.null
            count += 1
            if count.isMultiple(of: 1_024) { try DecodingLimit.check() }
            switch nextByte() {
            case UInt8(ascii: "["):
                try enter(isObject: false)
                guard take(UInt8(ascii: "]")) else { continue }
                value = leave()
            case UInt8(ascii: "{"):
                try enter(isObject: true)
                guard take(UInt8(ascii: "}")) else {
                    try readName()
                    continue
                }
                value = leave()
            default: value = try scalar()
            }
            // The value can be the last one of several containers.
            while let container = open.last {
                values.append(value)
                if take(UInt8(ascii: ",")) {
                    if container.isObject { try readName() }
                    break
                }
                guard take(container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { throw unexpected() }
                value = leave()
            }
            if open.isEmpty {
                guard nextByte() == nil else { throw unexpected() }
                return value
            }
        }
    }

    // MARK: Containers

    private mutating func enter(isObject: Bool) throws {
        guard open.count < Self.maximumDepth else {
            throw problem("arrays and objects nest deeper than \(Self.maximumDepth) levels")
        }
        index += 1
        open.append(OpenContainer(isObject: isObject, values: values.count, names: names.count))
    }

    private mutating func leave() -> JSONValue {
        guard let container = open.popLast() else { return .null }
        // Copied before they are removed: a slice that lives on would make each removal a copy of everything.
        let elements = Array(values[container.values...])
        values.removeLast(values.count - container.values)
        guard container.isObject else { return .array(elements) }
        let keys = Array(names[container.names...])
        names.removeLast(names.count - container.names)
        return .object(Dictionary(zip(keys, elements)) { first, _ in first })
    }

    private mutating func readName() throws {
        guard nextByte() == UInt8(ascii: "\"") else { throw unexpected() }
        names.append(try string())
        guard take(UInt8(ascii: ":")) else { throw unexpected() }
    }

    // MARK: Scalars

    private mutating func scalar() throws -> JSONValue {
        switch nextByte() {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func word(_ text: StaticString, _ value: JSONValue) throws -> JSONValue {
        let word = Array("\(text)".utf8)
        guard bytes[index...].starts(with: word) else { throw unexpected() }
        index += word.count
        return value
    }

    /// Reads a number: a whole one as an integer, however it is written, if it fits. Integers are exact beyond 53 bits.
    private mutating func number() throws -> JSONValue {
        let start = index
        let isNegative = peek() == UInt8(ascii: "-")
        if isNegative { index += 1 }
        let first = index
        var decimal = Decimal64()
        try digits(of: &decimal)
        guard bytes[first] != UInt8(ascii: "0") || index == first + 1 else { throw unexpected() }
        if peek() == UInt8(ascii: ".") {
            index += 1
            let fraction = index
            try digits(of: &decimal)
            decimal.scale -= index - fraction
        }
        if let byte = peek(), byte | 0x20 == UInt8(ascii: "e") {
            index += 1
            let sign = peek()
            if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { index += 1 }
            var exponent = Decimal64()
            try digits(of: &exponent)
            let size = Int(exponent.whole.map { min($0, 1 << 40) } ?? 1 << 40)
            decimal.scale += sign == UInt8(ascii: "-") ? -size : size
        }
        if let magnitude = decimal.whole {
            if let integer = Int64(exactly: magnitude) { return .integer(isNegative ? -integer : integer) }
            if isNegative, magnitude == 1 << 63 { return .integer(.min) }
        }
        guard let value = Double(String(decoding: bytes[start..<index], as: UTF8.self)), value.isFinite else {
            throw problem("the number at byte \(start) does not fit into a Double")
        }
        return .number(value)
    }

    /// Digits as they are written, as a number without the zeros at its end.
    private struct Decimal64 {
        private var digits: UInt64? = 0
        private var zeros = 0
        /// The power of ten of the last digit that was added.
        var scale = 0

        mutating func add(_ digit: UInt64) {
            zeros += 1
            if digit == 0 || digits == nil { return }
            while zeros > 0, let value = digits {
                let (product, overflows) = value.multipliedReportingOverflow(by: 10)
                digits = overflows ? nil : product
                zeros -= 1
            }
            digits = digits.flatMap { value in
                let (sum, overflows) = value.addingReportingOverflow(digit)
                return overflows ? nil : sum
            }
        }

        /// The value, if it is a whole number of 64 bits.
        var whole: UInt64? {
            guard var value = digits else { return nil }
            if value == 0 { return 0 }
            let power = zeros + scale
            guard power >= 0, power < 20 else { return nil }
            for _ in 0..<power {
                let (product, overflows) = value.multipliedReportingOverflow(by: 10)
                if overflows { return nil }
                value = product
            }
            return value
        }
    }

    private mutating func digits(of decimal: inout Decimal64) throws {
        let start = index
        while let byte = peek(), Self.isDigit(byte) {
            decimal.add(UInt64(byte - UInt8(ascii: "0")))
            index += 1
        }
        guard index > start else { throw unexpected() }
    }

    private mutating func string() throws -> String {
        index += 1
        let start = index
        while let byte = peek(), byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { index += 1 }
        if peek() == UInt8(ascii: "\"") {
            index += 1
            return try text(bytes[start..<index - 1])
        }
        var content = Array(bytes[start..<index])
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return try text(content[...])
            case UInt8(ascii: "\\"): try escape(to: &content)
            case 0..<0x20: throw unexpected()
            default:
                content.append(byte)
                index += 1
            }
        }
        throw unexpected()
    }

    private func text(_ content: ArraySlice<UInt8>) throws -> String {
        guard let text = String(validating: content, as: UTF8.self) else {
            throw problem("the string before byte \(index) is not text in UTF-8")
        }
        return text
    }

    private mutating func escape(to content: inout [UInt8]) throws {
        index += 1
        guard let byte = peek() else { throw unexpected() }
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
        case UInt8(ascii: "b"): content.append(0x08)
        case UInt8(ascii: "f"): content.append(0x0C)
        case UInt8(ascii: "n"): content.append(0x0A)
        case UInt8(ascii: "r"): content.append(0x0D)
        case UInt8(ascii: "t"): content.append(0x09)
        case UInt8(ascii: "u"):
            let place = index
            var value = UInt32(try codeUnit())
            // Two escapes are one character beyond U+FFFF. One half of them is no text.
            if 0xD800..<0xDC00 ~= value, peek() == UInt8(ascii: "\\"), index + 1 < bytes.count,
                bytes[index + 1] == UInt8(ascii: "u")
            {
                index += 1
                let low = UInt32(try codeUnit())
                value = 0xDC00..<0xE000 ~= low ? 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00) : value
            }
            guard let scalar = Unicode.Scalar(value) else { throw problem("the escape at byte \(place) is no text") }
            content += Array(String(scalar).utf8)
            return
        default: throw unexpected()
        }
        index += 1
    }

    /// Reads the four digits after a `u`.
    private mutating func codeUnit() throws -> UInt16 {
        index += 1
        let end = index + 4
        guard end <= bytes.count else { throw unexpected() }
        var value = UInt16(0)
        while index < end {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt16(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt16(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): value = value << 4 | UInt16(byte - UInt8(ascii: "A") + 10)
            default: throw unexpected()
            }
            index += 1
        }
        return value
    }

    // MARK: Bytes

    private func peek() -> UInt8? { index < bytes.count ? bytes[index] : nil }

    /// Skips white space, and returns the byte after it.
    private mutating func nextByte() -> UInt8? {
        while let byte = peek(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
        return peek()
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard nextByte() == byte else { return false }
        index += 1
        return true
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private func unexpected() -> DecodingError {
        problem(index < bytes.count ? "the byte \(index) is not expected in JSON" : "the JSON text ends early")
    }

    private func problem(_ text: String) -> DecodingError { Self.problem(text) }

    private static func problem(_ text: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: text))
    }

    /// Returns the text in UTF-8 without a byte order mark. The zeros beside the first character show other encodings, as RFC
    /// 4627 §3 says and Foundation's decoder does.
    private static func utf8(_ data: Data) throws -> [UInt8] {
        let bytes = Array(data)
        let (first, second) = (bytes.first ?? 1, bytes.dropFirst().first ?? 1)
        let isQuad = bytes.count >= 4 && bytes[2] == 0
        let charset: String? =
            switch (first, second) {
            case (0xFE, 0xFF), (0xFF, 0xFE): isQuad && bytes[3] == 0 ? "utf-32" : "utf-16"
            case (0, 0): "utf-32"
            case (0, _): "utf-16"
            case (_, 0): isQuad && bytes[3] == 0 ? "utf-32le" : "utf-16le"
            default: nil
            }
        if let charset {
            do {
                return try Array(TextDecoding.string(from: bytes, charset: charset).utf8)
            } catch {
                throw problem("\(error)")
            }
        }
        return bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    }
}
