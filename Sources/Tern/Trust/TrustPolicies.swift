/// The trust policies of a session, by host.
///
/// The key is a host's name or address, or `*.example.com` for every name under `example.com`, at any depth but not itself.
/// An exact name goes before a wildcard, and a longer wildcard before a shorter one. Upper case and a dot at the end make no
/// difference. International names stand as they are sent, `xn--…`.
public struct TrustPolicies: Sendable, Hashable {
    /// For hosts that are not listed; nil refuses them.
    public var standard: TrustPolicy? = TrustPolicy()
    /// By host.
    public var hosts: [String: TrustPolicy] = [:]

    /// The default policy for every host.
    public init() {}

    /// One policy for every host.
    init(for policy: TrustPolicy) { standard = policy }

    /// The policy for a host; nil when it is refused. Where hosts are listed, one whose name is not in ASCII always is: which
    /// of them it stands for is decided later, by the transport.
    public func policy(for host: String) -> TrustPolicy? {
        if hosts.isEmpty { return standard }
        guard host.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let host = Self.normal(host)
        if let policy = policy(named: host) { return policy }
        var rest = host[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if let policy = policy(named: "*.\(rest)") { return policy }
        }
        return standard
    }

    private func policy(named name: String) -> TrustPolicy? {
        if let policy = hosts[name] { return policy }
        return hosts.first { Self.normal($0.key) == name }?.value
    }

    private static func normal(_ host: String) -> String {
        let host = host.lowercased()
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }

    static func refusal(of host: String) -> TransferFailure {
        let isPlain = host.utf8.allSatisfy { $0 < 0x80 }
        let hint = isPlain ? "" : "; where hosts are listed, a name stands as it is sent (xn--…)"
        return TransferFailure(
            .untrustedServer, "no trust policy is for \(host), and hosts without one are refused\(hint)")
    }

    static let proxyReason = "trust policies and a proxy that is itself reached by TLS exclude each other"

    /// Nothing is asked for that TLS libraries do not do by themselves.
    var isDefault: Bool { hosts.isEmpty && standard == TrustPolicy() }

    var all: [TrustPolicy] { Array(hosts.values) + (standard.map { [$0] } ?? []) }

    /// Why hosts are not named as they must be; nil when they are.
    var problem: String? {
        var names: Set<String> = []
        for host in hosts.keys {
            let written = host.printable(limit: 80)
            if host.utf8.contains(where: { $0 >= 0x80 }) { return "\"\(written)\" must stand as it is sent, xn--…" }
            let normal = Self.normal(host)
            let name = normal.hasPrefix("*.") ? normal.dropFirst(2) : normal[...]
            let isName = name.utf8.allSatisfy { ByteSet.unreserved.contains($0) || $0 == UInt8(ascii: ":") }
            if name.isEmpty || !isName { return "\"\(written)\" is no host to trust" }
            if !names.insert(normal).inserted { return "\"\(written)\" has two policies" }
        }
        return nil
    }
}
