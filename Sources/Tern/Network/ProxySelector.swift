#if os(Linux)
import Glibc
import TernEngine

/// Selects the proxy of each request of a session.
struct ProxySelector: Sendable, Equatable {
    /// The proxy for http; nil for none.
    let http: ProxyAddress?
    /// The proxy for https; nil for none.
    let https: ProxyAddress?
    let exceptions: ProxyExceptions
    /// The reason why a proxy of the environment cannot be used; nil if all can be tried. The reason does not quote the
    /// proxy, which can have a password.
    let problem: String?

    init(http: Proxy?, https: Proxy?, except exceptions: [String]) {
        self.http = http.map { ProxyAddress($0) }
        self.https = https.map { ProxyAddress($0) }
        self.exceptions = ProxyExceptions(exceptions)
        problem = nil
    }

    /// Reads the proxies of an environment, by the rules that most tools share.
    init(environment: [String: String]) {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        }
        var problems: [String] = []
        func proxy(_ scheme: String, _ url: String?) -> ProxyAddress? {
            guard let url else { return nil }
            do {
                return try ProxyAddress(url: url)
            } catch {
                problems.append("the environment's proxy for \(scheme) cannot be used: \(error.reason)")
                return nil
            }
        }
        let all = value("all_proxy", "ALL_PROXY")
        // Upper-case HTTP_PROXY is ignored, because a CGI server sets it from a request's Proxy header.
        http = proxy("http", value("http_proxy") ?? all)
        https = proxy("https", value("https_proxy", "HTTPS_PROXY") ?? all)
        exceptions = ProxyExceptions(list: value("no_proxy", "NO_PROXY") ?? "")
        problem = problems.first
    }

    init(_ proxies: Session.Configuration.Proxies) {
        self =
            switch proxies {
            case .environment: .environment
            case .none: ProxySelector(http: nil, https: nil, except: [])
            case .only(let proxy, let except): ProxySelector(http: proxy, https: proxy, except: except)
            case .schemes(let http, let https, let except): ProxySelector(http: http, https: https, except: except)
            }
    }

    /// The proxies of the process's environment, read once: calling `getenv` while another thread changes the
    /// environment is a data race.
    static let environment: ProxySelector = {
        let names = [
            "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
        ]
        var found: [String: String] = [:]
        for name in names {
            if let value = unsafe getenv(name) { found[name] = unsafe String(cString: value) }
        }
        return ProxySelector(environment: found)
    }()

    /// Returns the proxy for a request; nil for none.
    func proxy(for target: Target) -> ProxyAddress? {
        guard let proxy = target.isSecure ? https : http,
            !exceptions.contain(target.host, port: UInt16(clamping: target.port))
        else { return nil }
        return proxy
    }

    /// Returns whether a proxy receives a request to this URL whole, and not through a tunnel. Only then does a 407
    /// response come from the proxy, and only then do fields that are meant for the proxy reach it.
    func forwards(_ target: Target) -> Bool {
        !target.isSecure && proxy(for: target)?.isHTTP == true
    }
}

extension ProxyAddress {
    init(_ proxy: Proxy) {
        let kind: Kind =
            switch proxy.kind {
            case .http: .http
            case .https: .https
            case .socks5: .socks5
            case .socks5WithLocalNames: .socks5WithLocalNames
            }
        // A proxy whose host is not valid is a `problem`, which prevents every request.
        let host = proxy.canonicalHost?.text ?? proxy.host
        self.init(kind, host: host, port: proxy.port, user: proxy.user, password: proxy.password)
    }

    private static let kinds: KeyValuePairs<String, Kind> = [
        "http": .http, "https": .https, "socks4": .socks4, "socks4a": .socks4a, "socks5": .socks5WithLocalNames,
        "socks5h": .socks5,
    ]

    /// Parses the URL of a proxy as an environment states it: without a scheme, it is http, and without a port, the
    /// port is 443 for https and otherwise 1080, as for most tools.
    fileprivate init(url: String) throws(Target.Problem) {
        var rest = Array(url.utf8)[...]
        if Reference.percentDecoded(rest).contains(where: \.isASCIIControl) {
            throw Target.Problem(reason: "its URL contains a control character")
        }
        var kind = Kind.http
        if let mark = url.firstRange(of: "://") {
            let scheme = url[..<mark.lowerBound].lowercased()
            guard let known = Self.kinds.first(where: { $0.key == scheme }) else {
                let names = Self.kinds.map(\.key).joined(separator: ", ")
                throw Target.Problem(reason: "its scheme is none of \(names)")
            }
            kind = known.value
            rest = Array(url[mark.upperBound...].utf8)[...]
        }
        let authority = rest.prefix { !Reference.endsAuthority($0) }
        let parts = authority.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        if parts.count > 2 {
            throw Target.Problem(
                reason: "its URL has several @, and those of the password must be percent-encoded")
        }
        let (host, port) = try Target.Authority.parse(parts.last ?? [])
        var (user, password): (String?, String?) = (nil, nil)
        if parts.count == 2, let credentials = parts.first, !credentials.isEmpty {
            (user, password) = try Self.credentials(credentials)
        }
        // A stated port fits: it has been checked.
        let number = UInt16(clamping: port ?? (kind == .https ? 443 : 1_080))
        self.init(kind, host: host.text, port: number, user: user, password: password)
    }

    /// Unlike in the URL of a request, a backslash is allowed: it separates a Windows domain from the user's name.
    private static func credentials(_ bytes: ArraySlice<UInt8>) throws(Target.Problem) -> (String, String) {
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let user = Reference.percentDecoded(bytes[..<colon])
        let password = Reference.percentDecoded(bytes[colon...].dropFirst())
        // A replaced character would be a wrong password.
        guard let user = String(validating: user, as: UTF8.self),
            let password = String(validating: password, as: UTF8.self)
        else { throw Target.Problem(reason: "its user name or its password is not UTF-8") }
        return (user, password)
    }
}
#endif
