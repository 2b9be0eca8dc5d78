import Tern

/// Decides which header fields are stored, and which a 304 response replaces (RFC 9111 §3.1, §3.2).
enum StoredFields {
    /// The fields that belong to one connection or one exchange, in lower case: those of RFC 9110 §7.6.1, of proxies
    /// (RFC 9111 §3.1), and of one authentication (RFC 7615). `Set-Cookie` is stored (§7.3). The session takes cookies
    /// from the network alone.
    private static let excluded = [
        "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade", "trailer",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization", "authentication-info",
    ]

    /// The lengths of the excluded names, one bit each.
    private static let excludedLengths = excluded.reduce(into: UInt64(0)) { $0 |= 1 << UInt64($1.utf8.count) }

    /// The fields that describe the stored bytes, in lower case. A 304 does not change them (§3.2).
    private static let descriptive: Set<String> = ["content-length", "content-encoding", "content-range"]

    /// The limits on a stored head: bytes of names and values, and fields.
    static let limits = (bytes: 48 << 10, fields: 500)

    /// Returns the fields to store. A missing or invalid `Date` becomes the time of the response (RFC 9110 §6.6.1).
    static func stored(_ headers: Headers, responseTime: CacheTime) -> Headers {
        let options = connectionOptions(headers)
        var stored = Headers()
        // And a Date.
        stored.reserveCapacity(headers.count + 1)
        for field in headers
        where !isExcluded(field.name) && !options.contains(where: { Headers.namesMatch($0, field.name) }) {
            stored.append(field)
        }
        if CacheDates.time(of: "Date", in: stored, now: responseTime) == nil {
            stored["Date"] = HTTPDate.text(from: responseTime.date)
        }
        return stored
    }

    private static func isExcluded(_ name: String) -> Bool {
        // Most names have a length that no excluded name has.
        let length = name.utf8.count
        guard length < UInt64.bitWidth, excludedLengths & (1 << UInt64(length)) != 0 else { return false }
        return excluded.contains { Headers.namesMatch($0, name) }
    }

    /// The fields that a cache evaluates. `Connection` must not list them (RFC 9110 §7.6.1), and what they forbid holds
    /// all the same.
    private static let evaluated = [
        "Cache-Control", "Vary", "Expires", "Date", "Age", "ETag", "Last-Modified", "Set-Cookie", "No-Vary-Search",
        "Cache-Groups",
    ]

    /// Returns the names that `Connection` lists, except those of fields that are excluded anyway.
    private static func connectionOptions(_ headers: Headers) -> [String] {
        // The value of nearly all servers.
        if headers.hasOnly("keep-alive", for: "Connection") { return [] }
        let options = headers.values(for: "Connection").flatMap { value in
            // The usual value is one name.
            if value.utf8.allSatisfy(ByteSet.token.contains) { return [value] }
            return FieldText.members(value).map { String(decoding: $0, as: UTF8.self) }
        }
        return options.filter { option in !evaluated.contains { Headers.namesMatch($0, option) } }
    }

    /// Returns whether a field sets cookies.
    static func isCookie(_ name: String) -> Bool {
        Headers.namesMatch(name, "Set-Cookie") || Headers.namesMatch(name, "Set-Cookie2")
    }

    /// Returns whether the fields are within the limits.
    static func isWithinLimits(_ headers: Headers) -> Bool {
        headers.count <= limits.fields
            && headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 8 } <= limits.bytes
    }

    /// Returns stored fields with those of a 304 response, or of a 200 response to HEAD, in place of the fields of the
    /// same names (§3.2).
    static func updated(_ stored: Headers, with headers: Headers, responseTime: CacheTime) -> Headers {
        var new = Self.stored(headers, responseTime: responseTime)
        for name in descriptive { new.remove(name) }
        // The rule is part of the key of the stored response.
        new.remove("No-Vary-Search")
        // The age of the stored response ends here; that of the validation begins.
        var result = stored
        result.remove("Age")
        return result.overriding(with: new)
    }

    /// The fields of a 304 response that a cache makes from a stored one, in lower case (RFC 9110 §15.4.5).
    static let ofNotModified: Set<String> = [
        "cache-control", "content-location", "date", "etag", "expires", "vary", "last-modified", "age", "cache-groups",
    ]
}
