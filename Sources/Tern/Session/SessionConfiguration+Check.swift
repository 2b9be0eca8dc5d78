extension Session.Configuration {
    /// Looks for what would make every request of a session fail: limits below their least value, addresses that are
    /// none, trust policies that this platform, or the TLS library of the libcurl that runs, cannot carry out. A session
    /// made with such a configuration fails each request with the same error, before anything is sent.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` or `.unsupported`; the latter names the library.
    public func check() throws(NetworkError) {
        if let problem { throw NetworkError(problem.kind, reason: problem.reason) }
    }

    var problem: TransferFailure? {
        if let limitProblem {
            return TransferFailure(.invalidRequest, "the session's configuration: \(limitProblem)")
        }
        if let problem = SessionHeaders(headers, secretsTo: secretHeaderOrigins).problem {
            return TransferFailure(.invalidRequest, "the session's configuration: \(problem)")
        }
        if let networkProblem {
            return TransferFailure(.invalidRequest, "the session's configuration: \(networkProblem)")
        }
        if let problem = trust.problem {
            return TransferFailure(.invalidRequest, "the session's trust policies: \(problem)")
        }
        if let problem = trust.all.lazy.compactMap(Self.problem(of:)).first { return problem }
        if !trust.isDefault, givenProxies.contains(where: { $0.kind == .https }) {
            // libcurl would have the proxy's certificate judged by the policy of the host behind it.
            return TransferFailure(.unsupported, TrustPolicies.proxyReason)
        }
        return nil
    }

    /// A limit that no request can keep: of connections none, of bytes fewer than none.
    private var limitProblem: String? {
        let limits = [
            ("maximumConnectionsPerHost", Int64(maximumConnectionsPerHost), 1),
            ("maximumConnections", Int64(maximumConnections), 1), ("maximumHeadSize", Int64(maximumHeadSize), 1),
            ("maximumBodySize", Int64(maximumBodySize), 0), ("maximumDecompressedSize", maximumDecompressedSize, 0),
            ("maximumDecompressionRatio", Int64(maximumDecompressionRatio), 1),
            ("errorBodyLimit", Int64(errorBodyLimit), 0), ("maximumRedirects", Int64(maximumRedirects), 0),
        ]
        guard let wrong = limits.first(where: { $0.1 < $0.2 }) else {
            if idleConnectionLifetime < .zero { return "idleConnectionLifetime is negative" }
            return timeouts.problem.map { "timeouts: \($0)" }
        }
        return "\(wrong.0) is \(wrong.1), and must be at least \(wrong.2)"
    }

    /// Why nothing can be sent under a policy; nil when it can.
    static func problem(of policy: TrustPolicy) -> TransferFailure? {
        switch policy.anchors {
        case .only(let certificates) where certificates.isEmpty:
            return TransferFailure(.invalidRequest, "a trust policy without anchors trusts nobody")
        case .none where policy.revocation != .unchecked:
            return TransferFailure(
                .invalidRequest, "a trust policy that takes every certificate cannot ask whether one was revoked")
        default: break
        }
        #if os(Linux) && !TERN_URLSESSION
        let backend = TLSBackend.current
        if CurlTrust.needsOpenSSL(policy), !backend.isOpenSSL {
            let reason =
                "the trust policy needs a libcurl with OpenSSL 1.1 or 3; this one has \(backend.name), which knows "
            return TransferFailure(.unsupported, reason + "pins of the server's own key alone")
        }
        return nil
        #else
        return URLSessionSettings.problem(of: policy)
        #endif
    }
}
