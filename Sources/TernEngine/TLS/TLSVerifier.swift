#if os(Linux)
import CTernOpenSSL

/// Judges the certificates of a server whose handshake another library makes, as in QUIC: by the same rules as those of
/// a `TLSSession`. Confined to the thread of the connection.
@safe final class TLSVerifier {
    private let session: OpaquePointer
    private let judgement: TLSJudgement
    private let target: TLSTarget
    /// The key under which tickets of the connection are kept; nil if none are.
    let ticketKey: TicketKey?
    /// The reason of a refusal; nil if there is none.
    private(set) var failure: EngineError?

    init(policy: TLSPolicy, target: TLSTarget) throws(EngineError) {
        guard let host = TLSSession.checkedName(target.host) else {
            throw EngineError(.invalidRequest, "\"\(target.host)\" is not a host for TLS")
        }
        let context = try policy.context()
        let key = TicketKey(policy: policy.identifier, origin: target.origin, host: host, protocols: target.protocols)
        let judgement = TLSJudgement(policy: policy, host: target.host, resumption: nil, key: key)
        let session = unsafe tern_ssl_session_create(
            OpaquePointer(bitPattern: context), -1, nil, host, policy.options.checksHostName ? 1 : 0,
            judgement.callbacks)
        guard let session = unsafe session else {
            throw EngineError(.tls, "TLS with \(target.authority) failed: OpenSSL cannot create a session")
        }
        unsafe self.session = session
        self.judgement = judgement
        self.target = target
        ticketKey = policy.allowsResumption ? key : nil
    }

    deinit { unsafe tern_ssl_session_free(session) }

    /// The name to ask the server for; nil for an address (RFC 6066 §3).
    var serverName: String? {
        let isAddress = SocketAddress(numeric: target.host, port: 0) != nil
        return isAddress ? nil : TLSSession.checkedName(target.host)
    }

    /// Judges certificates in DER form, the server's own first, and a stapled response, which may be empty. Returns 0 to
    /// accept them, or the alert that refuses them (RFC 8446 §6.2).
    func judge(_ certificates: [UnsafeRawBufferPointer], staple: UnsafeRawBufferPointer) -> UInt8 {
        let list = unsafe certificates.map { unsafe Self.bytes($0) }
        let isAccepted = unsafe list.withUnsafeBufferPointer { list in
            unsafe tern_ssl_judge_certificates(session, list.baseAddress, list.count, Self.bytes(staple)) == 1
        }
        if isAccepted {
            judgement.finishHandshake(resumed: nil, chainExpiry: chainExpiry)
            return 0
        }
        let reason = unsafe tern_ssl_session_failure(session)
        failure = unsafe TLSFailure.error(reason, isHandshake: true, refusal: judgement.refusal, target: target)
        // bad_certificate
        return 42
    }

    private static func bytes(_ bytes: UnsafeRawBufferPointer) -> tern_ssl_bytes {
        unsafe tern_ssl_bytes(bytes: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), length: bytes.count)
    }

    /// The time, in seconds since 1970, at which the first certificate of the verified chain expires.
    var chainExpiry: Int64 { unsafe tern_ssl_chain_expiry(session) }

    /// The report of the judge; nil if there is none.
    var pinReport: String? { judgement.report }

    /// The review of the connection, to be done before its first request; nil for none.
    var review: (@Sendable () async -> TLSVerdict)? { judgement.review }
}
#endif
