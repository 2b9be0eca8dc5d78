extension Target {
    /// Returns the URL of a reference relative to this URL (RFC 3986 §5.2): `next`, `/path`, `?query`, `//host`, a URL.
    /// Bytes that a URL cannot hold are percent-encoded, because a Location is often raw UTF-8.
    package func resolving(_ reference: String) throws(Problem) -> Target {
        var bytes = Array(reference.utf8)
        if let fragment = Reference.fragment(of: bytes[...]) {
            bytes.removeSubrange((bytes.firstIndex(of: Reference.hash) ?? bytes.endIndex)...)
            return try resolving(String(decoding: bytes, as: UTF8.self)).with(fragment: fragment)
        }
        let isWhole = Reference.schemeEnd(bytes) != nil
        if isWhole { return try Target(absolute: reference) }
        if bytes.starts(with: "//".utf8) { return try Target(absolute: scheme + ":" + reference) }
        var path = Array(pathAndQuery.utf8)
        switch bytes.first {
        case nil, Reference.hash:
            break
        case Reference.slash:
            path = []
        case Reference.query:
            path = Array(path.prefix { $0 != Reference.query })
        default:
            path = Array(path.prefix { $0 != Reference.query })
            path.removeSubrange(((path.lastIndex(of: Reference.slash) ?? -1) + 1)...)
        }
        let tail = try Reference.normalized((path + bytes)[...])
        return Target(string: authority.root + String(decoding: tail, as: UTF8.self), authority: authority)
    }
}
