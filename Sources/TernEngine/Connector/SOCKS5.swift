/// Asks a SOCKS 5 proxy for a connection to a server (RFC 1928), with a user name and a password if there are any
/// (RFC 1929).
package struct SOCKS5: Sendable {
    private enum State {
        case idle
        /// The method that the proxy chooses.
        case method
        /// The result of the user name and password.
        case authentication
        /// The reply to the request.
        case reply
        case ended(ProxyAction)
    }

    private let proxy: ProxyAddress
    private let destination: String
    /// The address type, the address and the port of the request; nil if the server has none.
    private let target: [UInt8]?
    private var state = State.idle
    /// The bytes of the message that is read. The longest has 262 bytes.
    private var message: [UInt8] = []

    /// - Parameters:
    ///   - host: The server in its canonical form: a name or an address, an IPv6 address without brackets.
    ///   - address: The address of the server if the client resolves names. It takes the place of the name.
    package init(_ proxy: ProxyAddress, host: String, port: UInt16, address: SocketAddress? = nil) {
        self.proxy = proxy
        destination = ProxyAddress.authority(host, port: port)
        target = Self.target(address ?? SocketAddress(numeric: host, port: port), host: host, port: port)
    }

    /// Begins on a new connection to the proxy.
    package mutating func start() -> ProxyAction {
        if case .ended(let action) = state { return action }
        if let problem {
            return end(with: .failed(EngineError(.invalidRequest, problem)))
        }
        state = .method
        // Without authentication (0), or with a user name and a password (2).
        return .send(proxy.hasCredentials ? [5, 2, 0, 2] : [5, 1, 0])
    }

    /// Takes all bytes that the proxy has sent since the last call.
    package mutating func receive(_ input: UnsafeRawBufferPointer) -> ProxyAction {
        var output: [UInt8] = []
        for index in 0..<input.count {
            switch state {
            case .ended(.failed(let error)): return .failed(error)
            case .ended: return fail("it sent bytes before the client used the connection")
            case .idle: return fail("it sent bytes before the request")
            case .method, .authentication, .reply: break
            }
            // An answer to a message that is not sent yet is none.
            guard output.isEmpty else { return fail("it sent bytes before the request") }
            message.append(unsafe input[index])
            if case .send(let bytes) = step() {
                output = bytes
                message.removeAll(keepingCapacity: true)
            }
        }
        if case .ended(let action) = state { return action }
        return output.isEmpty ? .needsInput : .send(output)
    }

    /// Takes the end of the connection to the proxy.
    package func end() -> ProxyAction {
        if case .ended(.failed(let error)) = state { return .failed(error) }
        return .failed(proxy.failure(to: destination, "it closed the connection within the handshake (RFC 1928)"))
    }

    /// The reason why the request cannot be sent; nil if it can.
    private var problem: String? {
        if proxy.hasControlCharacters {
            return "the user name or the password for the proxy contains a control character"
        }
        let (user, password) = (proxy.user?.utf8.count ?? 0, proxy.password?.utf8.count ?? 0)
        // RFC 1929 demands a password of at least one byte. Proxies that know a user by the name alone accept an empty
        // one, and curl sends it, too.
        if proxy.hasCredentials, !(1...255 ~= user) || password > 255 {
            return "the user name for a SOCKS proxy has 1 to 255 bytes, and the password at most 255 (RFC 1929 §2)"
        }
        return target == nil ? "the host has no form for a SOCKS proxy (RFC 1928 §4)" : nil
    }

    /// Reads the message after each of its bytes, so that it ends at its last byte.
    private mutating func step() -> ProxyAction {
        switch state {
        case .method: return readMethod()
        case .authentication: return readAuthentication()
        case .reply: return readReply()
        case .idle, .ended: return .needsInput
        }
    }

    private mutating func readMethod() -> ProxyAction {
        guard message[0] == 5 else { return fail("its answer is not SOCKS 5 (RFC 1928 §3)") }
        guard message.count == 2 else { return .needsInput }
        switch message[1] {
        case 0:
            return request()
        case 2 where proxy.hasCredentials:
            state = .authentication
            let user = Array((proxy.user ?? "").utf8)
            let password = Array((proxy.password ?? "").utf8)
            return .send([1, UInt8(clamping: user.count)] + user + [UInt8(clamping: password.count)] + password)
        case 0xFF:
            let reason = proxy.hasCredentials ? "no offered authentication" : "no connection without authentication"
            return fail("it accepts \(reason) (RFC 1928 §3)")
        default:
            return fail("it chose an authentication that was not offered (RFC 1928 §3)")
        }
    }

    private mutating func readAuthentication() -> ProxyAction {
        guard message[0] == 1 else { return fail("its answer to the password is malformed (RFC 1929 §2)") }
        guard message.count == 2 else { return .needsInput }
        return message[1] == 0 ? request() : fail("it refused the user name and the password (RFC 1929 §2)")
    }

    private mutating func request() -> ProxyAction {
        state = .reply
        return .send([5, 1, 0] + (target ?? []))
    }

    /// Reads the version, the reply, a reserved byte, and the bound address, which has no use here.
    private mutating func readReply() -> ProxyAction {
        switch message.count {
        case 1 where message[0] != 5: return fail("its answer is not SOCKS 5 (RFC 1928 §6)")
        case 2 where message[1] != 0: return fail(Self.text(ofReply: message[1]))
        case 4 where ![1, 3, 4].contains(message[3]):
            return fail("its answer has an unknown type of address (RFC 1928 §6)")
        case ..<5: return .needsInput
        default: break
        }
        let length =
            switch message[3] {
            case 1: 10
            case 4: 22
            default: 7 + Int(message[4])
            }
        return message.count < length ? .needsInput : end(with: .established)
    }

    /// Returns the text of a reply (RFC 1928 §6).
    private static func text(ofReply code: UInt8) -> String {
        switch code {
        case 1: "general failure of the SOCKS server"
        case 2: "the rules of the proxy forbid the connection"
        case 3: "the network is unreachable"
        case 4: "the host is unreachable"
        case 5: "the host refused the connection"
        case 6: "the time to live expired"
        case 7: "the proxy does not support the command"
        case 8: "the proxy does not support the type of address"
        default: "it answered with the unknown code \(code)"
        }
    }

    private static func target(_ address: SocketAddress?, host: String, port: UInt16) -> [UInt8]? {
        let end = [UInt8(port >> 8), UInt8(port & 0xFF)]
        switch address?.family {
        case .ipv4: return [1] + (address?.bytes ?? []) + end
        case .ipv6: return [4] + (address?.bytes ?? []) + end
        case .unix: return nil
        case nil:
            let name = Array(host.utf8)
            return 1...255 ~= name.count ? [3, UInt8(name.count)] + name + end : nil
        }
    }

    private mutating func fail(_ reason: String) -> ProxyAction {
        end(with: .failed(proxy.failure(to: destination, reason)))
    }

    private mutating func end(with action: ProxyAction) -> ProxyAction {
        state = .ended(action)
        return action
    }
}
