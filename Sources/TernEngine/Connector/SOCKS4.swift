/// Asks a SOCKS 4 or SOCKS 4a proxy for a connection to a server.
///
/// SOCKS 4 has IPv4 addresses only. SOCKS 4a also sends names, which the proxy resolves. There is no password; the user
/// name is an identifier. No RFC describes them: see the documents SOCKS4.protocol and SOCKS4A.protocol of NEC.
package struct SOCKS4: Sendable {
    private let proxy: ProxyAddress
    private let destination: String
    /// The address of the server; nil for a name that the proxy resolves.
    private let address: SocketAddress?
    private let host: String
    private let port: UInt16
    private var message: [UInt8] = []
    private var hasStarted = false
    private var outcome: ProxyAction?

    /// - Parameters:
    ///   - host: The server in its canonical form: a name or an address, an IPv6 address without brackets.
    ///   - address: The address of the server if the client resolves names.
    package init(_ proxy: ProxyAddress, host: String, port: UInt16, address: SocketAddress? = nil) {
        self.proxy = proxy
        self.host = host
        self.port = port
        self.address = address ?? SocketAddress(numeric: host, port: port)
        destination = ProxyAddress.authority(host, port: port)
    }

    /// Begins on a new connection to the proxy.
    package mutating func start() -> ProxyAction {
        if let outcome { return outcome }
        if let problem { return end(with: .failed(EngineError(.invalidRequest, problem))) }
        hasStarted = true
        let user = Array((proxy.user ?? "").utf8) + [0]
        let head = [4, 1, UInt8(port >> 8), UInt8(port & 0xFF)]
        switch address?.family {
        case .ipv4: return .send(head + (address?.bytes ?? []) + user)
        case nil where proxy.kind == .socks4a:
            // An address that is not valid announces a name after the user.
            return .send(head + [0, 0, 0, 1] + user + Array(host.utf8) + [0])
        case .ipv6, .unix, nil:
            return end(with: .failed(proxy.failure(to: destination, "SOCKS 4 needs an IPv4 address")))
        }
    }

    /// Takes all bytes that the proxy has sent since the last call.
    package mutating func receive(_ input: UnsafeRawBufferPointer) -> ProxyAction {
        for index in 0..<input.count {
            if case .failed? = outcome { break }
            if outcome != nil { return fail("it sent bytes before the client used the connection") }
            guard hasStarted else { return fail("it sent bytes before the request") }
            message.append(unsafe input[index])
            step()
        }
        return outcome ?? .needsInput
    }

    /// Takes the end of the connection to the proxy.
    package func end() -> ProxyAction {
        if case .failed(let error)? = outcome { return .failed(error) }
        return .failed(proxy.failure(to: destination, "it closed the connection within the handshake"))
    }

    /// The reason why the request cannot be sent; nil if it can.
    private var problem: String? {
        if proxy.hasControlCharacters {
            return "the user name or the password for the proxy contains a control character"
        }
        if (proxy.user ?? "").utf8.count > 255 {
            return "the user name for a SOCKS proxy has more than 255 bytes"
        }
        let isName = address == nil
        if isName, !(1...255 ~= host.utf8.count) || host.utf8.contains(0) {
            return "the host has no form for a SOCKS proxy"
        }
        return nil
    }

    /// Reads the message after each of its bytes: a zero, the reply, and a port and an address without a meaning.
    private mutating func step() {
        switch message.count {
        case 1 where message[0] != 0: _ = fail("its answer is not SOCKS 4")
        case 2 where message[1] != 90: _ = fail(Self.text(ofReply: message[1]))
        case 8: _ = end(with: .established)
        default: break
        }
    }

    private static func text(ofReply code: UInt8) -> String {
        switch code {
        case 91: "the request was rejected or failed"
        case 92: "the proxy could not reach the identification service of this machine"
        case 93: "the identification service of this machine reports another user"
        default: "it answered with the unknown code \(code)"
        }
    }

    private mutating func fail(_ reason: String) -> ProxyAction {
        end(with: .failed(proxy.failure(to: destination, reason)))
    }

    private mutating func end(with action: ProxyAction) -> ProxyAction {
        outcome = action
        return action
    }
}
