#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A host in the canonical form that all comparisons use: trust policies, cookies, credentials, connections and
/// proxies.
///
/// The form is that of WHATWG's URL standard ("host parsing"): `127.1`, `0x7f.1` and `2130706433` become `127.0.0.1`,
/// an IPv6 address is compressed, and a name is in lower-case ASCII. Beyond the standard, a dot at the end is dropped,
/// and names that no resolver accepts are refused: those with an empty label, a label over 63 bytes, or over 253 bytes
/// in all.
package struct CanonicalHost: Sendable, Hashable {
    /// A name, `192.0.2.7`, or `2001:db8::7`. A link-local address can have a zone, as in `fe80::1%eth0`.
    package let text: String
    /// The form in a URL: an IPv6 address is in brackets, and its zone follows `%25`.
    let urlText: String
    /// Whether this is an IPv4 or IPv6 address.
    let isAddress: Bool

    /// Parses a host from a user: in the form of a URL, or an IPv6 address without brackets, whose zone follows `%`.
    package init(_ text: String) throws(Target.Problem) {
        let bytes = Array(text.utf8)[...]
        if bytes.first != UInt8(ascii: "["), bytes.contains(UInt8(ascii: ":")) {
            try self.init(address: bytes, isInURL: false)
        } else {
            try self.init(url: bytes)
        }
    }

    /// Parses the host of a URL, without user information and port.
    init(url bytes: ArraySlice<UInt8>) throws(Target.Problem) {
        if bytes.first == UInt8(ascii: "[") {
            guard bytes.count > 1, bytes.last == UInt8(ascii: "]") else {
                throw Target.Problem(reason: "the host's bracket is not closed")
            }
            try self.init(address: bytes.dropFirst().dropLast(), isInURL: true)
        } else {
            try self.init(name: bytes)
        }
    }

    // MARK: Names and IPv4

    private init(name bytes: ArraySlice<UInt8>) throws(Target.Problem) {
        var name = bytes.contains(UInt8(ascii: "%")) ? Reference.percentDecoded(bytes)[...] : bytes
        if !name.allSatisfy({ Self.isPlain($0) }) { name = try Self.ascii(name)[...] }
        if name.last == UInt8(ascii: ".") { name = name.dropLast() }
        let last = try Self.lastLabel(of: name)
        if IPv4Address.isNumber(last) {
            guard let address = IPv4Address(name) else {
                throw Target.Problem(reason: "the host ends in a number but is not a valid IPv4 address")
            }
            text = address.text
            isAddress = true
        } else {
            text = String(decoding: name, as: UTF8.self)
            isAddress = false
        }
        urlText = text
    }

    /// Returns whether a byte of a name stays unchanged.
    private static func isPlain(_ byte: UInt8) -> Bool {
        ByteSet.unreserved.contains(byte) && byte.asciiLowercased == byte
    }

    /// The greatest length of a name before it is converted, in bytes: each of 253 bytes can stand for a scalar of
    /// four.
    private static let longestInternationalName = 1_012

    /// Returns a name in lower case, with its international labels converted. The result is checked like a name that
    /// was written that way.
    private static func ascii(_ name: ArraySlice<UInt8>) throws(Target.Problem) -> [UInt8] {
        guard name.allSatisfy({ $0 >= 0x80 || ByteSet.unreserved.contains($0) }) else {
            throw Target.Problem(reason: "the host contains a character that a host cannot have")
        }
        if name.allSatisfy({ $0 < 0x80 }) { return name.map(\.asciiLowercased) }
        // Before the work of converting each label.
        if name.count > longestInternationalName { throw Target.Problem(reason: "the host is longer than 253 bytes") }
        guard let text = String(validating: name, as: UTF8.self) else {
            throw Target.Problem(reason: "the host is not UTF-8")
        }
        var result: [UInt8] = []
        // The dots of UTS #46 §2.3, which include those of other scripts.
        let labels = text.unicodeScalars.split(omittingEmptySubsequences: false) {
            [".", "\u{3002}", "\u{FF0E}", "\u{FF61}"].contains($0)
        }
        for (index, label) in labels.enumerated() {
            if index > 0 { result.append(UInt8(ascii: ".")) }
            // ASCII labels are not converted, because IDNA would refuse labels in use such as `r3---sn-x`.
            let isASCII = label.allSatisfy(\.isASCII)
            result += isASCII ? String(label).utf8.map(\.asciiLowercased) : try InternationalLabel.ascii(String(label))
        }
        guard result.allSatisfy({ isPlain($0) }) else {
            throw Target.Problem(reason: "the host contains a character that is invalid after conversion to ASCII")
        }
        return result
    }

    /// Checks each label of a lower-case name and returns the last one.
    private static func lastLabel(of name: ArraySlice<UInt8>) throws(Target.Problem) -> ArraySlice<UInt8> {
        if name.isEmpty { throw Target.Problem(reason: "the URL has an empty host") }
        if name.count > 253 { throw Target.Problem(reason: "the host is longer than 253 bytes") }
        var rest = name
        while true {
            let label = rest.prefix { $0 != UInt8(ascii: ".") }
            if label.isEmpty { throw Target.Problem(reason: "the host has an empty label") }
            if label.count > 63 { throw Target.Problem(reason: "the host has a label longer than 63 bytes") }
            if label.starts(with: "xn--".utf8) {
                guard try InternationalLabel.ascii(String(decoding: label, as: UTF8.self)).elementsEqual(label) else {
                    throw Target.Problem(reason: "the host has a label that IDNA writes in another form (UTS #46)")
                }
            }
            if label.endIndex == name.endIndex { return label }
            rest = rest[(label.endIndex + 1)...]
        }
    }

    // MARK: IPv6

    private init(address bytes: ArraySlice<UInt8>, isInURL: Bool) throws(Target.Problem) {
        let literal = bytes.prefix { $0 != UInt8(ascii: "%") }
        guard let address = IPv6Address(literal) else {
            throw Target.Problem(reason: "the host in brackets is no IPv6 address")
        }
        isAddress = true
        let zone = bytes[literal.endIndex...]
        if zone.isEmpty {
            text = address.text
            urlText = "[\(text)]"
            return
        }
        guard address.isLinkLocal else {
            throw Target.Problem(reason: "the IPv6 address has a zone, and is not link-local (fe80::/10)")
        }
        // The standard form in a URL is `%25eth0` (RFC 6874); the usual one is `%eth0`.
        let isEscaped = isInURL && zone.starts(with: "%25".utf8)
        let name = try Self.zone(isEscaped ? zone.dropFirst(3) : zone.dropFirst())
        text = "\(address.text)%\(name)"
        urlText = "[\(address.text)%25\(name)]"
    }

    /// Parses the name of an interface, whose case matters, or its number. The number of an interface of this system
    /// becomes its name, so that both are one host for trust and cookies; another one is written without leading zeros.
    private static func zone(_ bytes: ArraySlice<UInt8>) throws(Target.Problem) -> String {
        // The maximum length of an interface name on Linux.
        guard !bytes.isEmpty, bytes.count <= 15, bytes.allSatisfy({ ByteSet.unreserved.contains($0) }) else {
            throw Target.Problem(reason: "the IPv6 address has a malformed zone")
        }
        let name = String(decoding: bytes, as: UTF8.self)
        guard bytes.allSatisfy(\.isASCIIDigit) else { return name }
        guard let number = UInt32(name), number > 0 else {
            throw Target.Problem(reason: "the IPv6 address has a malformed zone")
        }
        if unsafe if_nametoindex(name) != 0 { return name }
        var buffer = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        guard unsafe if_indextoname(number, &buffer) != nil else { return String(number) }
        let known = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return known.allSatisfy { ByteSet.unreserved.contains($0) }
            ? String(decoding: known, as: UTF8.self) : String(number)
    }
}

extension CanonicalHost: CustomStringConvertible {
    /// The same as ``text``.
    package var description: String { text }
}

extension Target {
    /// The scheme, host, port and user information, which all targets of one base URL share.
    final class Authority: Sendable {
        let isSecure: Bool
        let host: String
        let port: Int
        let user: String?
        let password: String?
        /// The origin, `https://host:port`, always with the port.
        let origin: String
        /// The part before the path: `https://host`, with the port only if it is not the default.
        let root: String
        /// The fragment. It belongs to one URL and not to a base, but is rare, so that it is no field of every target.
        let fragment: String?

        init(_ other: Authority, fragment: String?) {
            isSecure = other.isSecure
            host = other.host
            port = other.port
            user = other.user
            password = other.password
            origin = other.origin
            root = other.root
            self.fragment = fragment
        }

        /// Parses `user:password@host:port`.
        init(_ bytes: ArraySlice<UInt8>, isSecure: Bool) throws(Problem) {
            self.isSecure = isSecure
            fragment = nil
            var hostAndPort = bytes
            if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
                (user, password) = try Self.userInfo(bytes[..<at])
                hostAndPort = bytes[(at + 1)...]
            } else {
                (user, password) = (nil, nil)
            }
            let (host, statedPort) = try Self.parse(hostAndPort)
            self.host = host.text
            let defaultPort = isSecure ? 443 : 80
            let port = statedPort ?? defaultPort
            self.port = port
            var text = Array((isSecure ? "https://" : "http://").utf8)
            text += host.urlText.utf8
            let withoutPort = String(decoding: text, as: UTF8.self)
            text.append(UInt8(ascii: ":"))
            text += String(port).utf8
            origin = String(decoding: text, as: UTF8.self)
            root = port == defaultPort ? withoutPort : origin
        }

        /// Parses `host:port`; the port is nil if none is stated.
        static func parse(_ hostAndPort: ArraySlice<UInt8>) throws(Problem) -> (host: CanonicalHost, port: Int?) {
            let (name, digits) = try split(hostAndPort)
            return (try CanonicalHost(url: name), try port(digits))
        }

        /// Splits at the colon before the port, if there is one.
        private static func split(
            _ bytes: ArraySlice<UInt8>
        ) throws(Problem) -> (name: ArraySlice<UInt8>, port: ArraySlice<UInt8>) {
            let colon = UInt8(ascii: ":")
            var nameEnd = bytes.firstIndex(of: colon) ?? bytes.endIndex
            if bytes.first == UInt8(ascii: "[") {
                guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else {
                    throw Problem(reason: "the host's bracket is not closed")
                }
                nameEnd = bracket + 1
            } else if bytes[nameEnd...].dropFirst().contains(colon) {
                throw Problem(reason: "the host has several colons; write an IPv6 address in brackets, as in [::1]")
            }
            guard nameEnd > bytes.startIndex else { throw Problem(reason: "the URL has an empty host") }
            if nameEnd == bytes.endIndex { return (bytes, []) }
            guard bytes[nameEnd] == colon else { throw Problem(reason: "unexpected text after ] in the host") }
            return (bytes[..<nameEnd], bytes[(nameEnd + 1)...])
        }

        /// Parses the port; nil without digits, because `http://host:/` has the default port (RFC 3986 §3.2.3).
        private static func port(_ digits: ArraySlice<UInt8>) throws(Problem) -> Int? {
            if digits.isEmpty { return nil }
            // The text is not quoted, because it can be a password that contains a slash.
            guard digits.allSatisfy(\.isASCIIDigit), let port = Int(String(decoding: digits, as: UTF8.self)),
                (1...65_535).contains(port)
            else { throw Problem(reason: "the URL's port is not a number from 1 to 65535") }
            return port
        }

        /// Parses the user information. A control character cannot be sent (RFC 7617 §2). A backslash or an `@` that is
        /// not percent-encoded is refused, because parsers then disagree on where the host begins.
        private static func userInfo(_ bytes: ArraySlice<UInt8>) throws(Problem) -> (String?, String?) {
            if bytes.contains(where: { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "@") }) {
                throw Problem(
                    reason: "the URL's user information contains a backslash or an @, which must be percent-encoded")
            }
            let parts = bytes.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            let decoded = parts.map { Reference.percentDecoded($0) }
            if decoded.contains(where: { $0.contains(where: \.isASCIIControl) }) {
                throw Problem(reason: "the URL's user information contains a control character")
            }
            let user = decoded.first.map { String(decoding: $0, as: UTF8.self) }
            if decoded.count < 2 { return (user?.isEmpty == true ? nil : user, nil) }
            return (user, String(decoding: decoded[1], as: UTF8.self))
        }
    }
}
