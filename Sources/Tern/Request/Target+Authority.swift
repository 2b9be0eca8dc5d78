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
            let host = try CanonicalHost(url: name)
            self.host = host.text
            let defaultPort = isSecure ? 443 : 80
            let port = try Self.port(portDigits) ?? defaultPort
            self.port = port
            var text = Array((isSecure ? "https://" : "http://").utf8)
            text += host.urlText.utf8
            let withoutPort = String(decoding: text, as: UTF8.self)
            text.append(UInt8(ascii: ":"))
            text += String(port).utf8
            origin = String(decoding: text, as: UTF8.self)
            root = port == defaultPort ? withoutPort : origin
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
