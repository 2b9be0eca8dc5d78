#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cookie as a store keeps it: a name and a value, and where and how long they are sent (RFC 6265bis §5.7).
///
/// Made by a server's `Set-Cookie`, or by hand. Its descriptions never show the value.
public struct Cookie: Sendable, Hashable, Codable {
    /// The name; may be empty, as RFC 6265bis has it, if the value is not.
    public let name: String
    /// The value as the server sent it, quotes included. Bytes that are not UTF-8 appear as ISO-8859-1 characters, and
    /// are sent back unchanged.
    public let value: String
    /// The host, or the domain whose hosts get the cookie: in lower case, without a leading dot.
    public let domain: String
    /// Whether only the host ``domain`` gets the cookie, and not the hosts below it.
    public let isHostOnly: Bool
    /// The path under which the cookie is sent. Begins with `/`.
    public let path: String
    /// Whether the cookie is sent over https alone.
    public let isSecure: Bool
    /// Whether the server wants the cookie hidden from scripts. It has no effect on requests.
    public let isHTTPOnly: Bool
    /// What the server says of requests that come from another site; nil where it says nothing.
    public let sameSite: SameSite?
    /// When the cookie ends, at most 400 days after it was stored; nil for one that lives as long as its store.
    public let expires: Date?
    /// When the cookie was first stored: cookies with paths of equal length are sent in this order.
    public internal(set) var creation: Date
    /// The encoding in which the bytes of name, value and path were read; nil for UTF-8.
    let encoding: ByteEncoding?

    /// The representation of bytes that are not UTF-8 in a text.
    enum ByteEncoding: String, Sendable, Hashable, Codable {
        /// Each byte is the Unicode scalar with its number.
        case latin1
    }

    /// A cookie by hand.
    ///
    /// - Parameters:
    ///   - domain: The host. With `isHostOnly` false, the hosts below it receive the cookie, too. A store keeps the
    ///     host in its canonical form, such as `xn--bcher-kva.example` for `bücher.example`.
    ///   - expires: nil for a cookie that is not written to a file.
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

    /// Whether a request that comes from another site carries the cookie.
    ///
    /// What a client can know of it: only a redirect brings a request from one site to another.
    public enum SameSite: String, Sendable, Hashable, Codable {
        /// Never.
        case strict
        /// Only if its method is safe. A cookie that says nothing is taken for this.
        case lax
        /// Always; the cookie must then be ``Cookie/isSecure``.
        case none
    }

    /// Whether the cookie has ended.
    public func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether both have the same name, domain and path, so that one replaces the other in a store.
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
    /// Name, domain and path; the value is left out.
    public var description: String {
        "\(name.printable(limit: 80))=<redacted>; \(isHostOnly ? "Host" : "Domain")=\(domain.printable()); Path=\(path.printable())"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Nothing: what `dump` would show is the value.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension Cookie {
    /// Why a cookie is not stored (RFC 6265bis §5.6 and §5.7).
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
