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

    /// The proxy of a request to a URL, as libcurl takes it; nil for none.
    func url(for target: Target) -> String? {
        guard let url = target.isSecure ? https : http, !exceptions.contain(target.host) else { return nil }
        return url
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
