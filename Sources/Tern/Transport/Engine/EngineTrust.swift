#if os(Linux)
import FoundationEssentials
import TernConcurrency
import TernEngine

/// The trust policies of a session in the engine's form. Each policy is converted once. Confined to the loop's thread.
struct EngineTrust {
    /// The policy of sessions that set nothing. Shared, because loading the system's authorities takes milliseconds.
    private static let standard = TLSPolicy(TrustPolicy(), .system)

    private let authorities: Session.Configuration.Authorities
    private let keyLog: TLSKeyLog?
    private var known: [TrustPolicy: TLSPolicy] = [:]

    init(_ authorities: Session.Configuration.Authorities, keyLog: TLSKeyLog?) {
        self.authorities = authorities
        self.keyLog = keyLog
    }

    mutating func policy(_ policy: TrustPolicy) -> TLSPolicy {
        if authorities == .system, keyLog == nil, policy == TrustPolicy() { return Self.standard }
        if let known = known[policy] { return known }
        // A request can have a policy of its own, and a program can make any number of them.
        if known.count >= 64 { known.removeAll() }
        let made = TLSPolicy(policy, authorities, keyLog: keyLog)
        known[policy] = made
        return made
    }
}

extension TLSPolicy {
    fileprivate convenience init(
        _ policy: TrustPolicy, _ authorities: Session.Configuration.Authorities, keyLog: TLSKeyLog? = nil
    ) {
        var options = TLSOptions(policy, authorities)
        if let keyLog { options.logKeys = { keyLog.write($0) } }
        self.init(options)
    }
}

extension TLSOptions {
    fileprivate init(_ policy: TrustPolicy, _ authorities: Session.Configuration.Authorities) {
        self.init()
        roots =
            switch authorities {
            case .system: .system
            case .file(let path): .file(path)
            case .pem(let bytes): .pem(Array(bytes))
            }
        anchors =
            switch policy.anchors {
            case .standard: .standard
            case .standardAnd(let certificates): .standardAnd(certificates.map { Array($0.der) })
            case .only(let certificates): .only(certificates.map { Array($0.der) })
            case .none: .none
            }
        revocation =
            switch policy.revocation {
            case .unchecked: .unchecked
            case .requireStaple: .requiresStaple
            case .list(let file): .list(file: file)
            }
        checksHostName = policy.checksHostName
        minimumVersion = policy.minimumVersion == .tls13 ? .tls13 : .tls12
        identity =
            switch policy.identity?.content {
            case nil: nil
            case .pem(let certificates, let key):
                .pem(certificates: Array(certificates), key: Array(key), password: policy.identity?.password)
            case .pkcs12(let bytes): .pkcs12(Array(bytes), password: policy.identity?.password ?? "")
            }
        if policy.pins != nil { judge = { policy.judge($0) } }
        guard let decision = policy.decision else { return }
        continuesUnverified = decision.acceptsUnverified
        review = { peer in
            // A certificate that OpenSSL has parsed is also valid here.
            let certificates = peer.chain.compactMap { try? Certificate(der: Data($0)) }
            let server = ServerTrust(
                host: peer.host, certificates: certificates, failure: peer.violation, isVerified: peer.isVerified)
            return await decision.refusal(of: server).map { .refused($0) } ?? .accepted
        }
    }
}

extension TrustPolicy {
    /// Compares the pins with the chain of a handshake.
    fileprivate func judge(_ peer: TLSPeer) -> TLSVerdict {
        // A certificate that OpenSSL accepts is also valid here. If it is not, no pin matches it.
        let chain = peer.chain.compactMap { try? Certificate(der: Data($0)) }
        return switch verdict(on: chain, of: peer.host, now: Date()) {
        case .accepted: .accepted
        case .reported(let report): .reported(report)
        case .refused(let reason): .refused(reason)
        }
    }
}

/// The answers to the challenges of proxies for a tunnel, with the credentials of the proxy's own URL.
enum ProxyAuthorization {
    static func answers(of proxy: ProxyAddress, for target: String) -> ProxyTunnel.Authorize {
        guard let user = proxy.user else { return { _, _ in nil } }
        let credential = Credential.user(user, password: proxy.password ?? "")
        return { challenges, _ in
            let fields = challenges.map { String(decoding: $0, as: UTF8.self) }
            // Without an offer that accepts the credential, the proxy's refusal is the result.
            var answer = try? Authorization(
                credential, answering: AuthenticationRules.answerable(fields), from: .proxy)
            return answer?.value(method: .connect, uri: target)
        }
    }
}
#endif
