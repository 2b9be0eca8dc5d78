/// The proxies of a session: those that the environment names, by the rules of curl and most other tools, or given ones.
struct ProxyEnvironment: Sendable, Equatable {
    let http: String?
    let https: String?
    let exceptions: ProxyExceptions

    init(http: Proxy?, https: Proxy?, _ exceptions: [String]) {
        self.http = http?.url
        self.https = https?.url
        self.exceptions = ProxyExceptions(exceptions)
    }

    /// Returns the URL of the proxy for a request, in libcurl's form; nil for none.
    func url(for target: Target) -> String? {
        guard let url = target.isSecure ? https : http, !exceptions.contain(target.host) else { return nil }
        return url
    }

    /// Returns whether the proxy receives a request to this URL whole, and not through a tunnel. Only then does a 407
    /// response come from the proxy, and only then do fields that are meant for the proxy reach it.
    func forwards(_ target: Target) -> Bool {
        guard !target.isSecure, let url = url(for: target) else { return false }
        guard let end = url.firstRange(of: "://") else { return true }
        return ["http", "https"].contains(url[..<end.lowerBound].lowercased())
    }

    /// The reason why the proxies of the environment cannot be used; nil when they can be tried. The reason does not
    /// quote the proxies, which can have passwords.
    var problem: String? {
        for (scheme, url) in [("http", http), ("https", https)] {
            guard let url else { continue }
            if let problem = Self.problem(of: url) {
                return "the environment's proxy for \(scheme) cannot be used: \(problem)"
            }
        }
        return nil
    }

    /// The forms in which libcurl can speak to a proxy.
    private static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    private static func problem(of url: String) -> String? {
        var bytes = Array(url.utf8)[...]
        // If libcurl cannot decode the user name or password of a proxy, it silently ignores the proxy and connects
        // directly.
        if Reference.percentDecoded(bytes).contains(where: \.isASCIIControl) {
            return "its URL contains a control character"
        }
        if let mark = url.firstRange(of: "://") {
            guard schemes.contains(url[..<mark.lowerBound].lowercased()) else {
                return "its scheme is none of \(schemes.joined(separator: ", "))"
            }
            bytes = Array(url[mark.upperBound...].utf8)[...]
        }
        let authority = bytes.prefix { !Reference.endsAuthority($0) }
        // Unlike in the URL of a request, a backslash before the host is allowed: it separates a Windows domain from
        // the user's name.
        let parts = authority.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        if parts.count > 2 { return "its URL has several @, and those of the password must be percent-encoded" }
        do {
            _ = try Target.Authority(parts.last ?? [], isSecure: false)
            return nil
        } catch {
            return error.reason
        }
    }

    /// Host and port of a scheme's proxy, for errors; nil without one. What stands before an `@` is secret.
    func name(isSecure: Bool) -> String? {
        guard let url = isSecure ? https : http else { return nil }
        let authority = url.split(separator: "@").last ?? Substring(url)
        return String(authority.replacing(/^[a-z0-9]+:\/\//, with: "")).printable(limit: 200)
    }

    init(_ environment: [String: String]) {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        let all = value("all_proxy", "ALL_PROXY")
        // Upper-case HTTP_PROXY is left alone: a CGI server sets it from a request's Proxy header.
        http = value("http_proxy") ?? all
        https = value("https_proxy", "HTTPS_PROXY") ?? all
        exceptions = ProxyExceptions(list: value("no_proxy", "NO_PROXY") ?? "")
    }
}
