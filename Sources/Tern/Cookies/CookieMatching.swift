/// Which hosts and paths a cookie is for (RFC 6265bis §5.1.3 and §5.1.4).
enum CookieMatching {
    /// Whether a host is the domain, or below it. An IP address is below nothing.
    static func host(_ host: String, isWithin domain: String) -> Bool {
        let (host, domain) = (host.utf8, domain.utf8)
        if host.count == domain.count { return host.elementsEqual(domain) }
        guard host.count > domain.count, !domain.isEmpty, host.suffix(domain.count).elementsEqual(domain),
            host.dropLast(domain.count).last == UInt8(ascii: ".")
        else { return false }
        return !isAddress(host)
    }

    /// Whether the host is an IPv6 address, or ends in a number as only IPv4 addresses do (WHATWG URL, §3.5).
    static func isAddress(_ host: String.UTF8View) -> Bool {
        if host.contains(UInt8(ascii: ":")) { return true }
        let last = host.split(separator: UInt8(ascii: ".")).last ?? Substring().utf8
        return !last.isEmpty && last.allSatisfy(\.isASCIIDigit)
    }

    /// Whether a request's path is the cookie's, or below it.
    static func path(_ path: String, isWithin cookiePath: String) -> Bool {
        let (path, cookiePath) = (path.utf8, cookiePath.utf8)
        guard path.starts(with: cookiePath) else { return false }
        if path.count == cookiePath.count || cookiePath.last == Reference.slash { return true }
        return path.dropFirst(cookiePath.count).first == Reference.slash
    }

    /// The path of a cookie that names none: the request's, up to its last slash.
    static func defaultPath(of path: String) -> String {
        guard path.utf8.first == Reference.slash, let slash = path.utf8.lastIndex(of: Reference.slash),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// The host and each domain above it, from the longest to the shortest.
    static func domains(above host: String) -> [Substring] {
        var result = [Substring(host)]
        if isAddress(host.utf8) { return result }
        var rest = Substring(host)
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            if !rest.isEmpty { result.append(rest) }
        }
        return result
    }
}
