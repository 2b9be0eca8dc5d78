#if os(Linux)
import CTernIDN
#else
import Foundation
#endif

/// An IPv4 address by WHATWG's URL standard: one to four numbers, each decimal, octal (`0177`) or hexadecimal (`0x7f`).
/// The last number fills the remaining bytes.
struct IPv4Address {
    private let value: UInt32

    init?(_ bytes: ArraySlice<UInt8>) {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count <= 4 else { return nil }
        var value: UInt32 = 0
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            let bits = isLast ? 8 * (4 - index) : 8
            guard let number = Self.number(part), number < 1 << bits else { return nil }
            // Computed in 64 bits, because a single number is shifted by all 32.
            value = UInt32(truncatingIfNeeded: UInt64(value) << UInt64(bits)) | UInt32(number)
        }
        self.value = value
    }

    /// Parses four decimal numbers without leading zeros, as in an IPv6 address.
    init?(dotted bytes: ArraySlice<UInt8>) {
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isDecimal = parts.allSatisfy { part in
            !part.isEmpty && part.allSatisfy(\.isASCIIDigit) && (part.count == 1 || part.first != UInt8(ascii: "0"))
        }
        guard parts.count == 4, isDecimal else { return nil }
        self.init(bytes)
    }

    /// The address as `192.0.2.7`.
    var text: String { "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)" }

    /// The bytes in network order.
    var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }

    /// Returns whether the last label of a name makes the name an IPv4 address or an invalid one.
    static func isNumber(_ label: ArraySlice<UInt8>) -> Bool {
        if label.first?.isASCIIDigit != true { return false }
        return label.allSatisfy(\.isASCIIDigit) || number(label) != nil
    }

    /// Parses a number below 2^32. A larger number becomes 2^32.
    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        var (digits, radix) = (bytes, UInt64(10))
        if bytes.starts(with: "0x".utf8) {
            (digits, radix) = (bytes.dropFirst(2), 16)
        } else if bytes.count > 1, bytes.first == UInt8(ascii: "0") {
            (digits, radix) = (bytes.dropFirst(), 8)
        }
        if bytes.isEmpty { return nil }
        var result: UInt64 = 0
        for digit in digits {
            guard let value = digit.hexValue.map(UInt64.init), value < radix else { return nil }
            result = min(result * radix + value, 1 << 32)
        }
        return result
    }
}

/// An IPv6 address, parsed and written by WHATWG's URL standard (RFC 4291 §2.2, RFC 5952 §4).
struct IPv6Address {
    private let pieces: [UInt16]

    init?(_ bytes: ArraySlice<UInt8>) {
        let colon = UInt8(ascii: ":")
        var pieces: [UInt16] = []
        /// The position of the `::`.
        var gap: Int?
        var rest = bytes
        if rest.first == colon {
            guard rest.starts(with: "::".utf8) else { return nil }
            rest = rest.dropFirst(2)
            gap = 0
        }
        while let first = rest.first {
            if first == colon {
                guard gap == nil else { return nil }
                gap = pieces.count
                rest = rest.dropFirst()
                continue
            }
            let digits = rest.prefix { $0.hexValue != nil }
            rest = rest[digits.endIndex...]
            if rest.first == UInt8(ascii: ".") {
                guard let tail = IPv4Address(dotted: bytes[digits.startIndex...])?.bytes else { return nil }
                pieces += [UInt16(tail[0]) << 8 | UInt16(tail[1]), UInt16(tail[2]) << 8 | UInt16(tail[3])]
                break
            }
            guard (1...4).contains(digits.count) else { return nil }
            pieces.append(digits.reduce(0) { $0 << 4 | UInt16($1.hexValue ?? 0) })
            if rest.isEmpty { break }
            // A single colon at the end is invalid.
            guard rest.first == colon, rest.count > 1 else { return nil }
            rest = rest.dropFirst()
        }
        if let gap {
            guard pieces.count < 8 else { return nil }
            pieces.insert(contentsOf: repeatElement(0, count: 8 - pieces.count), at: gap)
        }
        guard pieces.count == 8 else { return nil }
        self.pieces = pieces
    }

    /// The address in lower case, with the first of the longest runs of zeros compressed.
    var text: String {
        var (start, length) = (0, 1)
        var index = 0
        while index < 8 {
            let run = pieces[index...].prefix { $0 == 0 }.count
            if run > length { (start, length) = (index, run) }
            index += max(run, 1)
        }
        func text(_ pieces: ArraySlice<UInt16>) -> String {
            pieces.map { String($0, radix: 16) }.joined(separator: ":")
        }
        if length == 1 { return text(pieces[...]) }
        return text(pieces[..<start]) + "::" + text(pieces[(start + length)...])
    }

    /// The bytes in network order.
    var bytes: [UInt8] { pieces.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] } }

    /// Whether the address is in fe80::/10, where it is ambiguous without a zone.
    var isLinkLocal: Bool { pieces[0] & 0xFFC0 == 0xFE80 }
}

/// One label of an international host name.
enum InternationalLabel {
    /// Converts a label to the ASCII form that is sent, by UTS #46 without transitional processing: `bücher` to
    /// `xn--bcher-kva`. The result does not depend on the process's locale.
    ///
    /// An ASCII label must begin with `xn--` in lower case. It is checked and returned unchanged. libidn2 converts
    /// labels on Linux, and the system elsewhere.
    ///
    /// - Throws: An error when IDNA does not allow the label.
    static func ascii(_ label: String) throws(Target.Problem) -> [UInt8] {
        guard let result = converted(label) else {
            throw Target.Problem(reason: "the host has a label that IDNA does not allow (UTS #46)")
        }
        return result
    }

    #if os(Linux)
    private static func converted(_ label: String) -> [UInt8]? {
        var ascii: UnsafeMutablePointer<CChar>?
        let code = unsafe label.withCString { unsafe tern_idn_to_ascii($0, &ascii) }
        defer { unsafe tern_idn_free(ascii) }
        guard code == IDN2_OK.rawValue, let text = unsafe ascii else { return nil }
        return Array(unsafe String(cString: text).utf8)
    }
    #else
    private static func converted(_ label: String) -> [UInt8]? {
        URLComponents(string: "https://\(label)/")?.encodedHost.map { Array($0.utf8) }
    }
    #endif
}
