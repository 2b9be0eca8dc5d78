/// The trust policies of a session, by host.
///
/// The key is a host's name or address, or `*.example.com` for every name under `example.com`, at any depth but not itself.
/// An exact name goes before a wildcard, and a longer wildcard before a shorter one.
public struct TrustPolicies: Sendable, Hashable {
    /// For hosts that are not listed; nil refuses them.
    public var standard: TrustPolicy? = TrustPolicy()
    /// By host.
    public var hosts: [String: TrustPolicy] = [:]

    /// The default policy for every host.
    public init() {}

    /// One policy for every host.
    init(for policy: TrustPolicy) { standard = policy }

    /// The policy for a host; nil when it is refused.
    public func policy(for host: String) -> TrustPolicy? {
        if hosts.isEmpty { return standard }
        let host = host.lowercased()
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
        return hosts.first { $0.key.lowercased() == name }?.value
    }

    /// Nothing is asked for that TLS libraries do not do by themselves.
    var isDefault: Bool { hosts.isEmpty && standard == TrustPolicy() }

    var all: [TrustPolicy] { Array(hosts.values) + (standard.map { [$0] } ?? []) }

    /// Why hosts are not named as they must be; nil when they are.
    var problem: String? {
        for host in hosts.keys {
            let name = host.hasPrefix("*.") ? host.dropFirst(2) : host[...]
            let isName = name.utf8.allSatisfy { byte in
                ByteSet.unreserved.contains(byte) || byte == UInt8(ascii: ":") || byte >= 0x80
            }
            if name.isEmpty || !isName { return "\"\(host.printable(limit: 80))\" is no host to trust" }
        }
        return nil
    }
}
