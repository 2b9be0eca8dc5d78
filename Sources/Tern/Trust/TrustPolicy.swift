#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Whom a TLS connection is made with, and as whom: decided before any byte of a request is sent.
///
/// ```swift
/// var pinned = TrustPolicy(pins: [
///     try Pin(key: "sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),   // in use
///     try Pin(key: "sha256/x4QzPSC810K5/cMjb05Qm4k3Bw5zBn4lTdO/nEW/Td4="),   // in the safe, for the day after
/// ])
/// configuration.trust.hosts["api.example.com"] = pinned
/// ```
public struct TrustPolicy: Sendable, Hashable {
    /// To whom a certificate chain must lead.
    public enum Anchors: Sendable, Hashable {
        /// The session's authorities (`Session.Configuration.authorities`): the system's by default.
        case standard
        /// The system's and these.
        case standardAnd([Certificate])
        /// These alone: authorities, or the server's very certificate.
        case only([Certificate])
        /// Nobody: every certificate is taken, expired and self-signed ones too. Pins are then compared with the
        /// server's own alone. For one's own machines in development.
        case none
    }

    /// Which certificates of a chain a pin may fit.
    public enum PinScope: Sendable, Hashable {
        /// Any one of the chain that was verified. What a server sends besides does not count.
        case chain
        /// The server's own.
        case leaf
    }

    /// What is asked about revoked certificates.
    public enum Revocation: Sendable, Hashable {
        /// Nothing; the default.
        case unchecked
        /// The server must show that its certificate is not revoked (OCSP stapling, RFC 6066 §8). libcurl alone.
        case requireStaple
        /// A list of revoked certificates in PEM form, in a file. libcurl with OpenSSL alone; every authority of the chain
        /// needs its list.
        case list(file: String)
    }

    /// To whom the chain must lead. `.standard` by default.
    public var anchors: Anchors
    /// Of which at least one must fit, besides the anchors; nil for none. Keep a backup: with pins and no fitting key left,
    /// nobody connects. An empty list fits nothing.
    public var pins: [Pin]?
    /// Which certificates the pins may fit. `.chain` by default.
    public var pinScope = PinScope.chain
    /// From when on the pins no longer count, so that a program that is not updated goes on with the anchors alone. nil, never,
    /// by default.
    public var pinsExpire: Date?
    /// Whether pins that do not fit are only told (`SessionObserver.didFindUnpinned`, `TaskMetrics.pinReport`). False by
    /// default.
    public var isReportOnly = false
    /// Whether the certificate must be for the host's name or address (RFC 9110 §4.3.4). True by default.
    public var checksHostName = true
    /// The least version of TLS. 1.2 by default.
    public var minimumVersion = TLSVersion.tls12
    /// What is asked about revoked certificates. `.unchecked` by default.
    public var revocation = Revocation.unchecked
    /// As whom to connect where a server asks; nil for nobody.
    public var identity: ClientIdentity?

    /// A policy with these anchors and pins, and the defaults of the rest.
    public init(anchors: Anchors = .standard, pins: [Pin]? = nil) {
        self.anchors = anchors
        self.pins = pins
    }

    /// AFNetworking's certificate mode: the certificates are the only anchors, and one of them must be in the chain.
    public static func pinned(to certificates: [Certificate]) -> TrustPolicy {
        TrustPolicy(anchors: .only(certificates), pins: certificates.map { .certificate($0) })
    }

    /// AFNetworking's public key mode: the keys of these certificates are the pins, whoever has signed for them.
    public static func pinnedKeys(of certificates: [Certificate]) -> TrustPolicy {
        TrustPolicy(pins: certificates.map { .key(of: $0) })
    }

    /// Takes every certificate for every name: encrypted, but to whom is not known. For one's own machines in development.
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

    /// Orders by age.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
