extension Headers {
    /// Whether the value of a header is a secret, by its name: it stands in no description, error, log or recording, is part
    /// of what tells users apart in caches, and does not follow a redirect to another origin.
    ///
    /// A name with one of the marks in it is secret, unless it is one of the exceptions: a new header is hidden too often
    /// rather than not at all.
    package static func isSecret(_ name: String) -> Bool {
        let bytes = name.utf8.map(\.asciiLowercased)
        guard secretMarks.contains(where: { bytes.hold($0) }) else { return false }
        let name = String(decoding: bytes, as: UTF8.self)
        return !publicNames.contains(name) && !publicPrefixes.contains { name.hasPrefix($0) }
    }

    /// Parts of names that carry credentials: `Authorization`, `Set-Cookie`, `X-API-Key`, `X-Auth-Token` and their kin.
    private static let secretMarks: [[UInt8]] = [
        "auth", "key", "token", "secret", "session", "password", "passwd", "passphrase", "passcode", "credential",
        "cookie", "jwt", "principal", "signature", "assertion", "bearer", "saml", "csrf", "xsrf", "pwd",
    ].map { Array($0.utf8) }

    /// Names with a mark in them whose values are public.
    private static let publicNames: Set<String> = [
        "access-control-allow-credentials", "author", "authority", "authors", "idempotency-key", "keywords",
        "optional-www-authenticate", "proxy-authenticate", "proxy-authentication-info", "authentication-info",
        "public-key-pins", "public-key-pins-report-only", "surrogate-key", "surrogate-keys", "www-authenticate",
        "x-author", "x-authors", "x-cache-key", "x-idempotency-key", "x-keywords",
    ]

    /// Beginnings of names whose values are public: handshakes, and budgets that are counted in tokens.
    private static let publicPrefixes = ["ratelimit-", "sec-websocket-", "x-ratelimit-"]
}

extension [UInt8] {
    /// Whether the other bytes stand in these, one after the other.
    fileprivate func hold(_ other: [UInt8]) -> Bool {
        guard let first = other.first, count >= other.count else { return other.isEmpty }
        return (0...(count - other.count)).contains { start in
            self[start] == first && self[start...].starts(with: other)
        }
    }
}

extension Headers.Field {
    /// The value as descriptions and logs may show it: without a secret, without control characters, and not too long.
    package var printableValue: String {
        if Headers.isSecret(name) { return "<redacted>" }
        switch name.lowercased() {
        case "location", "content-location", "referer", "origin":
            return Target.redact(value)
        case "link":
            // `<url>; rel=next`: the URLs stand in brackets.
            return value.split(separator: "<", omittingEmptySubsequences: false).enumerated().map { index, part in
                guard index > 0, let end = part.firstIndex(of: ">") else { return String(part).printable(limit: 400) }
                return Target.redact(String(part[..<end])) + String(part[end...]).printable(limit: 400)
            }.joined(separator: "<")
        case "refresh":
            // `5; url=https://…`
            guard let equals = value.firstIndex(of: "=") else { return value.printable(limit: 400) }
            let end = value.index(after: equals)
            return String(value[..<end]).printable(limit: 400) + Target.redact(String(value[end...]))
        default:
            return value.printable(limit: 4096)
        }
    }
}
