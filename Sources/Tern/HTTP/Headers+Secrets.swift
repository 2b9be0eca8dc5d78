extension Headers {
    /// Returns whether the value of a header is a secret, judged by its name. Such a value appears in no description,
    /// error, log or recording, helps to tell users apart in caches, and does not follow a redirect to another origin.
    ///
    /// A name that contains one of the marks, or has one of the words, is secret, unless it is one of the exceptions.
    /// An unknown header is therefore more likely to be hidden than shown.
    package static func isSecret(_ name: String) -> Bool {
        let bytes = name.utf8.map(\.asciiLowercased)
        guard secretMarks.contains(where: { bytes.containsSubsequence($0) }) || hasSecretWord(bytes) else {
            return false
        }
        let name = String(decoding: bytes, as: UTF8.self)
        return !publicNames.contains(name) && !publicPrefixes.contains { name.hasPrefix($0) }
    }

    /// Parts of names that carry credentials, as in `Authorization`, `Set-Cookie`, `X-API-Key` and `X-Auth-Token`.
    private static let secretMarks: [[UInt8]] = [
        "auth", "key", "token", "secret", "session", "password", "passwd", "passphrase", "passcode", "credential",
        "cookie", "jwt", "principal", "signature", "assertion", "bearer", "saml", "csrf", "xsrf", "pwd", "hmac",
    ].map { Array($0.utf8) }

    /// Words that carry credentials where they are a whole part of a name, as in `X-Sig`, `X-Otp` and `Client-Cert`
    /// (RFC 9440). Within other words they are common, as in `design`, `compass` and `accessed`.
    private static let secretWords: [[UInt8]] = [
        "sig", "pass", "otp", "totp", "pin", "sid", "login", "cert", "access",
    ].map { Array($0.utf8) }

    private static func hasSecretWord(_ name: [UInt8]) -> Bool {
        name.split { !$0.isASCIILetter && !$0.isASCIIDigit }.contains { word in
            secretWords.contains { word.elementsEqual($0) }
        }
    }

    /// Names that contain a mark but have public values.
    private static let publicNames: Set<String> = [
        "author", "authority", "authors", "idempotency-key", "keywords",
        "optional-www-authenticate", "proxy-authenticate", "proxy-authentication-info", "authentication-info",
        "public-key-pins", "public-key-pins-report-only", "surrogate-key", "surrogate-keys", "www-authenticate",
        "x-author", "x-authors", "x-cache-key", "x-idempotency-key", "x-keywords",
    ]

    /// The names of headers that identify a single request in a log or a trace, or its priority, and do not change the
    /// response.
    package static let tracingNames = [
        "traceparent", "tracestate", "baggage", "X-Request-ID", "X-Correlation-ID", "X-Amzn-Trace-Id",
        "X-Cloud-Trace-Context", "X-B3-TraceId", "X-B3-SpanId", "X-B3-ParentSpanId", "X-B3-Sampled", "Priority",
    ]

    /// Prefixes of names with public values: cross-origin rules, handshakes, and limits that are counted in tokens.
    private static let publicPrefixes = ["access-control-", "ratelimit-", "sec-websocket-", "x-ratelimit-"]
}

extension [UInt8] {
    /// Returns whether these bytes contain the other bytes in sequence.
    fileprivate func containsSubsequence(_ other: [UInt8]) -> Bool {
        guard let first = other.first, count >= other.count else { return other.isEmpty }
        return (0...(count - other.count)).contains { start in
            self[start] == first && self[start...].starts(with: other)
        }
    }
}

extension Headers.Field {
    /// A Boolean value that indicates whether the value is a secret, judged by the name: `Authorization`, `Cookie`,
    /// `X-API-Key` and similar. Tern shows such a value in no description, error, log or recording, and never sends it
    /// to another origin with a redirect. An unknown name is more likely to be taken for a secret than not.
    public var isSecret: Bool { Headers.isSecret(name) }

    /// The value in the form for descriptions and logs: without secrets, without control characters, and of limited
    /// length.
    package var printableValue: String {
        if Headers.isSecret(name) { return "<redacted>" }
        switch name.lowercased() {
        case "location", "content-location", "referer", "origin":
            return Target.redact(value)
        case "link":
            // In `<url>; rel=next`, the URLs are in brackets. By scalars: a bracket followed by a combining mark is one
            // character.
            let parts = value.unicodeScalars.split(separator: "<", omittingEmptySubsequences: false)
            return parts.enumerated().map { index, part in
                guard index > 0, let end = part.firstIndex(of: ">") else { return String(part).printable(limit: 400) }
                return Target.redact(String(part[..<end])) + String(part[end...]).printable(limit: 400)
            }.joined(separator: "<")
        case "refresh":
            // `5; url=https://…`
            let scalars = value.unicodeScalars
            guard let equals = scalars.firstIndex(of: "=") else { return value.printable(limit: 400) }
            let end = scalars.index(after: equals)
            return String(scalars[..<end]).printable(limit: 400) + Target.redact(String(scalars[end...]))
        default:
            return value.printable(limit: 4096)
        }
    }
}
