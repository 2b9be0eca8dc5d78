import ArgumentParser
// The escapes of URLs.
import Foundation
import Tern

/// Proxies as curl's `-x` and HTTPie's `--proxy` name them. Pure.
enum ProxyText {
    /// Curl's default.
    private static let port: UInt16 = 1_080

    /// Parses `[scheme://][user:password@]host[:port]`, where an empty text means no proxy. `http:` or `https:` before a
    /// whole URL limits the proxy to URLs of that scheme. Errors do not quote the text, which can have a password.
    static func proxies(_ text: String) throws(ValidationError) -> Session.Configuration.Proxies {
        if text.isEmpty { return .none }
        for scheme in ["http:", "https:"] where text.hasPrefix(scheme) {
            let rest = text.dropFirst(scheme.count)
            guard URLText.hasScheme(String(rest)) else { continue }
            let proxy = try proxy(rest)
            return .schemes(http: scheme == "http:" ? proxy : nil, https: scheme == "https:" ? proxy : nil)
        }
        return .only(try proxy(text.hasPrefix("all:") ? text.dropFirst("all:".count) : text[...]))
    }

    private static func proxy(_ text: Substring) throws(ValidationError) -> Proxy {
        var rest = text
        var kind = Proxy.Kind.http
        if let separator = text.firstRange(of: "://") {
            guard let known = Proxy.Kind(rawValue: text[..<separator.lowerBound].lowercased()) else {
                throw ValidationError("-x knows the proxies http, https, socks5 and socks5h")
            }
            (kind, rest) = (known, text[separator.upperBound...])
        }
        rest = rest.prefix { $0 != "/" }
        var (user, password): (String?, String?) = (nil, nil)
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            user = parts.first.map(decoded)
            password = parts.count > 1 ? decoded(parts[1]) : nil
            rest = rest[rest.index(after: at)...]
        }
        let (host, port) = try address(rest)
        return Proxy(
            kind, host: host, port: port ?? (kind == .https ? 443 : Self.port), user: user, password: password)
    }

    private static func address(_ text: Substring) throws(ValidationError) -> (host: String, port: UInt16?) {
        var (host, rest) = (text, text[text.endIndex...])
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            (host, rest) = (text[text.index(after: text.startIndex)..<end], text[text.index(after: end)...])
        } else if let colon = text.lastIndex(of: ":") {
            (host, rest) = (text[..<colon], text[colon...])
        }
        if host.isEmpty { throw ValidationError("-x needs the host of a proxy") }
        if rest.isEmpty { return (String(host), nil) }
        guard rest.hasPrefix(":"), let port = UInt16(rest.dropFirst()), port > 0 else {
            throw ValidationError("-x takes a port from 1 to 65535 behind the host")
        }
        return (String(host), port)
    }

    private static func decoded(_ text: Substring) -> String { text.removingPercentEncoding ?? String(text) }
}
