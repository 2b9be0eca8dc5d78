#if os(Linux)
import Foundation
import Glibc
import Tern

/// Checks URLs: Foundation and the system's resolver read the same host as Tern's policies.
extension FuzzTarget {
    static let urls = [
        FuzzTarget(
            name: "url", seeds: { _ in (absolute + references).map { Array($0.utf8) } },
            run: { input, choice in try check(input, isReference: choice % 2 == 1) })
    ]

    private static let absolute = [
        "http://example.com/", "https://user:pass@host.example:8443/a/b?c=d#e", "http://127.0.0.1:80/x",
        "http://127.1/",
        "http://0x7f.1/", "http://0177.0.0.1/", "http://2130706433/", "http://[::1]:8080/", "http://[::127.0.0.1]/",
        "http://[fe80::1%25eth0]/", "http://[fe80::1%1]/", "http://[2001:db8:0:0:1::1]/x",
        "http://b\u{FC}cher.example/",
        "http://xn--bcher-kva.example/", "http://b%C3%BCcher.example/", "http://\u{FF11}\u{FF12}\u{FF17}\u{3002}1/",
        "http://r3---sn-x.googlevideo.com/", "http://a.example./", "http://1.2.3.4.5/", "HTTP://A-b_c~d.E:0080?q",
    ]
    private static let references = [
        "next", "/path", "?query", "//other.example/x", "//127.1", "../up", "#part", "/\\evil.example",
        "\\\\evil.example",
        "http:next", "https://other.example:1/", ".//x", "a:b", "//user@other.example:80", "/@x", "//[::1]/", "",
    ]
    /// Tokens that parsers interpret differently.
    private static let tokens = [
        "@", "\\", "/", "//", ":", "?", "#", "%", "%25", "%2F", "%40", "%00", "%0A", "[", "]", "::", ".", "..", "\t",
        "\n",
        "\r", " ", "0x", "0", "1", "256", "4294967296", "127.1", "[::1]", "[::1%251]", "xn--", "xn--a", "\u{3002}",
        "\u{FF0E}", "\u{FF61}", "\u{FF11}", "\u{FF20}", "\u{FF0F}", "\u{FF1A}", "\u{AD}", "\u{200D}", "\u{DF}",
        "\u{130}",
        "\u{2488}", "\u{2460}", "\u{1F600}", "\u{5D0}", "http:", "https://", "user:pass@", "%C3%BC", "%EF%BC%91", "-",
        "_",
        "~", "!", ";", "&", "=", "+", "$", ",", "'", "(", "*", "\"", "<", "^", "`", "{", "|", "\u{7F}", "\u{80}",
    ]

    /// Inserts tokens into the text, at places that depend on the text: the same input is the same URL when it is run
    /// again.
    private static func text(_ input: Data) -> String {
        var numbers = Numbers(
            state: input.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 })
        var bytes = Array(input.prefix(300))
        for _ in 0..<numbers.below(4) {
            let token = Array(tokens[numbers.below(tokens.count)].utf8)
            bytes.insert(contentsOf: token, at: numbers.below(min(bytes.count, 40) + 1))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func check(_ input: Data, isReference: Bool) throws -> String {
        let text = text(input)
        let base = isReference ? "https://base.example:8443/dir/x?q" : nil
        let target: Target
        do {
            target = try base.map { try Target(absolute: $0).resolving(text) } ?? Target(absolute: text)
        } catch let problem as Target.Problem {
            return "rejected: " + problem.reason.prefix { $0 != "\"" && $0 != ":" }
        }
        if let difference = try difference(target) {
            preconditionFailure("\(text.debugDescription) is \(target.string): \(difference)")
        }
        // The host that Foundation reads from the text, if it reads one.
        if let host = ParsedURL(text, base: base)?.host, let other = try? CanonicalHost(host), other.text != target.host
        {
            preconditionFailure("\(text.debugDescription) leads to \(target.host), for Foundation to \(other.text)")
        }
        let kind = target.host.contains(":") ? "IPv6" : isIPv4(target.host) ? "IPv4" : "name"
        return
            "\(kind) \(target.host.contains("%")) \(target.host.contains("xn--")) \(target.user != nil) \(target.scheme)"
    }

    /// Describes the problem of a target. Returns nil if all parsers read the same in it.
    private static func difference(_ target: Target) throws -> String? {
        let again = try Target(absolute: target.string)
        if again.string != target.string || again.host != target.host { return "read again it is \(again.string)" }
        if try CanonicalHost(target.host).text != target.host { return "the host is not canonical" }
        if target.host.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) { return "the host is not ASCII" }
        // The part before the path is the server's, and a proxy gets the whole.
        for url in [String(target.string.dropLast(target.pathAndQuery.count)), target.string] {
            guard let parsed = ParsedURL(url) else { return "Foundation cannot read \(url)" }
            if parsed.user != nil { return "Foundation finds user information in \(url)" }
            if parsed.port ?? (target.isSecure ? 443 : 80) != target.port {
                return "Foundation finds another port in \(url)"
            }
            guard let host = parsed.host, let other = try? CanonicalHost(host), other.text == target.host else {
                return "Foundation finds the host \(parsed.host ?? "none")"
            }
            if !target.host.contains(":"), host != target.host { return "Foundation finds the host \(host)" }
        }
        // The resolver parses numbers by itself.
        var address = in_addr()
        let isNumber = unsafe inet_aton(target.host, &address) == 1
        if isNumber, !isIPv4(target.host) { return "the resolver takes the name for an address" }
        return nil
    }

    /// Returns whether the text is four decimal numbers in the system's form.
    private static func isIPv4(_ host: String) -> Bool {
        var address = in_addr()
        guard unsafe inet_pton(AF_INET, host, &address) == 1 else { return false }
        let value = UInt32(bigEndian: address.s_addr)
        return host == "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
    }
}

/// A URL as Foundation reads it.
private struct ParsedURL {
    let host: String?
    let port: Int?
    let user: String?

    /// nil if Foundation cannot read it, alone or against a base.
    init?(_ text: String, base: String? = nil) {
        guard let url = URL(string: text, relativeTo: base.flatMap { URL(string: $0) }),
            let components = URLComponents(url: url, resolvingAgainstBaseURL: true)
        else { return nil }
        host = components.encodedHost
        port = components.port
        user = components.percentEncodedUser
    }
}
#else
extension FuzzTarget {
    /// The system's resolver is compared on Linux only.
    static let urls: [FuzzTarget] = []
}
#endif
