extension Target {
    /// Scheme, host, port and user information: what all targets of one base share.
    final class Authority: Sendable {
        let isSecure: Bool
        let host: String
        let port: Int
        let user: String?
        let password: String?
        /// `https://host:port`, with the port.
        let origin: String
        /// What stands before the path: `https://host`, with the port only if it is not the default.
        let root: String
        /// What stood behind the `#`: of one URL and not of a base, but so seldom there that it is no field of every target.
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
            let (name, portDigits) = try Self.split(hostAndPort)
            let isAddress = name.first == UInt8(ascii: "[")
            let written = isAddress ? try IPv6Literal.checked(name) : try Self.checkedName(name)
            let defaultPort = isSecure ? 443 : 80
            let port = try Self.port(portDigits) ?? defaultPort
            self.port = port
            var text = Array((isSecure ? "https://" : "http://").utf8)
            text += written.utf8
            let withoutPort = String(decoding: text, as: UTF8.self)
            text.append(UInt8(ascii: ":"))
            text += String(port).utf8
            origin = String(decoding: text, as: UTF8.self)
            root = port == defaultPort ? withoutPort : origin
            host = isAddress ? IPv6Literal.address(of: written) : written
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
                throw Problem(reason: "the host has several colons; an IPv6 address stands in brackets, as in [::1]")
            }
            guard nameEnd > bytes.startIndex else { throw Problem(reason: "the URL has an empty host") }
            if nameEnd == bytes.endIndex { return (bytes, []) }
            guard bytes[nameEnd] == colon else { throw Problem(reason: "behind the host's bracket stands no port") }
            return (bytes[..<nameEnd], bytes[(nameEnd + 1)...])
        }

        /// nil if there are no digits: `http://host:/` has the default port (RFC 3986 §3.2.3).
        private static func port(_ digits: ArraySlice<UInt8>) throws(Problem) -> Int? {
            if digits.isEmpty { return nil }
            // What stands there is not quoted: it may be a password with a slash in it.
            guard digits.allSatisfy(\.isASCIIDigit), let port = Int(String(decoding: digits, as: UTF8.self)),
                (1...65_535).contains(port)
            else { throw Problem(reason: "the URL's port is not a number from 1 to 65535") }
            return port
        }

        /// A name in lower case, percent-decoded, free of what no resolver takes.
        private static func checkedName(_ bytes: ArraySlice<UInt8>) throws(Problem) -> String {
            var name = bytes.contains(UInt8(ascii: "%")) ? Reference.percentDecoded(bytes) : Array(bytes)
            for index in name.indices {
                guard ByteSet.unreserved.contains(name[index]) || name[index] >= 0x80 else {
                    throw Problem(reason: "the host contains a character that a host cannot have")
                }
                name[index] = name[index].asciiLowercased
            }
            // Punycode is the transport's matter; the text must at least be text.
            guard let text = String(validating: name, as: UTF8.self) else {
                throw Problem(reason: "the host is not UTF-8")
            }
            return text
        }

        /// A user name or password with a control character cannot be sent (RFC 7617 §2).
        private static func userInfo(_ bytes: ArraySlice<UInt8>) throws(Problem) -> (String?, String?) {
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

    /// The address in brackets of RFC 3986 §3.2.2, with the zone of RFC 6874.
    enum IPv6Literal {
        /// The literal in lower case, with its brackets.
        static func checked(_ literal: ArraySlice<UInt8>) throws(Problem) -> String {
            let inner = literal.dropFirst().dropLast()
            let address = inner.prefix { $0 != UInt8(ascii: "%") }
            guard isAddress(address) else { throw Problem(reason: "the host in brackets is no IPv6 address") }
            let zone = inner[address.endIndex...]
            if zone.isEmpty { return String(decoding: literal.map(\.asciiLowercased), as: UTF8.self) }
            // `%25eth0` is the standard's form, `%eth0` the usual one. A zone's name is case-sensitive.
            let name = zone.starts(with: "%25".utf8) ? zone.dropFirst(3) : zone.dropFirst()
            guard !name.isEmpty, name.allSatisfy({ ByteSet.unreserved.contains($0) }) else {
                throw Problem(reason: "the IPv6 address has a malformed zone")
            }
            let text = String(decoding: address.map(\.asciiLowercased), as: UTF8.self)
            return "[\(text)%25\(String(decoding: name, as: UTF8.self))]"
        }

        /// The address without brackets, its zone behind a plain `%` as resolvers take it.
        static func address(of literal: String) -> String {
            let inner = literal.dropFirst().dropLast()
            guard let percent = inner.utf8.firstIndex(of: UInt8(ascii: "%")) else { return String(inner) }
            return inner[..<percent] + "%" + inner[percent...].dropFirst(3)
        }

        private static func isAddress(_ bytes: ArraySlice<UInt8>) -> Bool {
            let colon = UInt8(ascii: ":")
            var groups = bytes.split(separator: colon, omittingEmptySubsequences: false)
            guard groups.count >= 3 else { return false }
            // `::` at an end leaves two empty groups there; one of them is only the split's.
            if groups[0].isEmpty {
                guard groups[1].isEmpty else { return false }
                groups.removeFirst()
            }
            if groups[groups.count - 1].isEmpty {
                guard groups[groups.count - 2].isEmpty else { return false }
                groups.removeLast()
            }
            var needed = 8
            if let last = groups.last, last.contains(UInt8(ascii: ".")) {
                guard isIPv4(last) else { return false }
                groups.removeLast()
                needed = 6
            }
            let gaps = groups.count { $0.isEmpty }
            let areHex = groups.allSatisfy { $0.count <= 4 && $0.allSatisfy { $0.hexValue != nil } }
            return areHex && (gaps == 0 ? groups.count == needed : gaps == 1 && groups.count <= needed)
        }

        private static func isIPv4(_ bytes: ArraySlice<UInt8>) -> Bool {
            let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            return parts.count == 4 && parts.allSatisfy { UInt8(String(decoding: $0, as: UTF8.self)) != nil }
        }
    }
}
