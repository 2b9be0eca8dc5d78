/// A place where the server of an origin can be reached over HTTP/3 (RFC 7838 §2).
package struct AlternativeService: Sendable, Hashable {
    /// The host in lower case, without brackets; nil for that of the origin.
    package var host: String?
    package var port: UInt16

    package init(host: String? = nil, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// The host and port, for texts. A host that is that of the origin is left out.
    var name: String { ":\(port)".withHost(host) }
}

extension String {
    fileprivate func withHost(_ host: String?) -> String {
        guard let host else { return self }
        return host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]\(self)" : "\(host)\(self)"
    }
}

/// The Alt-Svc fields of a response (RFC 7838 §3).
///
/// Reading takes linear time, and ends with the first error of syntax: a field that is not valid counts as none.
package enum AlternativeServiceField: Sendable, Equatable {
    /// The server takes back the alternatives that it has named before.
    case clear
    /// The alternatives over HTTP/3, in the order of the server's preference. Empty if there are others alone: they
    /// replace earlier ones, too.
    case offered([Offer])

    /// An alternative over HTTP/3, and the time for which it can be used.
    package struct Offer: Sendable, Equatable {
        package var service: AlternativeService
        /// In seconds since the response was generated.
        package var lifetime: Int64
        /// Whether the alternative stays in use on another network.
        package var isPersistent: Bool

        package init(_ service: AlternativeService, lifetime: Int64 = 86_400, isPersistent: Bool = false) {
            self.service = service
            self.lifetime = lifetime
            self.isPersistent = isPersistent
        }
    }

    /// The bytes of all values that are read; a longer list counts as none.
    package static let byteLimit = 8_192
    /// The alternatives that are kept. Others are checked, and left out.
    package static let offerLimit = 4
    /// The longest lifetime in seconds: 30 days.
    package static let longestLifetime: Int64 = 2_592_000

    /// Reads the values of the Alt-Svc fields of a head; nil without a valid one.
    package init?(_ values: [[UInt8]]) {
        guard !values.isEmpty, values.reduce(0, { $0 + $1.count + 1 }) <= Self.byteLimit else { return nil }
        if values.contains(where: { AlternativeReader.isClear($0) }) {
            self = .clear
            return
        }
        // Several lines are one list (RFC 9110 §5.3).
        var reader = AlternativeReader(Array(values.joined(separator: [UInt8(ascii: ",")])))
        guard let offers = reader.offers() else { return nil }
        self = .offered(offers)
    }
}

/// Reads `Alt-Svc = clear / 1#alt-value`.
private struct AlternativeReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether the value is `clear`, whose case counts.
    static func isClear(_ value: [UInt8]) -> Bool {
        let isBlank = HTTPBytes.isBlank
        guard let first = value.firstIndex(where: { !isBlank($0) }), let last = value.lastIndex(where: { !isBlank($0) })
        else { return false }
        return value[first...last].elementsEqual("clear".utf8)
    }

    /// Returns the alternatives over HTTP/3; nil if the list is not valid, or has no element.
    mutating func offers() -> [AlternativeServiceField.Offer]? {
        var offers: [AlternativeServiceField.Offer] = []
        var count = 0
        while true {
            skipBlanks()
            if position == bytes.count { return count > 0 ? offers : nil }
            // A list can have empty elements (RFC 9110 §5.6.1.2).
            if take(UInt8(ascii: ",")) { continue }
            guard let element = element() else { return nil }
            count += 1
            if let offer = element, offers.count < AlternativeServiceField.offerLimit { offers.append(offer) }
            guard position == bytes.count || take(UInt8(ascii: ",")) else { return nil }
        }
    }

    /// Reads an alternative and its parameters. Returns nil for an error of syntax, and nothing in it for an alternative
    /// that is of no use.
    private mutating func element() -> AlternativeServiceField.Offer?? {
        guard let name = token(), take(UInt8(ascii: "=")), let authority = quoted() else { return nil }
        var lifetime: Int64? = 86_400
        var isPersistent = false
        while true {
            skipBlanks()
            guard take(UInt8(ascii: ";")) else { break }
            skipBlanks()
            guard let parameter = token(), take(UInt8(ascii: "=")), let value = quoted() ?? token().map(Array.init)
            else { return nil }
            switch String(decoding: parameter, as: UTF8.self).lowercased() {
            case "ma": lifetime = Self.seconds(value)
            case "persist": isPersistent = value == [UInt8(ascii: "1")]
            default: break
            }
        }
        guard Self.isHTTP3(name), let service = Self.service(authority), let lifetime else { return .some(nil) }
        return AlternativeServiceField.Offer(service, lifetime: lifetime, isPersistent: isPersistent)
    }

    /// Returns a number of seconds, at most the longest lifetime; nil if it is none.
    private static func seconds(_ digits: [UInt8]) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy(HTTPBytes.isDigit) else { return nil }
        return digits.reduce(0) { min($0 * 10 + Int64($1 &- 0x30), AlternativeServiceField.longestLifetime) }
    }

    /// Returns whether the name of a protocol is `h3`, some of whose bytes can be encoded by a percent sign.
    private static func isHTTP3(_ name: ArraySlice<UInt8>) -> Bool {
        var rest = name
        for expected in "h3".utf8 {
            guard let first = rest.popFirst() else { return false }
            var byte = first
            if first == UInt8(ascii: "%") {
                guard let high = rest.popFirst().flatMap(HTTPBytes.hexValue),
                    let low = rest.popFirst().flatMap(HTTPBytes.hexValue)
                else { return false }
                byte = UInt8(truncatingIfNeeded: high << 4 | low)
            }
            if byte != expected { return false }
        }
        return rest.isEmpty
    }

    /// Reads `[ uri-host ] ":" port`.
    private static func service(_ authority: [UInt8]) -> AlternativeService? {
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        let digits = authority[(colon + 1)...]
        guard 1...5 ~= digits.count, digits.allSatisfy(HTTPBytes.isDigit),
            let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0
        else { return nil }
        let host = authority[..<colon]
        if host.isEmpty { return AlternativeService(port: port) }
        guard let text = Self.host(host) else { return nil }
        return AlternativeService(host: text, port: port)
    }

    private static func host(_ bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.count <= 255 else { return nil }
        var host = bytes
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
            host = host.dropFirst().dropLast()
            let isAddress = host.contains(UInt8(ascii: ":")) && host.allSatisfy(isOfAddress)
            return isAddress ? String(decoding: host, as: UTF8.self).lowercased() : nil
        }
        // Names of hosts as they are looked up, and addresses of IPv4. No other name of RFC 3986 §3.2.2 has a meaning.
        return host.allSatisfy(isOfName) ? String(decoding: host, as: UTF8.self).lowercased() : nil
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        HTTPBytes.hexValue(byte) != nil || byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".")
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        HTTPBytes.isDigit(byte) || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            || byte == UInt8(ascii: "_")
    }

    // MARK: Syntax (RFC 9110 §5.6)

    private mutating func skipBlanks() {
        while position < bytes.count, HTTPBytes.isBlank(bytes[position]) { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func token() -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count, HTTPBytes.isToken(bytes[position]) { position += 1 }
        return position > start ? bytes[start..<position] : nil
    }

    /// Reads a quoted string, without its quotes and escapes.
    private mutating func quoted() -> [UInt8]? {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return nil }
        var text: [UInt8] = []
        var index = position + 1
        while index < bytes.count {
            var byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                position = index + 1
                return text
            }
            if byte == UInt8(ascii: "\\") {
                index += 1
                guard index < bytes.count else { return nil }
                byte = bytes[index]
            }
            text.append(byte)
            index += 1
        }
        return nil
    }
}

extension ReceivedHead {
    /// The Alt-Svc fields, and the age that the response states in seconds (RFC 9111 §5.1); nil without a valid field.
    var alternatives: (field: AlternativeServiceField, age: Int64)? {
        var values: [[UInt8]] = []
        var age: Int64 = 0
        unsafe bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            var start = 0
            while start < bytes.count {
                let end = unsafe bytes[start...].firstIndex(of: HTTPBytes.lineFeed) ?? bytes.count
                if let value = unsafe Self.value(of: "alt-svc", base, start..<end) {
                    values.append(unsafe Array(bytes[value]))
                } else if let value = unsafe Self.value(of: "age", base, start..<end) {
                    age = unsafe HTTPBytes.number(base, in: value) ?? age
                }
                start = end + 1
            }
        }
        return AlternativeServiceField(values).map { ($0, age) }
    }

    /// Returns the place of the value of a field line, without the blanks around it; nil if the line is another field.
    @unsafe
    private static func value(
        of name: StaticString, _ base: UnsafeRawPointer, _ line: Range<Int>
    ) -> Range<Int>? {
        let colon = line.lowerBound + name.utf8CodeUnitCount
        guard colon < line.upperBound, unsafe base.load(fromByteOffset: colon, as: UInt8.self) == UInt8(ascii: ":"),
            unsafe HTTPBytes.equals(base, in: line.lowerBound..<colon, to: name)
        else { return nil }
        var end = line.upperBound
        if unsafe base.load(fromByteOffset: end - 1, as: UInt8.self) == HTTPBytes.carriageReturn { end -= 1 }
        return unsafe HTTPBytes.trimmed(base, colon + 1..<max(colon + 1, end))
    }
}
