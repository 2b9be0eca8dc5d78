#if os(Linux)
import CTernOpenSSL

/// Derives errors from the causes that OpenSSL gives. Texts contain no byte that a server sent: OpenSSL's are
/// constants.
enum TLSFailure {
    static func error(
        _ failure: tern_ssl_failure, isHandshake: Bool, refusal: String?, target: TLSTarget
    ) -> EngineError {
        let authority = target.authority
        if unsafe failure.is_refused == 1 {
            return EngineError(.refusedByPolicy, refusal ?? "the trust policy refused the certificate of \(authority)")
        }
        if let reason = unsafe untrustedReason(failure, host: target.host) {
            return EngineError(.untrustedServer, "the certificate of \(authority) is not trusted: \(reason)")
        }
        let code = unsafe failure.system_error
        if code != 0, !isHandshake {
            let reason = "the connection to \(authority) was lost: \(text(of: code))"
            return EngineError(.connectionLost, reason, code: code)
        }
        return unsafe EngineError(.tls, "TLS with \(authority) failed: \(protocolReason(failure))", code: code)
    }

    private static func untrustedReason(_ failure: tern_ssl_failure, host: String) -> String? {
        if unsafe failure.is_other_host == 1 { return "no name of it matches target host name '\(host)'" }
        if unsafe failure.verify_error != 0 { return unsafe constant(failure.text) ?? "its chain is not valid" }
        return unsafe stapleReason(failure.staple)
    }

    private static func stapleReason(_ staple: tern_ssl_staple) -> String? {
        switch staple {
        case TERN_SSL_STAPLE_GOOD: nil
        case TERN_SSL_STAPLE_MISSING: "the server sent no OCSP response"
        case TERN_SSL_STAPLE_MALFORMED: "the OCSP response is malformed or reports an error"
        case TERN_SSL_STAPLE_UNTRUSTED: "the OCSP response has no valid signature"
        case TERN_SSL_STAPLE_FOREIGN: "the OCSP response is for another certificate"
        case TERN_SSL_STAPLE_REVOKED: "certificate revoked"
        case TERN_SSL_STAPLE_OUTDATED: "the OCSP response is out of date"
        default: "the OCSP response does not know the certificate"
        }
    }

    private static func protocolReason(_ failure: tern_ssl_failure) -> String {
        if unsafe failure.is_ended == 1 { return "the connection ended within the handshake" }
        if unsafe failure.is_flood == 1 { return "too many records without data" }
        if unsafe failure.system_error != 0 { return unsafe text(of: failure.system_error) }
        let text = unsafe constant(failure.text) ?? "OpenSSL gives no reason"
        guard unsafe failure.is_not_tls == 1 else { return text }
        return "the server answered without TLS, as on a port for plain HTTP (\(text))"
    }

    private static func constant(_ text: UnsafePointer<CChar>?) -> String? {
        guard let text = unsafe text else { return nil }
        return unsafe String(cString: text)
    }

    private static func text(of code: Int32) -> String {
        var text: [CChar] = Array(repeating: 0, count: 128)
        let count = text.count
        unsafe text.withUnsafeMutableBufferPointer { unsafe tern_ssl_system_text(code, $0.baseAddress, count) }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
#endif
