/// Where a request goes: an absolute http or https URL, checked and in the form in which it is sent.
///
/// Parsed by ourselves, because Foundation's URL takes microseconds on the hot path and accepts what no server gets.
/// The form is normalized (RFC 3986 §6.2): the scheme in lower case, a canonical host (``CanonicalHost``), no default
/// port, no dot segments, no fragment, and a path of at least `/`. ``string`` never contains user information. The
/// transport must send the path unchanged.
package struct Target: Sendable {
    /// Why a text is no URL that can be requested. Credentials in the text are not in the reason.
    package struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        package let reason: String

        package var description: String { reason }
    }

    /// The URL as it is sent, without user information and fragment. It may hold secrets in its query.
    package let string: String

    /// Shared by all targets of one base: a resolved target costs one string and one reference.
    let authority: Authority

    init(string: String, authority: Authority) {
        self.string = string
        self.authority = authority
    }

    /// Parses an absolute URL.
    ///
    /// Characters that a path or a query must not hold are percent-encoded, `%XX` is kept, and a lone `%` becomes
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
        // Most URLs come in normal form, and the text itself is what is sent.
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
    /// The host in its canonical form, ASCII and without a dot at the end; an IPv6 address without its brackets.
    package var host: String { authority.host }
    /// The port, explicit or the scheme's default.
    package var port: Int { authority.port }
    /// `https://host:port`, always with the port: what connections and credentials belong to.
    package var origin: String { authority.origin }
    /// The user name before the host, percent-decoded.
    package var user: String? { authority.user }
    /// The password before the host, percent-decoded.
    package var password: String? { authority.password }

    /// What stood behind the `#`, percent-encoded; never sent. nil without one.
    package var fragment: String? { authority.fragment }

    /// The same URL with another fragment.
    func with(fragment: String?) -> Target {
        Target(string: string, authority: Authority(authority, fragment: fragment))
    }

    /// What stands in the request line: the path, and the query with its `?`.
    package var pathAndQuery: String { String(tail) }

    /// The path, at least `/`, percent-encoded.
    // By bytes: characters cost twenty times as much, and it is asked for at every picture that is bound.
    package var path: String { String(Substring(tail.utf8.prefix { $0 != Reference.query })) }

    /// The query without its `?`, percent-encoded; nil without a `?`.
    package var query: String? {
        guard let mark = string.utf8.firstIndex(of: Reference.query) else { return nil }
        return String(string[string.utf8.index(after: mark)...])
    }

    private var tail: Substring {
        string[string.utf8.index(string.startIndex, offsetBy: authority.root.utf8.count)...]
    }

    /// A target with further query items, behind those that the URL has. A nil value is a bare name without `=`.
    package func appending(queryItems: [(String, String?)]) -> Target {
        appending(encodedQuery: QueryEncoding.encode(queryItems))
    }

    /// A target with further query items, behind those that the URL has.
    package func appending(_ query: Request.Query) -> Target {
        appending(encodedQuery: query.encoded)
    }

    private func appending(encodedQuery: String) -> Target {
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
        left.string == right.string && left.user == right.user && left.password == right.password
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(string) }
}
