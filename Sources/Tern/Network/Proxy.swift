#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A server that connects on behalf of a client. Its descriptions show no credential.
public struct Proxy: Sendable, Hashable {
    /// The protocol of a proxy.
    public enum Kind: String, Sendable, Hashable {
        /// HTTP. Plain requests are forwarded, and https uses a tunnel (CONNECT, RFC 9110 §9.3.6).
        case http
        /// HTTP over TLS, with the session's authorities.
        case https
        /// SOCKS 5 (RFC 1928). The proxy resolves names.
        case socks5 = "socks5h"
        /// SOCKS 5. The client resolves names.
        case socks5WithLocalNames = "socks5"
    }

    /// The protocol of the proxy.
    public let kind: Kind
    /// The name or address of the proxy.
    public let host: String
    /// The port of the proxy.
    public let port: UInt16
    private let user: String?
    private let password: String?

    /// - Parameters:
    ///   - kind: The protocol of the proxy.
    ///   - host: The name or address of the proxy; an IPv6 address without brackets.
    ///   - port: The port of the proxy.
    ///   - user: A user name, sent with the first request (Basic for HTTP, RFC 1929 for SOCKS).
    ///   - password: The password of the user.
    public init(_ kind: Kind, host: String, port: UInt16, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// A Boolean value that indicates whether the proxy requires credentials.
    var hasCredentials: Bool { user != nil || password != nil }

    /// The form for libcurl, with the credentials percent-encoded.
    var url: String {
        var credentials = ""
        if hasCredentials {
            let (user, password) = (user ?? "", password ?? "")
            credentials = "\(user.percentEncoded(except: .unreserved)):\(password.percentEncoded(except: .unreserved))@"
        }
        // An invalid host is a `problem`, which prevents every request.
        return "\(kind.rawValue)://\(credentials)\(canonicalHost?.urlText ?? ""):\(port)"
    }

    /// The canonical form of the host; nil for an invalid host. The reason is not needed, because errors quote the
    /// host.
    var canonicalHost: CanonicalHost? { try? CanonicalHost(host) }

    /// The reason why no connection can be made through the proxy; nil if one can be tried.
    var problem: String? {
        // libcurl silently ignores such a proxy and connects directly.
        if [user, password].contains(where: { $0?.utf8.contains(where: \.isASCIIControl) == true }) {
            return
                "the user name or the password for the proxy \(host.printable(limit: 80)) contains a control character"
        }
        let isAddress = canonicalHost != nil && port > 0
        return isAddress ? nil : "the proxy's host \"\(host.printable(limit: 80))\" or port is invalid"
    }
}

extension Proxy: CustomStringConvertible, CustomReflectable {
    /// The kind, host and port, without user name and password.
    public var description: String { "\(kind) proxy \(host):\(port)" }

    /// The kind, host and port only. Without this mirror, `dump` would show the secrets.
    public var customMirror: Mirror { Mirror(self, children: ["kind": kind, "host": host, "port": port]) }
}

/// The hosts that are reached without the proxy, by the rules of curl and most other tools.
struct ProxyExceptions: Sendable, Equatable {
    /// One entry of the list.
    enum Entry: Sendable, Equatable {
        case all
        /// A name, and every name below it. A leading dot makes no difference.
        case domain(String)
        case address(String)
        /// The addresses whose first `bits` bits equal those of these bytes.
        case network([UInt8], bits: Int)

        /// Parses an entry; nil for a text that names no host.
        init?(_ text: String) {
            if text == "*" {
                self = .all
                return
            }
            if let slash = text.firstIndex(of: "/") {
                guard let network = Self.network(text[..<slash], text[text.index(after: slash)...]) else { return nil }
                self = network
                return
            }
            // The reason of the error is not needed.
            guard let host = try? CanonicalHost(text.hasPrefix(".") ? String(text.dropFirst()) : text) else {
                return nil
            }
            self = host.isAddress ? .address(host.text) : .domain(host.text)
        }

        private static func network(_ address: Substring, _ length: Substring) -> Entry? {
            let inner = address.hasPrefix("[") && address.hasSuffix("]") ? address.dropFirst().dropLast() : address
            // Requires four whole numbers, because tools read `10/8` and `10.0/8` differently.
            guard let bytes = ProxyExceptions.bytes(of: inner), length.utf8.allSatisfy(\.isASCIIDigit),
                let bits = Int(length), bits <= 8 * bytes.count
            else { return nil }
            return .network(bytes, bits: bits)
        }
    }

    private let entries: [Entry]

    /// Creates the list. Entries that name no host are left out and have no effect.
    init(_ texts: [String]) { entries = texts.compactMap { Entry($0) } }

    /// Creates the list from `no_proxy`: entries separated by commas or spaces.
    init(list: String) {
        self.init(list.split { $0 == "," || $0.isWhitespace }.map { String($0) })
    }

    /// Returns whether a host in its canonical form is reached without the proxy.
    func contain(_ host: String) -> Bool {
        if entries.isEmpty { return false }
        let bytes = Self.bytes(of: host.prefix { $0 != "%" })
        return entries.contains { entry in
            switch entry {
            case .all: true
            case .domain(let name): CookieMatching.host(host, isWithin: name)
            case .address(let address): host == address
            case .network(let network, let bits): bytes.map { Self.begins($0, with: network, bits: bits) } ?? false
            }
        }
    }

    private static func bytes(of address: Substring) -> [UInt8]? {
        let text = Array(address.utf8)[...]
        return IPv4Address(dotted: text)?.bytes ?? IPv6Address(text)?.bytes
    }

    private static func begins(_ address: [UInt8], with network: [UInt8], bits: Int) -> Bool {
        guard address.count == network.count else { return false }
        let whole = bits / 8
        guard address[..<whole] == network[..<whole] else { return false }
        return bits % 8 == 0 || (address[whole] ^ network[whole]) >> UInt8(8 - bits % 8) == 0
    }
}

/// The proxies of a session: those of the environment, by the rules of curl and most other tools, or given ones.
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

    /// The schemes of proxies that libcurl supports.
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

    /// Returns the host and port of a scheme's proxy for errors; nil without one. The part before an `@` is secret.
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
        // Upper-case HTTP_PROXY is ignored, because a CGI server sets it from a request's Proxy header.
        http = value("http_proxy") ?? all
        https = value("https_proxy", "HTTPS_PROXY") ?? all
        exceptions = ProxyExceptions(list: value("no_proxy", "NO_PROXY") ?? "")
    }
}

extension ProxyEnvironment {
    /// The environment of the process, read once: calling `getenv` while another thread changes the environment is a
    /// data race.
    static let process: ProxyEnvironment = {
        let names = [
            "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
        ]
        var found: [String: String] = [:]
        for name in names {
            if let value = unsafe getenv(name) { found[name] = unsafe String(cString: value) }
        }
        return ProxyEnvironment(found)
    }()
}
