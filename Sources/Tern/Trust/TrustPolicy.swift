#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The rules by which a session trusts a server, and the identity that it presents. They apply before any byte of a
/// request is sent.
///
/// ```swift
/// var pinned = TrustPolicy(pins: [
///     try Pin(key: "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),   // in use
/// try Pin(key: "sha256/x4QzPSC810K5/cMjb05Qm4k3Bw5zBn4lTdO/nEW/Td4="),   // a backup key
/// ])
/// configuration.trust.hosts["api.example.com"] = pinned
/// ```
public struct TrustPolicy: Sendable, Hashable {
    /// The authorities that a certificate chain must lead to.
    public enum Anchors: Sendable, Hashable {
        /// The session's authorities (`Session.Configuration.authorities`), by default those of the system.
        case standard
        /// The system's authorities and these.
        case standardAnd([Certificate])
        /// Only these: authorities, or the server's own certificate.
        case only([Certificate])
        /// No authority: every certificate is accepted, including expired and self-signed ones. Pins are compared with
        /// the server's own certificate only. For your own machines during development.
        case none
    }

    /// The certificates of a chain that a pin can match.
    public enum PinScope: Sendable, Hashable {
        /// Every certificate of the verified chain. Other certificates that a server sends do not count.
        case chain
        /// The server's own certificate.
        case leaf
    }

    /// The check for revoked certificates.
    public enum Revocation: Sendable, Hashable {
        /// No check. The default.
        case unchecked
        /// The server must prove that its certificate is not revoked (OCSP stapling, RFC 6066 §8). Supported on
        /// Linux only.
        case requireStaple
        /// A file with lists of revoked certificates in PEM form. Supported on Linux only. Every authority of
        /// the chain needs its list.
        case list(file: String)
    }

    /// The authorities that the chain must lead to. `.standard` by default.
    public var anchors: Anchors
    /// The pins of which at least one must match, besides the anchors; nil for none. Keep a backup key: without a
    /// matching key, no connection is made. An empty list matches nothing.
    public var pins: [Pin]?
    /// The certificates that the pins can match. `.chain` by default.
    public var pinScope = PinScope.chain
    /// The date from which pins no longer apply, so that a program that is not updated continues with the anchors
    /// alone. The default, nil, means never.
    public var pinsExpire: Date?
    /// A Boolean value that indicates whether pins that do not match are only reported
    /// (`SessionObserver.didFindUnpinned`, `TaskMetrics.pinReport`). False by default.
    public var isReportOnly = false
    /// A Boolean value that indicates whether the certificate must be for the host's name or address (RFC 9110 §4.3.4).
    /// True by default.
    public var checksHostName = true
    /// The minimum version of TLS. 1.2 by default.
    public var minimumVersion = TLSVersion.tls12
    /// The check for revoked certificates. `.unchecked` by default.
    public var revocation = Revocation.unchecked
    /// The identity to present to a server that requests one; nil for none.
    public var identity: ClientIdentity?
    /// A decision of the caller's code, after all other rules; nil, the default, for none. It is asked only about servers
    /// that they accept, unless it is made by ``TrustDecision/acceptingUnverified(_:)``.
    public var decision: TrustDecision?

    /// Creates a policy with these anchors and pins. The other properties have their defaults.
    public init(anchors: Anchors = .standard, pins: [Pin]? = nil) {
        self.anchors = anchors
        self.pins = pins
    }

    /// Returns a policy like AFNetworking's certificate mode: the certificates are the only anchors, and one of them
    /// must be in the chain.
    public static func pinned(to certificates: [Certificate]) -> TrustPolicy {
        TrustPolicy(anchors: .only(certificates), pins: certificates.map { .certificate($0) })
    }

    /// Returns a policy like AFNetworking's public key mode: the keys of these certificates are the pins, for any
    /// issuer.
    public static func pinnedKeys(of certificates: [Certificate]) -> TrustPolicy {
        TrustPolicy(pins: certificates.map { .key(of: $0) })
    }

    /// A policy that accepts every certificate for every name. The connection is encrypted, but the server is not
    /// known. For your own machines during development.
    public static var unchecked: TrustPolicy {
        var policy = TrustPolicy(anchors: .none)
        policy.checksHostName = false
        return policy
    }
}

/// A version of TLS.
public enum TLSVersion: Int, Sendable, Hashable, Comparable {
    /// TLS 1.2 (RFC 5246).
    case tls12
    /// TLS 1.3 (RFC 8446).
    case tls13

    /// Orders versions from old to new.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The trust policies of a session, by host.
///
/// The key is a host's name or address, or `*.example.com` for every name under `example.com`, at any depth but not
/// itself. An exact name takes precedence over a wildcard, and a longer wildcard over a shorter one. Hosts are compared
/// in the canonical form of WHATWG's URL standard: upper case and a dot at the end make no difference, `bücher.example`
/// equals `xn--bcher-kva.example`, and `127.1` equals `127.0.0.1`.
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

    static func refusal(of host: String) -> FailureCause {
        FailureCause(.untrustedServer, "no trust policy is for \(host), and hosts without one are refused")
    }

    /// Whether the policies ask for nothing beyond the TLS library's own checks.
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

extension TrustPolicy {
    /// The reason why nothing can be sent under the policy; nil if requests can be sent.
    var problem: FailureCause? {
        switch anchors {
        case .only(let certificates) where certificates.isEmpty:
            return FailureCause(.invalidRequest, "a trust policy without anchors trusts nobody")
        case .none where revocation != .unchecked:
            return FailureCause(
                .invalidRequest, "a trust policy that takes every certificate cannot ask whether one was revoked")
        default: break
        }
        #if os(Linux) && !TERN_URLSESSION
        return nil
        #else
        return problemOfURLSession
        #endif
    }

    #if TERN_URLSESSION || !os(Linux)
    /// The reason why URLSession cannot apply the policy; nil if it can.
    private var problemOfURLSession: FailureCause? {
        if self == TrustPolicy() { return nil }
        #if canImport(FoundationNetworking)
        return FailureCause(.unsupported, "FoundationNetworking checks certificates by the system's rules alone")
        #else
        if revocation != .unchecked {
            return FailureCause(
                .unsupported, "URLSession asks about revoked certificates by the system's rules alone")
        }
        if case .pem? = identity?.content {
            return FailureCause(.unsupported, "the system takes a client's identity as PKCS#12 alone")
        }
        if minimumVersion != .tls12 {
            return FailureCause(.unsupported, "URLSession has one minimum version of TLS for a whole session")
        }
        return nil
        #endif
    }
    #endif
}
