#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A name and a value, with the hosts and the time that they are sent to and for (RFC 6265bis §5.7).
///
/// Created from a server's `Set-Cookie` field or by the caller. Its descriptions never show the value.
public struct Cookie: Sendable, Hashable, Codable {
    /// The name. It can be empty if the value is not (RFC 6265bis).
    public let name: String
    /// The value as the server sent it, with its quotes. Bytes that are not UTF-8 appear as ISO-8859-1 characters, and
    /// are sent back unchanged.
    public let value: String
    /// The host, or the domain whose hosts receive the cookie, in lower case and without a leading dot.
    public let domain: String
    /// A Boolean value that indicates whether only the host ``domain`` receives the cookie, and not the hosts below it.
    public let isHostOnly: Bool
    /// The path under which the cookie is sent. It begins with `/`.
    public let path: String
    /// A Boolean value that indicates whether the cookie is sent over https only.
    public let isSecure: Bool
    /// A Boolean value that indicates whether the server hides the cookie from scripts. It has no effect on requests.
    public let isHTTPOnly: Bool
    /// The rule for requests that come from another site; nil if the server sets none.
    public let sameSite: SameSite?
    /// The date on which the cookie expires, at most 400 days after it was stored; nil for a cookie that lives as long
    /// as its store.
    public let expires: Date?
    /// The date on which the cookie was first stored. Cookies with paths of equal length are sent in this order.
    public internal(set) var creation: Date
    /// The encoding in which the bytes of name, value and path were read; nil for UTF-8.
    let encoding: ByteEncoding?

    /// The representation of bytes that are not UTF-8 in a text.
    enum ByteEncoding: String, Sendable, Hashable, Codable {
        /// Each byte is the Unicode scalar with its number.
        case latin1
    }

    /// Creates a cookie.
    ///
    /// - Parameters:
    ///   - domain: The host. With `isHostOnly` false, the hosts below it receive the cookie, too. A store keeps the
    ///     host in its canonical form, such as `xn--bcher-kva.example` for `bücher.example`.
    ///   - expires: The date on which the cookie expires; nil for a cookie that is not written to a file.
    public init(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/",
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite? = nil, expires: Date? = nil
    ) {
        self.init(
            name: name, value: value, domain: domain, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires, creation: .distantPast)
    }

    init(
        name: String, value: String, domain: String, isHostOnly: Bool, path: String, isSecure: Bool,
        isHTTPOnly: Bool, sameSite: SameSite?, expires: Date?, creation: Date, encoding: ByteEncoding? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain.lowercased()
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.expires = expires
        self.creation = creation
        self.encoding = encoding
    }

    /// A rule for sending a cookie with requests that come from another site.
    ///
    /// A client can know of one such case only: a redirect from one site to another.
    public enum SameSite: String, Sendable, Hashable, Codable {
        /// The cookie is not sent.
        case strict
        /// The cookie is sent if the request's method is safe. This is the default of a cookie without the attribute.
        case lax
        /// The cookie is sent. It must be ``Cookie/isSecure``.
        case none
    }

    /// Returns whether the cookie has expired.
    public func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// Returns whether two cookies have the same name, domain and path, so that one replaces the other in a store.
    func replaces(_ other: Cookie) -> Bool {
        isHostOnly == other.isHostOnly && domain == other.domain && hasName(of: other)
            && Self.bytes(path, encoding).elementsEqual(Self.bytes(other.path, other.encoding))
    }

    /// Returns whether two cookies have the same name. Names and paths are compared as bytes: U+00E9 and U+0065 U+0301
    /// are not equal.
    func hasName(of other: Cookie) -> Bool {
        Self.bytes(name, encoding).elementsEqual(Self.bytes(other.name, other.encoding))
    }

    /// The bytes of the cookie as it is sent (RFC 6265bis §5.8.3): `name=value`, or the value alone if it has no name.
    var wireBytes: [UInt8] {
        var bytes = Self.bytes(name, encoding)
        if !name.isEmpty { bytes.append(UInt8(ascii: "=")) }
        return bytes + Self.bytes(value, encoding)
    }

    /// The number of bytes in ``wireBytes``.
    var wireCount: Int {
        (name.isEmpty ? 0 : Self.byteCount(name, encoding) + 1) + Self.byteCount(value, encoding)
    }

    static func bytes(_ text: String, _ encoding: ByteEncoding?) -> [UInt8] {
        switch encoding {
        case nil: Array(text.utf8)
        case .latin1: text.unicodeScalars.compactMap { UInt8(exactly: $0.value) }
        }
    }

    static func byteCount(_ text: String, _ encoding: ByteEncoding?) -> Int {
        encoding == nil ? text.utf8.count : text.unicodeScalars.count
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name, domain and path, without the value.
    public var description: String {
        "\(name.printable(limit: 80))=<redacted>; \(isHostOnly ? "Host" : "Domain")=\(domain.printable()); Path=\(path.printable())"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// An empty mirror. Without it, `dump` would show the value.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Cookie {
    /// The reason why a cookie is not stored (RFC 6265bis §5.6 and §5.7).
    public struct Refusal: Error, Sendable, Hashable, CustomStringConvertible {
        /// One sentence, without the cookie's value.
        public let reason: String

        /// The reason.
        public var description: String { reason }

        static let controlCharacter = Refusal(reason: "it contains a control character")
        static let tooLarge = Refusal(reason: "its name and value are longer than 4096 bytes")
        static let empty = Refusal(reason: "it has neither a name nor a value")
        static let malformed = Refusal(reason: "its name, value, domain or path has a form that cannot be sent")
        static let publicSuffix = Refusal(reason: "its domain is a public suffix, under which strangers register")
        static let foreignDomain = Refusal(reason: "its domain is not that of the server that sets it")
        static let nonASCIIDomain = Refusal(reason: "its domain is not ASCII")
        static let insecureOrigin = Refusal(reason: "it is Secure, and came over plain http")
        static let overwritesSecure = Refusal(reason: "it came over plain http, and a Secure cookie has its name")
        static let sameSiteNone = Refusal(reason: "it is SameSite=None without Secure")
        static let securePrefix = Refusal(reason: "its name begins with __Secure-, and it is not Secure")
        static let hostPrefix = Refusal(reason: "its name begins with __Host-, and it is not Secure, host-only, Path=/")
        static let hiddenPrefix = Refusal(reason: "it has no name, and its value poses as a prefixed name")
    }
}

// The rules that every cookie follows by itself.

extension Cookie {
    /// Checks the rules of the prefixes `__Secure-` and `__Host-`. `hasPath` is true if the path was given and is not
    /// the default path.
    func checkPrefixes(hasPath: Bool) throws(Cookie.Refusal) {
        if name.isEmpty {
            if Self.hasPrefix(value, "__secure-") || Self.hasPrefix(value, "__host-") {
                throw .hiddenPrefix
            }
        } else if Self.hasPrefix(name, "__secure-") {
            if !isSecure { throw .securePrefix }
        } else if Self.hasPrefix(name, "__host-") {
            guard isSecure, isHostOnly, hasPath, path == "/" else { throw .hostPrefix }
        }
    }

    /// Returns whether this cookie has no name and a value that, once sent, reads like a cookie with the other's name.
    func impersonatesName(of other: Cookie) -> Bool {
        guard name.isEmpty, let equals = value.utf8.firstIndex(of: UInt8(ascii: "=")) else { return false }
        // Servers remove white space around a name.
        let isSpace = { (scalar: Unicode.Scalar) in scalar.properties.isWhitespace }
        var posed = value[..<equals].unicodeScalars.drop(while: isSpace)
        while let last = posed.last, isSpace(last) { posed.removeLast() }
        return Self.bytes(String(posed), encoding).elementsEqual(Self.bytes(other.name, other.encoding))
    }

    private static func hasPrefix(_ text: String, _ prefix: String) -> Bool {
        text.utf8.lazy.map(\.asciiLowercased).starts(with: prefix.utf8)
    }

    /// Checks that a `Set-Cookie` field could contain the cookie, because a cookie made by the caller can contain
    /// anything.
    func checkForm() throws(Refusal) {
        let separator = UInt8(ascii: ";")
        // The default path is that of the URL, which can contain a semicolon. The path is not sent.
        let isWellFormed =
            [name, value, domain, path].allSatisfy { text in
                text.utf8.allSatisfy { !$0.isASCIIControl || $0 == 0x09 }
            } && [name, value, domain].allSatisfy { !$0.utf8.contains(separator) }
            && !name.utf8.contains(UInt8(ascii: "=")) && !domain.isEmpty && path.utf8.first == Reference.slash
        if !isWellFormed { throw .malformed }
        if name.isEmpty, value.isEmpty { throw .empty }
        if encoding == .latin1, (name + value + path).unicodeScalars.contains(where: { $0.value > 0xFF }) {
            throw .malformed
        }
        if Self.byteCount(name, encoding) + Self.byteCount(value, encoding) > SetCookieField.maximumSize {
            throw .tooLarge
        }
        if sameSite == SameSite.none, !isSecure { throw .sameSiteNone }
    }

    /// Returns the same cookie with the canonical form of its host.
    func withCanonicalDomain() throws(Refusal) -> Cookie {
        // The refusal's reason names the domain as a possible cause.
        guard let host = try? CanonicalHost(domain) else { throw .malformed }
        if host.text == domain { return self }
        return Cookie(
            name: name, value: value, domain: host.text, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires, creation: creation,
            encoding: encoding)
    }

    /// Returns the same cookie with an expiry date of at most `latest`. An unknown creation date becomes `now`.
    func endingBy(_ latest: Date, creation now: Date) -> Cookie {
        Cookie(
            name: name, value: value, domain: domain, isHostOnly: isHostOnly, path: path, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, expires: expires.map { min($0, latest) },
            creation: creation == .distantPast ? now : creation, encoding: encoding)
    }

    /// Returns whether a request from another site carries the cookie. A cookie without the attribute counts as Lax
    /// (RFC 6265bis §5.6.7).
    func isSentAcrossSites(_ method: Request.Method) -> Bool {
        switch sameSite {
        case .strict: false
        case .lax, nil: method.isSafe
        case .some(SameSite.none): true
        }
    }
}
