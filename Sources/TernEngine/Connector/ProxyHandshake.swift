/// The next action of a caller that reaches a server through a proxy, over a connection to the proxy.
package enum ProxyAction: Sendable, Equatable {
    /// Send the bytes to the proxy, then hand over the bytes that it sends.
    case send([UInt8])
    /// Hand over more bytes from the proxy.
    case needsInput
    /// Close the connection, connect to the proxy again, and start again with the same value.
    case reconnect
    /// The connection leads to the server.
    case established
    /// No connection to the server was made.
    case failed(EngineError)
}

/// The handshake with a proxy of any kind.
///
/// The caller starts it once the connection to the proxy stands, with TLS for a proxy of kind `.https`. Each method
/// returns the next action. Bytes are handed over as they arrive, all of them at once.
package enum ProxyHandshake: Sendable {
    case http(ProxyTunnel)
    case socks5(SOCKS5)
    case socks4(SOCKS4)

    /// - Parameters:
    ///   - host: The server in its canonical form: a name or an address, an IPv6 address without brackets.
    ///   - address: The address of the server if the client resolves names (`ProxyAddress.needsLocalNames`).
    ///   - authorize: Answers the challenges of an HTTP proxy.
    package init(
        _ proxy: ProxyAddress, host: String, port: UInt16, address: SocketAddress? = nil,
        authorize: @escaping ProxyTunnel.Authorize
    ) {
        switch proxy.kind {
        case .http, .https:
            self = .http(ProxyTunnel(proxy, host: host, port: port, authorize: authorize))
        case .socks5, .socks5WithLocalNames:
            self = .socks5(SOCKS5(proxy, host: host, port: port, address: address))
        case .socks4, .socks4a:
            self = .socks4(SOCKS4(proxy, host: host, port: port, address: address))
        }
    }

    /// Begins on a new connection to the proxy.
    package mutating func start() -> ProxyAction {
        switch self {
        case .http(var tunnel):
            defer { self = .http(tunnel) }
            return tunnel.start()
        case .socks5(var handshake):
            defer { self = .socks5(handshake) }
            return handshake.start()
        case .socks4(var handshake):
            defer { self = .socks4(handshake) }
            return handshake.start()
        }
    }

    /// Takes bytes from the proxy.
    package mutating func receive(_ input: UnsafeRawBufferPointer) -> ProxyAction {
        switch self {
        case .http(var tunnel):
            defer { self = .http(tunnel) }
            return unsafe tunnel.receive(input)
        case .socks5(var handshake):
            defer { self = .socks5(handshake) }
            return unsafe handshake.receive(input)
        case .socks4(var handshake):
            defer { self = .socks4(handshake) }
            return unsafe handshake.receive(input)
        }
    }

    /// Takes the end of the connection to the proxy.
    package mutating func end() -> ProxyAction {
        switch self {
        case .http(var tunnel):
            defer { self = .http(tunnel) }
            return tunnel.end()
        case .socks5(let handshake): return handshake.end()
        case .socks4(let handshake): return handshake.end()
        }
    }
}
