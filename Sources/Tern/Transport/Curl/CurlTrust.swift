#if os(Linux)
import CTernCurl
import CTernTLS
import FoundationEssentials

/// Applies the trust policies of one pool to libcurl and OpenSSL. Confined to the loop's thread, on which OpenSSL calls
/// back, too.
final class CurlTrust {
    let policies: TrustPolicies
    private let authorities: Session.Configuration.Authorities
    private var anchors: [TrustAnchors.Key: TrustAnchors] = [:]

    init(_ policies: TrustPolicies, _ authorities: Session.Configuration.Authorities) {
        self.policies = policies
        self.authorities = authorities
    }

    /// Returns whether a policy needs OpenSSL because libcurl's own options cannot express it.
    static func needsOpenSSL(_ policy: TrustPolicy) -> Bool {
        if policy.anchors != .standard { return true }
        guard policy.pins != nil else { return false }
        return TLSBackend.current.isOpenSSL || policy.libcurlPins == nil
    }

    /// Prepares the handshake of an attempt's new connection. Returns false if the handshake must not begin.
    func prepare(_ context: UnsafeMutableRawPointer, for transfer: CurlTransfer) -> Bool {
        let host = transfer.transfer.request.target.host
        guard let policy = policies.policy(for: host) else { return false }
        guard Self.needsOpenSSL(policy) else { return true }
        var own: TrustAnchors?
        switch policy.anchors {
        case .standard, .none:
            break
        case .standardAnd, .only:
            own = anchors(of: policy)
            if policy.revocation == .requireStaple, unsafe !usesForStaples(policy, context) { own = nil }
            guard own != nil else {
                let reason = "OpenSSL cannot read the anchors for \(host), or the list of revoked certificates"
                transfer.trustFailure = TransferFailure(.invalidRequest, reason)
                return false
            }
        }
        let judge = unsafe Unmanaged.passRetained(TrustJudge(transfer, policy: policy, anchors: own, host: host))
            .toOpaque()
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
        let key = TrustAnchors.Key(policy)
        if let known = anchors[key] { return known }
        let made = TrustAnchors(key, authorities)
        anchors[key] = made
        return made
    }

    /// Sets the anchors for stapled responses. libcurl judges the staple with the set of the SSL_CTX, so each
    /// connection gets a set to which libcurl may add.
    private func usesForStaples(_ policy: TrustPolicy, _ context: UnsafeMutableRawPointer) -> Bool {
        guard let copy = TrustAnchors(TrustAnchors.Key(policy), authorities) else { return false }
        unsafe tern_tls_use_anchors(context, copy.store)
        return true
    }
}

/// Judges the one handshake of one connection. OpenSSL owns the judge together with the connection.
private final class TrustJudge {
    // The transfer that made the connection and gets the result. The connection outlives the transfer, and the result
    // must not go to another one.
    private weak var transfer: CurlTransfer?
    private let policy: TrustPolicy
    /// The anchors to verify with; nil for libcurl's own.
    private let anchors: TrustAnchors?
    private let host: String

    init(_ transfer: CurlTransfer, policy: TrustPolicy, anchors: TrustAnchors?, host: String) {
        self.transfer = transfer
        self.policy = policy
        self.anchors = anchors
        self.host = host
    }

    func judge(_ store: UnsafeMutableRawPointer) -> Bool {
        let isVerified = policy.anchors != .none
        // libcurl reports OpenSSL's own refusals.
        if let anchors {
            guard unsafe tern_tls_verify_with(store, anchors.store) == 1 else { return false }
        } else if isVerified {
            guard unsafe tern_tls_verify(store) == 1 else { return false }
        } else {
            unsafe tern_tls_accept(store)
        }
        if policy.pins == nil { return true }
        let chain = unsafe Self.chain(store, isVerified: isVerified)
        switch policy.verdict(on: chain, of: host, now: Date()) {
        case .accepted:
            return true
        case .reported(let report):
            transfer?.pinReport = report
            return true
        case .refused(let reason):
            transfer?.trustFailure = TransferFailure(.pinMismatch, reason)
            return false
        }
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
            // A certificate that OpenSSL accepts is also valid here. If it is not, no pin matches it.
            if let certificate = try? Certificate(der: der) { chain.append(certificate) }
        }
        return chain
    }
}

/// A set of anchors in OpenSSL's form, created once for all connections.
@safe private final class TrustAnchors {
    struct Key: Hashable {
        let anchors: TrustPolicy.Anchors
        let revocation: TrustPolicy.Revocation

        init(_ policy: TrustPolicy) {
            anchors = policy.anchors
            revocation = policy.revocation
        }
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
            // If the file is not readable, there is no connection, as with libcurl.
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
        // libcurl has put the lists into its own set, which this set replaces.
        if case .list(let file) = key.revocation, unsafe tern_tls_anchors_add_revoked(store, file) != 1 { return nil }
    }

    deinit { unsafe tern_tls_anchors_free(store) }
}
#endif
