extension Target: CustomStringConvertible, CustomReflectable {
    /// The URL without user information and with the values of its query hidden, as errors and logs may show it.
    package var description: String { Self.redact(string) }

    /// Nothing beside ``description``: `dump` would show the whole URL.
    package var customMirror: Mirror { Mirror(self, children: [:]) }

    /// A text that may or may not be a URL, without what could be a secret in one: user information, the values of
    /// the query, the fragment. Without control characters, and at most 400 characters.
    package static func redact(_ text: String) -> String {
        let scalars = text.unicodeScalars
        let end = scalars.firstIndex { $0 == "?" || $0 == "#" } ?? scalars.endIndex
        var result = redactedAuthority(String(text[..<end]))
        if end < scalars.endIndex, scalars[end] == "?" {
            let query = text[scalars.index(after: end)...].unicodeScalars.prefix { $0 != "#" }
            result += "?" + redactedQuery(String(query))
        }
        return result.printable(limit: 400)
    }

    /// Keeps the names of the items: they say which call it was.
    private static func redactedQuery(_ query: String) -> String {
        let items = query.split(separator: "&", omittingEmptySubsequences: false)
        return items.map { item in
            guard let equals = item.firstIndex(of: "=") else { return String(item) }
            return item[..<equals] + "=<redacted>"
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
        // `http://user:pass/word@host`: an unencoded slash ends the authority in the middle of a password.
        guard start > 0, let colon = authority.lastIndex(of: UInt8(ascii: ":")), authority.last != UInt8(ascii: "]"),
            !authority[colon...].dropFirst().allSatisfy(\.isASCIIDigit)
        else {
            return String(decoding: bytes[..<end], as: UTF8.self) + path
        }
        return String(decoding: bytes[...colon], as: UTF8.self) + "<redacted>"
    }

    /// `http:/user:password@host`, `http://http://user:password@host`: a slash too few or too many makes a path of the user
    /// information.
    private static func redactedPath(_ path: ArraySlice<UInt8>) -> String {
        guard let at = path.lastIndex(of: UInt8(ascii: "@")) else { return String(decoding: path, as: UTF8.self) }
        // Not a scheme's.
        let colon = path[..<at].indices.first {
            path[$0] == UInt8(ascii: ":") && path[path.index(after: $0)] != Reference.slash
        }
        guard let colon else { return String(decoding: path, as: UTF8.self) }
        let start = path[..<colon].lastIndex(of: Reference.slash).map { $0 + 1 } ?? path.startIndex
        let before = String(decoding: path[..<start], as: UTF8.self)
        return before + "<redacted>" + String(decoding: path[at...], as: UTF8.self)
    }
}
