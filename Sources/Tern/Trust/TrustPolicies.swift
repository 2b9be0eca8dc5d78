/// The trust policies of a session, by host.
///
/// The key is a host's name or address, or `*.example.com` for every name under `example.com`, at any depth but not itself.
/// An exact name takes precedence over a wildcard, and a longer wildcard over a shorter one. Hosts are compared in the
/// canonical form of WHATWG's URL standard: upper case and a dot at the end make no difference, `bücher.example` equals
/// `xn--bcher-kva.example`, and `127.1` equals `127.0.0.1`.
public struct TrustPolicies: Sendable, Hashable {
    /// The policy for hosts that are not listed; nil refuses them.
    public var standard: TrustPolicy? = TrustPolicy()
    /// The policies by host.
    public var hosts: [String: TrustPolicy] = [:] {
        didSet { canonical = Self.canonical(hosts) }
    }
    /// The policies by the canonical form of the host.
    private var canonical: [String: TrustPolicy] = [:]

    /// Creates the default policy for every host.
    public init() {}

    /// Creates one policy for every host.
    init(for policy: TrustPolicy) { standard = policy }

    /// Returns the policy for a host; nil when the host is refused. If hosts are listed, a text that is not a valid
    /// host is refused.
    public func policy(for host: String) -> TrustPolicy? {
        if hosts.isEmpty { return standard }
        // The reason of an invalid host is reported when it is requested.
        guard let host = try? CanonicalHost(host) else { return nil }
        if let policy = canonical[host.text] { return policy }
        if host.isAddress { return standard }
        var rest = host.text[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[dot...]
            if let policy = canonical["*\(rest)"] { return policy }
            rest = rest.dropFirst()
        }
        return standard
    }

    private static func canonical(_ hosts: [String: TrustPolicy]) -> [String: TrustPolicy] {
        var result: [String: TrustPolicy] = [:]
        // Invalid keys are a `problem`, which prevents every request.
        for (key, policy) in hosts { if let key = canonicalKey(key) { result[key] = policy } }
        return result
    }

    /// Returns the canonical form of a key; nil for a key that names no host.
    private static func canonicalKey(_ key: String) -> String? {
        let isWildcard = key.hasPrefix("*.")
        // The reason of the error is not needed, because the message quotes the key.
        guard let host = try? CanonicalHost(isWildcard ? String(key.dropFirst(2)) : key) else { return nil }
        if isWildcard { return host.isAddress ? nil : "*.\(host)" }
        return host.text
    }

    static func refusal(of host: String) -> TransferFailure {
        TransferFailure(.untrustedServer, "no trust policy is for \(host), and hosts without one are refused")
    }

    /// A Boolean value that indicates whether the policies ask for nothing beyond the TLS library's own checks.
    var isDefault: Bool { hosts.isEmpty && standard == TrustPolicy() }

    var all: [TrustPolicy] { Array(hosts.values) + (standard.map { [$0] } ?? []) }

    /// The reason why a host is not valid; nil if all are.
    var problem: String? {
        var names: Set<String> = []
        for host in hosts.keys {
            let written = host.printable(limit: 80)
            guard let key = Self.canonicalKey(host) else { return "\"\(written)\" is no host to trust" }
            if !names.insert(key).inserted { return "\"\(written)\" has two policies" }
        }
        return nil
    }
}
