/// A proxy with its credentials. No description and no mirror shows the credentials.
package struct ProxyAddress: Sendable, Hashable {
    /// The protocol of a proxy.
    package enum Kind: Sendable, Hashable {
        /// HTTP. Plain requests are forwarded; others use a tunnel (CONNECT, RFC 9110 §9.3.6).
        case http
        /// HTTP over TLS.
        case https
        /// SOCKS 5 (RFC 1928). The proxy resolves names.
        case socks5
        /// SOCKS 5. The client resolves names.
        case socks5WithLocalNames
        /// SOCKS 4. The client resolves names, to IPv4 addresses.
        case socks4
        /// SOCKS 4a. The proxy resolves names.
        case socks4a
    }

    package let kind: Kind
    /// The name or address of the proxy in its canonical form; an IPv6 address without brackets.
    package let host: String
    package let port: UInt16
    package let user: String?
    package let password: String?

    package init(_ kind: Kind, host: String, port: UInt16, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// Whether the proxy gets credentials.
    package var hasCredentials: Bool { user != nil || password != nil }

    /// Whether the proxy speaks HTTP.
    package var isHTTP: Bool { kind == .http || kind == .https }

    /// Whether the client resolves the names of servers.
    package var needsLocalNames: Bool { kind == .socks5WithLocalNames || kind == .socks4 }

    /// The host and the port, for errors.
    package var name: String { Self.authority(host, port: port) }

    /// Whether the credentials have a control character. Such a proxy is not used.
    package var hasControlCharacters: Bool {
        [user, password].contains { $0?.utf8.contains { $0 < 0x20 || $0 == 0x7F } == true }
    }

    /// Returns the host and the port of a URL's authority (RFC 3986 §3.2), without the scope of an IPv6 address, which
    /// has no meaning elsewhere.
    static func authority(_ host: String, port: UInt16) -> String {
        guard host.utf8.contains(UInt8(ascii: ":")) else { return "\(host):\(port)" }
        return "[\(host.prefix { $0 != "%" })]:\(port)"
    }

    /// Returns the error of a connection that the proxy did not make.
    ///
    /// - Parameter destination: The host and port behind the proxy.
    func failure(to destination: String, _ reason: String) -> EngineError {
        EngineError(.proxy, "the proxy \(name) made no connection to \(destination): \(reason)")
    }
}

extension ProxyAddress: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The host and port, without user name and password.
    package var description: String { "proxy \(name)" }
    package var debugDescription: String { description }
    /// An empty mirror. Without it, `dump` would show the credentials.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
