/// A server that connects on a client's behalf. Its descriptions show no credential.
public struct Proxy: Sendable, Hashable {
    /// How a proxy is spoken to.
    public enum Kind: String, Sendable, Hashable {
        /// HTTP: plain requests are passed on, for https a tunnel is asked for (CONNECT, RFC 9110 §9.3.6).
        case http
        /// HTTP over TLS, with the session's authorities.
        case https
        /// SOCKS 5 (RFC 1928); names are looked up by the proxy.
        case socks5 = "socks5h"
        /// SOCKS 5; names are looked up here.
        case socks5WithLocalNames = "socks5"
    }

    /// How the proxy is spoken to.
    public let kind: Kind
    /// Its name or address.
    public let host: String
    /// Its port.
    public let port: UInt16
    private let user: String?
    private let password: String?

    /// - Parameters:
    ///   - kind: How the proxy is spoken to.
    ///   - host: Its name or address; an IPv6 address without brackets.
    ///   - port: Its port.
    ///   - user: A user name, sent with the first request (Basic for HTTP, RFC 1929 for SOCKS).
    ///   - password: The password that belongs to it.
    public init(_ kind: Kind, host: String, port: UInt16, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// Whether it wants to know who asks.
    var hasCredentials: Bool { user != nil || password != nil }

    /// As libcurl takes it, with the credentials percent-encoded.
    var url: String {
        var credentials = ""
        if hasCredentials {
            credentials = "\(Self.escaped(user ?? "")):\(Self.escaped(password ?? ""))@"
        }
        // An invalid host is a `problem`, which prevents every request.
        return "\(kind.rawValue)://\(credentials)\(canonicalHost?.urlText ?? ""):\(port)"
    }

    /// The canonical form of the host; nil for an invalid host. The reason is not needed, because errors quote the
    /// host.
    var canonicalHost: CanonicalHost? { try? CanonicalHost(host) }

    private static func escaped(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            if ByteSet.unreserved.contains(byte) { result.append(byte) } else { result.appendPercentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Why no connection can be made through it; nil when one can be tried.
    var problem: String? {
        // libcurl silently ignores such a proxy and connects directly.
        if [user, password].contains(where: { $0?.utf8.contains(where: \.isASCIIControl) == true }) {
            return
                "the user name or the password for the proxy \(host.printable(limit: 80)) contains a control character"
        }
        let isAddress = canonicalHost != nil && port > 0
        return isAddress ? nil : "the proxy's host \"\(host.printable(limit: 80))\" and port make no address"
    }
}

extension Proxy: CustomStringConvertible, CustomReflectable {
    /// Kind, host and port; neither user name nor password.
    public var description: String { "\(kind) proxy \(host):\(port)" }

    /// Kind, host and port alone: what else `dump` would show is secret.
    public var customMirror: Mirror { Mirror(self, children: ["kind": kind, "host": host, "port": port]) }
}
