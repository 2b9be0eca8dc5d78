#if os(Linux)
/// The server that requests go to, and the way there. Created once and used for many requests, because its key in a
/// pool is remembered.
package final class Destination {
    /// The key of the connections and of their limit: the origin, `https://host:port`, after the path of a Unix socket.
    package let origin: String
    /// The host in its canonical form, without brackets, and the port.
    package let host: String
    package let port: UInt16
    /// The host and port as they stand in a Host field; the default port is left out.
    package let authority: String
    /// Whether a head can contain the authority. Checked once, not for each request.
    let hasSendableAuthority: Bool
    /// The trust policy of the server; nil for plain HTTP.
    package let trust: TLSPolicy?
    /// Whether connections can speak HTTP/2, after a negotiation by TLS or without one.
    package let allowsHTTP2: Bool
    /// Whether connections without TLS speak HTTP/2, because the server is known to speak it (RFC 9113 §3.3).
    package let assumesHTTP2: Bool
    /// Whether connections speak HTTP/3 alone.
    package let usesHTTP3: Bool
    /// Whether alternatives over HTTP/3 are used that the server names.
    package let takesAlternatives: Bool
    package let proxy: ProxyAddress?
    /// The trust policy of an HTTPS proxy.
    package let proxyTrust: TLSPolicy?
    /// The addresses to use in place of the resolved ones.
    package let addresses: [SocketAddress]?
    package let unixSocketPath: String?
    package let localEndpoint: LocalEndpoint
    /// Whether the connections are for exchanges with `HTTPExchange.upgrade`. They speak HTTP/1.1 only, are not shared
    /// with other exchanges, and pass an HTTP proxy through a tunnel.
    package let isForUpgrade: Bool
    /// Whether a proxy receives requests whole, and not through a tunnel.
    package let isForwarded: Bool
    /// The number of the destination's key in the pool; nil until it is known.
    var key: ConnectionPool.KeyID?
    /// Whether the server chose HTTP/1.1 although HTTP/2 was offered, or requires it.
    var speaksHTTP1 = false
    /// Whether the next connection tries HTTP/3, because an alternative is known.
    var triesHTTP3 = false

    /// - Parameter origin: The origin of the requests, `https://host:port`.
    package init(
        origin: String, host: String, port: UInt16, authority: String, trust: TLSPolicy? = nil,
        allowsHTTP2: Bool = false, assumesHTTP2: Bool = false, usesHTTP3: Bool = false,
        takesAlternatives: Bool = false, proxy: ProxyAddress? = nil,
        proxyTrust: TLSPolicy? = nil, addresses: [SocketAddress]? = nil, unixSocketPath: String? = nil,
        localEndpoint: LocalEndpoint = .any,
        isForUpgrade: Bool = false
    ) {
        // The server behind a Unix socket presents a certificate for one host, so hosts never share its connections.
        self.origin = unixSocketPath.map { "\(Self.key(ofPath: $0)) \(origin)" } ?? origin
        self.host = host
        self.port = port
        self.authority = authority
        hasSendableAuthority = HTTPBytes.isAuthority(authority)
        self.trust = trust
        self.proxy = proxy
        self.proxyTrust = proxyTrust
        self.addresses = addresses
        self.unixSocketPath = unixSocketPath
        self.localEndpoint = localEndpoint
        self.isForUpgrade = isForUpgrade
        // A proxy that receives requests whole speaks HTTP/1.
        isForwarded = trust == nil && !isForUpgrade && (proxy?.kind == .http || proxy?.kind == .https)
        self.assumesHTTP2 = assumesHTTP2 && trust == nil && !isForwarded && !isForUpgrade
        // Through a proxy there is no UDP, and HTTP/1.1 alone switches protocols.
        let allowsHTTP3 = trust != nil && proxy == nil && unixSocketPath == nil && !isForUpgrade
        self.usesHTTP3 = usesHTTP3 && allowsHTTP3
        // A server asks for an identity late over QUIC, when TCP cannot take over any more. A server whose certificate is not checked does not speak for its origin.
        self.takesAlternatives =
            takesAlternatives && allowsHTTP3 && !usesHTTP3 && trust?.options.identity == nil
            && trust?.options.authenticates == true
        self.allowsHTTP2 = allowsHTTP2 && trust != nil && !isForUpgrade || self.assumesHTTP2
    }

    /// Creates a copy with the same key, whose connections speak HTTP/1.1 only.
    init(overHTTP1 other: Destination) {
        origin = other.origin
        host = other.host
        port = other.port
        authority = other.authority
        hasSendableAuthority = other.hasSendableAuthority
        trust = other.trust
        allowsHTTP2 = false
        assumesHTTP2 = false
        usesHTTP3 = false
        takesAlternatives = false
        proxy = other.proxy
        proxyTrust = other.proxyTrust
        addresses = other.addresses
        unixSocketPath = other.unixSocketPath
        localEndpoint = other.localEndpoint
        isForUpgrade = other.isForUpgrade
        isForwarded = other.isForwarded
        key = other.key
        speaksHTTP1 = true
    }

    /// Returns the path with a NUL, which no path has, and a number of three digits in place of each byte outside
    /// ASCII. Strings compare canonical equivalence, and file systems compare bytes: two sockets would share their
    /// connections.
    private static func key(ofPath path: String) -> String {
        if path.utf8.allSatisfy({ $0 < 0x80 }) { return path }
        return path.utf8.map { $0 < 0x80 ? String(Unicode.Scalar($0)) : "\0\($0)" }.joined()
    }

    package var isSecure: Bool { trust != nil }

    /// Whether a connection can carry several exchanges at a time.
    var canShareConnections: Bool { usesHTTP3 || triesHTTP3 || allowsHTTP2 && !speaksHTTP1 }

    /// The host and port, for texts of errors.
    var name: String { unixSocketPath.map { "the Unix socket \($0)" } ?? "\(host):\(port)" }
}
#endif
