#if os(Linux)
import CTernCurl
import CTernTLS
import FoundationEssentials

/// The trust policies of one pool, as libcurl and OpenSSL are told of them. Confined to the loop's thread, on which OpenSSL
/// asks as well.
final class CurlTrust {
    let policies: TrustPolicies
    private let authorities: Session.Configuration.Authorities
    private var anchors: [TrustAnchors.Key: TrustAnchors] = [:]
    /// By host: why the newest handshake was refused, and what is to be told of the newest one that was not.
    private var refusals: [String: TransferFailure] = [:]
    private var reports: [String: String] = [:]

    init(_ policies: TrustPolicies, _ authorities: Session.Configuration.Authorities) {
        self.policies = policies
        self.authorities = authorities
    }

    /// Whether OpenSSL must be asked, because libcurl's own options do not know what the policy wants.
    static func needsOpenSSL(_ policy: TrustPolicy) -> Bool {
        if policy.anchors != .standard { return true }
        guard policy.pins != nil else { return false }
        return TLSBackend.current.isOpenSSL || policy.libcurlPins == nil
    }

    /// Why the newest handshake with a host was refused; several transfers may end on it.
    func refusal(of host: String) -> TransferFailure? { refusals[host] }
    func takeReport(_ host: String) -> String? { reports.removeValue(forKey: host) }

    /// Before a handshake; false when it must not begin.
    func prepare(_ context: UnsafeMutableRawPointer, host: String) -> Bool {
        guard let policy = policies.policy(for: host) else { return false }
        guard Self.needsOpenSSL(policy) else { return true }
        switch policy.anchors {
        case .standard, .none:
            break
        case .standardAnd, .only:
            guard let anchors = anchors(of: policy) else {
                let reason = "OpenSSL cannot read the anchors for \(host), or the list of revoked certificates"
                refusals[host] = TransferFailure(.invalidRequest, reason)
                return false
            }
            unsafe tern_tls_use_anchors(context, anchors.store)
        }
        let judge = unsafe Unmanaged.passRetained(TrustJudge(self, policy, host: host)).toOpaque()
        return unsafe tern_tls_attach(
            context, judge,
            { judge, store in
                guard let judge = unsafe judge, let store = unsafe store else { return 0 }
                return unsafe Unmanaged<TrustJudge>.fromOpaque(judge).takeUnretainedValue().judge(store) ? 1 : 0
            },
            { judge in
                if let judge = unsafe judge { unsafe Unmanaged<TrustJudge>.fromOpaque(judge).release() }
            }) == 1
    }

    private func anchors(of policy: TrustPolicy) -> TrustAnchors? {
        let key = TrustAnchors.Key(anchors: policy.anchors, revocation: policy.revocation)
        if let known = anchors[key] { return known }
        let made = TrustAnchors(key, authorities)
        anchors[key] = made
        return made
    }

    fileprivate func note(_ verdict: TrustVerdict, _ host: String) {
        if case .refused = verdict {} else { refusals[host] = nil }
        switch verdict {
        case .accepted: break
        case .reported(let report): reports[host] = report
        case .refused(let reason): refusals[host] = TransferFailure(.pinMismatch, reason)
        }
    }
}

/// Judges the one handshake of one connection; OpenSSL owns it with the connection.
private final class TrustJudge {
    // The pool outlives its connections, but not by much: nothing is asked of it once it has gone.
    private weak var trust: CurlTrust?
    private let policy: TrustPolicy
    private let host: String

    init(_ trust: CurlTrust, _ policy: TrustPolicy, host: String) {
        self.trust = trust
        self.policy = policy
        self.host = host
    }

    func judge(_ store: UnsafeMutableRawPointer) -> Bool {
        guard let trust else { return false }
        let isVerified = policy.anchors != .none
        if isVerified {
            var reason: UnsafePointer<CChar>?
            // OpenSSL's own refusal is libcurl's to tell.
            guard unsafe tern_tls_verify(store, &reason) == 1 else { return false }
        } else {
            unsafe tern_tls_accept(store)
        }
        if policy.pins == nil { return true }
        let chain = unsafe Self.chain(store, isVerified: isVerified)
        let verdict = policy.verdict(on: chain, of: host, now: Date())
        trust.note(verdict, host)
        if case .refused = verdict { return false }
        return true
    }

    private static func chain(_ store: UnsafeMutableRawPointer, isVerified: Bool) -> [Certificate] {
        let which: Int32 = isVerified ? 1 : 0
        let length = unsafe tern_tls_chain_length(store, which)
        var chain: [Certificate] = []
        for index in 0..<max(0, length) {
            var bytes: UnsafeMutablePointer<UInt8>?
            let count = unsafe tern_tls_chain_certificate(store, which, index, &bytes)
            guard count > 0, let start = unsafe bytes else { continue }
            let der = unsafe Data(bytes: start, count: Int(count))
            unsafe tern_tls_free(start)
            // What OpenSSL took for a certificate is one for us too; if not, no pin fits it.
            if let certificate = try? Certificate(der: der) { chain.append(certificate) }
        }
        return chain
    }
}

/// A set of anchors in OpenSSL's form, made once for all connections.
@safe private final class TrustAnchors {
    struct Key: Hashable {
        let anchors: TrustPolicy.Anchors
        let revocation: TrustPolicy.Revocation
    }

    let store: UnsafeMutableRawPointer

    init?(_ key: Key, _ authorities: Session.Configuration.Authorities) {
        let (certificates, isAdded): ([Certificate], Bool) =
            switch key.anchors {
            case .standard, .none: ([], true)
            case .standardAnd(let certificates): (certificates, true)
            case .only(let certificates): (certificates, false)
            }
        var file = unsafe tern_curl_ca_file().map { unsafe String(cString: $0) }
        var more: [Certificate] = []
        var isSystem = isAdded
        switch authorities {
        case .system: break
        case .file(let path): file = path
        case .pem(let pem):
            isSystem = false
            guard isAdded else { break }
            // Unreadable: no connection is made, as libcurl would make none.
            guard let certificates = try? Certificate.load(pem: pem) else { return nil }
            more = certificates
        }
        guard let store = unsafe tern_tls_anchors_create(isSystem ? 1 : 0, isAdded ? file : nil) else { return nil }
        unsafe self.store = store
        for certificate in certificates + (isAdded ? more : []) {
            let isTaken = unsafe certificate.der.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress else { return Int32(0) }
                return unsafe tern_tls_anchors_add(store, start.assumingMemoryBound(to: UInt8.self), bytes.count)
            }
            if isTaken != 1 { return nil }
        }
        // libcurl has put the lists into its own set, which this one replaces.
        if case .list(let file) = key.revocation, unsafe tern_tls_anchors_add_revoked(store, file) != 1 { return nil }
    }

    deinit { unsafe tern_tls_anchors_free(store) }
}
#endif
