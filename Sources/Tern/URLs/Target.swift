/// The destination of a request: an absolute http or https URL, validated and in the form in which it is sent.
///
/// Tern parses URLs itself, because Foundation's URL takes microseconds on the hot path and accepts URLs that no server
/// receives. The form is normalized (RFC 3986 §6.2): the scheme in lower case, a canonical host (``CanonicalHost``), no
/// default port, no dot segments, no fragment, and a path of at least `/`. ``string`` never contains user information.
/// The transport must send the path unchanged.
package struct Target: Sendable {
    /// The reason why a text is not a URL that can be requested. It does not contain credentials of the text.
    package struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        package let reason: String

        package var description: String { reason }
    }

    /// The URL as it is sent, without user information and fragment. Its query can contain secrets.
    package let string: String

    /// The part that all targets of one base URL share. A resolved target costs one string and one reference.
    let authority: Authority

    init(string: String, authority: Authority) {
        self.string = string
        self.authority = authority
    }

    /// Parses an absolute URL.
    ///
    /// Characters that a path or a query must not contain are percent-encoded, `%XX` is kept, and a single `%` becomes
    /// `%25`. A control character anywhere, a scheme other than http and https, an empty or malformed host and a port
    /// outside 1–65535 are problems.
    package init(absolute: String) throws(Problem) {
        do {
            self = try Self.parse(absolute)
        } catch {
            throw Problem(reason: "\(error.reason): \"\(Self.redact(absolute))\"")
        }
    }

    private static func parse(_ text: String) throws(Problem) -> Target {
        let bytes = Array(text.utf8)
        guard let schemeEnd = Reference.schemeEnd(bytes) else {
            throw Problem(reason: "the URL has no scheme, such as https://")
        }
        let isSecure = Reference.matches(bytes[..<schemeEnd], "https")
        guard isSecure || Reference.matches(bytes[..<schemeEnd], "http") else {
            let name = String(decoding: bytes[..<schemeEnd].map(\.asciiLowercased), as: UTF8.self)
            throw Problem(reason: "the scheme \(name) is not supported, only http and https are")
        }
        let start = schemeEnd + 3
        guard start <= bytes.count, bytes[start - 2] == Reference.slash, bytes[start - 1] == Reference.slash else {
            throw Problem(reason: "the URL has no host: after the scheme must come //")
        }
        var end = start
        while end < bytes.count, !Reference.endsAuthority(bytes[end]) { end += 1 }
        let authority = try Authority(bytes[start..<end], isSecure: isSecure)
        if let fragment = Reference.fragment(of: bytes[end...]) {
            let whole = try parse(String(decoding: bytes.prefix { $0 != Reference.hash }, as: UTF8.self))
            return whole.with(fragment: fragment)
        }
        guard end < bytes.endIndex, bytes[end] == Reference.slash else {
            let tail = try Reference.normalized([Reference.slash] + bytes[end...])
            return Target(string: authority.root + String(decoding: tail, as: UTF8.self), authority: authority)
        }
        let tail = try Reference.normalized(bytes[end...])
        // Most URLs are in normal form, and their text is sent unchanged.
        let isNormal = tail.startIndex == end && tail.endIndex == bytes.endIndex && text.hasPrefix(authority.root)
        if isNormal, authority.root.utf8.count == end { return Target(string: text, authority: authority) }
        return Target(string: authority.root + String(decoding: tail, as: UTF8.self), authority: authority)
    }
}

extension Target {
    /// `http` or `https`.
    package var scheme: String { authority.isSecure ? "https" : "http" }
    /// Whether the scheme is https.
    package var isSecure: Bool { authority.isSecure }
    /// The host in its canonical form: ASCII without a dot at the end. An IPv6 address has no brackets.
    package var host: String { authority.host }
    /// The port: explicit, or the scheme's default.
    package var port: Int { authority.port }
    /// The origin, `https://host:port`, always with the port. Connections and credentials belong to it.
    package var origin: String { authority.origin }
    /// The user name before the host, percent-decoded.
    package var user: String? { authority.user }
    /// The password before the host, percent-decoded.
    package var password: String? { authority.password }

    /// The text after `#`, percent-encoded. It is never sent; nil without one.
    package var fragment: String? { authority.fragment }

    /// Returns the same URL with another fragment.
    func with(fragment: String?) -> Target {
        Target(string: string, authority: Authority(authority, fragment: fragment))
    }

    /// The request target: the path, and the query with its `?`.
    package var pathAndQuery: String { String(tail) }

    /// The path, at least `/`, percent-encoded.
    // By bytes, because characters cost twenty times as much, and each bound image reads the path.
    package var path: String { String(Substring(tail.utf8.prefix { $0 != Reference.query })) }

    /// The query without its `?`, percent-encoded; nil without a `?`.
    package var query: String? {
        guard let mark = string.utf8.firstIndex(of: Reference.query) else { return nil }
        return String(string[string.utf8.index(after: mark)...])
    }

    /// The number of bytes before the path.
    var pathStart: Int { authority.root.utf8.count }

    /// The scheme, the host and the port as they are sent: without the zone of an IPv6 address, which means nothing to
    /// another host (RFC 6874 §4).
    var rootWithoutZone: String {
        var root = authority.root
        guard let zone = root.utf8.firstIndex(of: UInt8(ascii: "%")),
            let bracket = root.utf8.firstIndex(of: UInt8(ascii: "]"))
        else { return root }
        root.removeSubrange(zone..<bracket)
        return root
    }

    /// The URL as a proxy receives it, without the zone of an IPv6 address.
    var stringForProxy: String {
        authority.root.utf8.contains(UInt8(ascii: "%")) ? rootWithoutZone + pathAndQuery : string
    }

    private var tail: Substring { string[string.utf8.index(string.startIndex, offsetBy: pathStart)...] }

    /// Returns a target with further query items after the existing ones. A nil value is a bare name without `=`.
    package func appending(queryItems: [(String, String?)]) -> Target {
        appending(encodedQuery: QueryEncoding.encode(queryItems))
    }

    /// Returns a target with a query after the existing one. The query is encoded.
    func appending(encodedQuery: String) -> Target {
        if encodedQuery.isEmpty { return self }
        let last = string.utf8.last
        let separator =
            if last == Reference.query || last == UInt8(ascii: "&") && string.utf8.contains(Reference.query) {
                ""
            } else {
                string.utf8.contains(Reference.query) ? "&" : "?"
            }
        return Target(string: string + separator + encodedQuery, authority: authority)
    }
}

extension Target: Hashable {
    package static func == (left: Target, right: Target) -> Bool {
        left.string == right.string && isSame(left.user, right.user) && isSame(left.password, right.password)
    }

    private static func isSame(_ left: String?, _ right: String?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.hasSameBytes(as: right)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(string) }
}

extension Target: CustomStringConvertible, CustomReflectable {
    /// The URL for errors and logs, without user information and query values.
    package var description: String { Self.redact(string) }

    /// Returns the URL without possible secrets other than the revealed ones.
    ///
    /// - Parameter limit: The maximum number of characters.
    package func description(revealing revealed: RevealedValues, limit: Int = 400) -> String {
        revealed.isAll ? string.printable(limit: limit) : Self.redact(string, revealing: revealed, limit: limit)
    }

    /// An empty mirror. Without it, `dump` would show the whole URL.
    package var customMirror: Mirror { Mirror(self, children: [:]) }

    /// Returns a text, whether it is a URL or not, without the possible secrets of a URL: user information, query
    /// values and fragment. The result has no control characters.
    ///
    /// - Parameters:
    ///   - revealed: The query parameters whose values stay.
    ///   - limit: The maximum number of characters.
    package static func redact(_ text: String, revealing revealed: RevealedValues = .none, limit: Int = 400) -> String {
        let scalars = text.unicodeScalars
        let end = scalars.firstIndex { $0 == "?" || $0 == "#" } ?? scalars.endIndex
        var result = redactedAuthority(String(text[..<end]))
        if end < scalars.endIndex, scalars[end] == "?" {
            let query = text[scalars.index(after: end)...].unicodeScalars.prefix { $0 != "#" }
            result += "?" + redactedQuery(String(query), revealing: revealed)
        }
        return result.printable(limit: limit)
    }

    /// Keeps the names of the items, which identify the call.
    private static func redactedQuery(_ query: String, revealing revealed: RevealedValues) -> String {
        // By scalars: `=` followed by a combining mark is one character, which is no `=`.
        let items = query.unicodeScalars.split(separator: "&", omittingEmptySubsequences: false)
        return items.map { item in
            guard let equals = item.firstIndex(of: "=") else { return String(item) }
            let name = String(item[..<equals])
            let decoded = String(decoding: Reference.percentDecoded(Array(name.utf8)[...]), as: UTF8.self)
            if revealed.contains(decoded) { return String(item) }
            return name + "=<redacted>"
        }.joined(separator: "&")
    }

    private static func redactedAuthority(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var start = 0
        if let colon = Reference.schemeEnd(bytes), bytes[colon...].dropFirst().starts(with: "//".utf8) {
            start = colon + 3
        } else if bytes.starts(with: "//".utf8) {
            start = 2
        }
        let end = bytes[start...].firstIndex(of: Reference.slash) ?? bytes.endIndex
        let authority = bytes[start..<end]
        let path = redactedPath(bytes[end...])
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let before = String(decoding: bytes[..<start], as: UTF8.self)
            return before + "<redacted>" + String(decoding: bytes[at..<end], as: UTF8.self) + path
        }
        // `http://user:pass/word@host`: a slash that is not encoded ends the authority inside the password.
        guard start > 0, let colon = authority.lastIndex(of: UInt8(ascii: ":")), authority.last != UInt8(ascii: "]"),
            !authority[colon...].dropFirst().allSatisfy(\.isASCIIDigit)
        else {
            return String(decoding: bytes[..<end], as: UTF8.self) + path
        }
        return String(decoding: bytes[...colon], as: UTF8.self) + "<redacted>"
    }

    /// Redacts `http:/user:password@host` and `http://http://user:password@host`, in which a wrong number of slashes
    /// makes the user information a part of the path.
    private static func redactedPath(_ path: ArraySlice<UInt8>) -> String {
        guard let at = path.lastIndex(of: UInt8(ascii: "@")) else { return String(decoding: path, as: UTF8.self) }
        // The colon of a scheme is not one.
        let colon = path[..<at].indices.first {
            path[$0] == UInt8(ascii: ":") && path[path.index(after: $0)] != Reference.slash
        }
        guard let colon else { return String(decoding: path, as: UTF8.self) }
        let start = path[..<colon].lastIndex(of: Reference.slash).map { $0 + 1 } ?? path.startIndex
        let before = String(decoding: path[..<start], as: UTF8.self)
        return before + "<redacted>" + String(decoding: path[at...], as: UTF8.self)
    }
}
