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
    let user: String?
    let password: String?

    /// - Parameters:
    ///   - kind: The protocol of the proxy.
    ///   - host: The name or address of the proxy; an IPv6 address without brackets.
    ///   - port: The port of the proxy.
    ///   - user: A user name. An HTTP proxy receives it with the first request (Basic), and if it answers with a Digest
    ///     challenge, in the answer to that. A SOCKS proxy receives it if it asks for it (RFC 1929).
    ///   - password: The password of the user; nil is sent as an empty one. For SOCKS, the name has 1 to 255 bytes and
    ///     the password at most 255. RFC 1929 demands a password of at least one byte, so a proxy can refuse an empty
    ///     one.
    public init(_ kind: Kind, host: String, port: UInt16, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.host = host
        self.port = port
        self.user = user
        self.password = password
    }

    /// Whether the proxy requires credentials.
    var hasCredentials: Bool { user != nil || password != nil }

    /// The canonical form of the host; nil for an invalid host. The reason is not needed, because errors quote the
    /// host.
    var canonicalHost: CanonicalHost? { try? CanonicalHost(host) }

    /// The reason why no connection can be made through the proxy; nil if one can be tried.
    var problem: String? {
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

/// The hosts that are reached without the proxy, by the rules that most tools share. Documentation/Reachability.md
/// compares them.
struct ProxyExceptions: Sendable, Equatable {
    /// One entry of the list.
    struct Entry: Sendable, Equatable {
        /// The hosts that an entry names.
        enum Hosts: Sendable, Equatable {
            case all
            /// A name, and every name below it. A leading dot makes no difference.
            case domain(String)
            case address(String)
            /// The addresses whose first `bits` bits equal those of these bytes.
            case network([UInt8], bits: Int)
        }

        let hosts: Hosts
        /// The only port that the entry covers; nil for all ports.
        var port: UInt16?

        /// Parses an entry; nil for a text that names no host, or has a port that is not one.
        init?(_ text: String) {
            if text == "*" {
                hosts = .all
                return
            }
            if let slash = text.firstIndex(of: "/") {
                guard let network = Self.network(text[..<slash], text[text.index(after: slash)...]) else { return nil }
                hosts = network
                return
            }
            guard let (name, port) = Self.split(text) else { return nil }
            self.port = port
            // The reason of the error is not needed.
            guard let host = try? CanonicalHost(String(name.hasPrefix(".") ? name.dropFirst() : name)) else {
                return nil
            }
            hosts = host.isAddress ? .address(host.text) : .domain(host.text)
        }

        /// Splits a port off. An address of IPv6 with a port stands in brackets. A colon without a port after it means
        /// none.
        private static func split(_ text: String) -> (name: Substring, port: UInt16?)? {
            let afterBracket = text.lastIndex(of: "]").map { text[text.index(after: $0)...] }
            let rest = afterBracket ?? text[...]
            guard let colon = rest.firstIndex(of: ":") else { return (text[...], nil) }
            // Several colons without brackets are an address.
            if afterBracket == nil, rest[rest.index(after: colon)...].contains(":") { return (text[...], nil) }
            let digits = rest[rest.index(after: colon)...]
            if digits.isEmpty { return (text[..<colon], nil) }
            guard digits.utf8.allSatisfy(\.isASCIIDigit), let port = UInt16(digits), port > 0 else { return nil }
            return (text[..<colon], port)
        }

        private static func network(_ address: Substring, _ length: Substring) -> Hosts? {
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
    ///
    /// - Parameter port: The port of the request, also where the URL leaves it out.
    func contain(_ host: String, port: UInt16) -> Bool {
        if entries.isEmpty { return false }
        let bytes = Self.bytes(of: host.prefix { $0 != "%" })
        return entries.contains { entry in
            guard entry.port == nil || entry.port == port else { return false }
            return switch entry.hosts {
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
