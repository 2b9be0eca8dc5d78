/// A host in the canonical form that everything compares: trust policies, cookies, credentials, connections and
/// proxies.
///
/// The form is that of WHATWG's URL standard ("host parsing"): `127.1`, `0x7f.1` and `2130706433` are `127.0.0.1`, an IPv6
/// address is compressed, a name is in lower-case ASCII. Beyond the standard, a dot at the end is dropped, and names that no
/// resolver takes are refused: with an empty label, with a label over 63 bytes or over 253 bytes in all.
package struct CanonicalHost: Sendable, Hashable {
    /// A name, `192.0.2.7`, or `2001:db8::7`; a link-local address may have a zone, as in `fe80::1%eth0`.
    package let text: String
    /// The form in a URL: an IPv6 address is in brackets, and its zone follows `%25`.
    let urlText: String
    /// A Boolean value that indicates whether this is an IPv4 or IPv6 address.
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
                throw Target.Problem(reason: "the host ends in a number and is no IPv4 address")
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

    /// Returns a name in lower case, with its international labels converted. The result is checked like a name that
    /// was written that way.
    private static func ascii(_ name: ArraySlice<UInt8>) throws(Target.Problem) -> [UInt8] {
        guard name.allSatisfy({ $0 >= 0x80 || ByteSet.unreserved.contains($0) }) else {
            throw Target.Problem(reason: "the host contains a character that a host cannot have")
        }
        if name.allSatisfy({ $0 < 0x80 }) { return name.map(\.asciiLowercased) }
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
            throw Target.Problem(reason: "the host stands for one with a character that a host cannot have")
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

    /// Parses the name of an interface, whose case matters, or its number without leading zeros.
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
        return String(number)
    }
}

extension CanonicalHost: CustomStringConvertible {
    /// The same as ``text``.
    package var description: String { text }
}
