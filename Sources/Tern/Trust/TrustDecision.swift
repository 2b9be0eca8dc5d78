import Synchronization

/// The certificates of a server and the result of their verification, for a ``TrustDecision``.
public struct ServerTrust: Sendable {
    /// The host of the connection in canonical form: a name, or an address without brackets.
    public let host: String
    /// The verified chain, the server's own certificate first. If it is not verified, only the server's own certificate,
    /// because the server has proved possession of no other key.
    public let certificates: [Certificate]
    /// The reason why the certificate is not trusted; nil if the chain leads to an anchor of the policy and is for the
    /// host, and for a policy that verifies nothing (`TrustPolicy.Anchors.none`).
    public let failure: String?
    /// A Boolean value that indicates whether the chain was verified under the policy.
    public let isVerified: Bool
}

/// A decision of the caller's code about a server, besides the other rules of a ``TrustPolicy``.
///
/// ```swift
/// let known = TrustDecision { server in
///     guard let key = server.certificates.first?.keyHash, await devices.contains(key) else {
///         throw UnknownDevice(host: server.host)
///     }
/// }
/// configuration.trust.standard = .custom(known)
/// ```
///
/// It is asked once for each connection, after the handshake and before any byte of a request, also when the connection
/// resumes an earlier session of TLS. All other rules come first. A decision can refuse what they accept; only
/// ``acceptingUnverified(_:)`` can accept what they refuse. It accepts by returning, and refuses by throwing: requests
/// then fail with `.untrustedServer` and the error's text. A client certificate of the policy was presented by then.
///
/// The time limit `connect` of the requests that wait for the connection includes the decision, which runs in a Swift
/// task of its own. If none of them waits any longer, the connection counts as idle, and the task is cancelled when
/// `Session.Configuration.idleConnectionLifetime` has passed, or when its place is needed.
///
/// Two decisions are equal if one is a copy of the other. Requests share connections only under equal policies, so make
/// a decision once, and not for each request.
public struct TrustDecision: Sendable, Hashable {
    private static let last = Atomic<UInt64>(0)

    let id: UInt64
    /// Whether the decision is asked about certificates that are not trusted.
    let acceptsUnverified: Bool
    let decide: @Sendable (ServerTrust) async throws -> Void

    /// Creates a decision that can refuse servers.
    public init(_ decide: @escaping @Sendable (_ server: ServerTrust) async throws -> Void) {
        self.init(acceptsUnverified: false, decide)
    }

    private init(acceptsUnverified: Bool, _ decide: @escaping @Sendable (ServerTrust) async throws -> Void) {
        id = Self.last.add(1, ordering: .relaxed).newValue
        self.acceptsUnverified = acceptsUnverified
        self.decide = decide
    }

    /// Creates a decision that is also asked about certificates that the other rules do not trust, and that can accept
    /// them: expired, self-signed, or for another host. Check ``ServerTrust/failure``: to return without a look at it is
    /// to accept every certificate.
    ///
    /// Pins must match nevertheless, and a stapled response that the policy requires must be there. Such connections
    /// resume no session of TLS.
    public static func acceptingUnverified(
        _ decide: @escaping @Sendable (_ server: ServerTrust) async throws -> Void
    ) -> TrustDecision {
        TrustDecision(acceptsUnverified: true, decide)
    }

    /// Returns whether two decisions are the same.
    public static func == (left: Self, right: Self) -> Bool { left.id == right.id }

    /// Hashes the identity of the decision.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }

    /// Returns the text of the refusal; nil if the server is accepted.
    func refusal(of server: ServerTrust) async -> String? {
        do {
            try await decide(server)
            return nil
        } catch {
            return "\(error)".printable(limit: 200)
        }
    }
}

extension TrustDecision: CustomStringConvertible, CustomReflectable {
    /// The number of the decision.
    public var description: String { "decision \(id)\(acceptsUnverified ? ", also on untrusted certificates" : "")" }

    /// An empty mirror. Without it, `dump` would show what the closure holds.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TrustPolicy {
    /// Returns a policy with the default rules and a decision of the caller's code.
    public static func custom(_ decision: TrustDecision) -> TrustPolicy {
        var policy = TrustPolicy()
        policy.decision = decision
        return policy
    }

    /// Whether servers without a trusted certificate can be accepted.
    var canAcceptUntrusted: Bool { anchors == .none || decision?.acceptsUnverified == true }
}
