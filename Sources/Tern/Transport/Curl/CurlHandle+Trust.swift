#if os(Linux)
import CTernCurl
import FoundationEssentials

extension CurlHandle {
    /// Sets the part of a trust policy that libcurl itself enforces. libcurl's connections store these options, and are
    /// never used with others.
    func apply(_ policy: TrustPolicy) {
        set(CURLOPT_SSL_VERIFYPEER, policy.anchors == .none && !TLSBackend.current.isOpenSSL ? 0 : 1)
        set(CURLOPT_SSL_VERIFYHOST, policy.checksHostName ? 2 : 0)
        let version = policy.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        set(CURLOPT_SSLVERSION, Int(version))
        set(CURLOPT_SSL_VERIFYSTATUS, policy.revocation == .requireStaple ? 1 : 0)
        let list: String? = if case .list(let file) = policy.revocation { file } else { nil }
        unsafe tern_easy_set_string(easy, CURLOPT_CRLFILE, list)
        let pins = TLSBackend.current.isOpenSSL ? nil : policy.libcurlPins
        unsafe tern_easy_set_string(easy, CURLOPT_PINNEDPUBLICKEY, pins)
        apply(policy.identity)
    }

    private func apply(_ identity: ClientIdentity?) {
        // Never nil. Otherwise libcurl, or OpenSSL at the terminal, would look for the password of an encrypted key.
        unsafe tern_easy_set_string(easy, CURLOPT_KEYPASSWD, identity.map { $0.password ?? "" })
        switch identity?.content {
        case nil:
            unsafe tern_easy_clear_blob(easy, CURLOPT_SSLCERT_BLOB)
            unsafe tern_easy_clear_blob(easy, CURLOPT_SSLKEY_BLOB)
        case .pem(let certificates, let key):
            unsafe tern_easy_set_string(easy, CURLOPT_SSLCERTTYPE, "PEM")
            unsafe tern_easy_set_string(easy, CURLOPT_SSLKEYTYPE, "PEM")
            setBlob(CURLOPT_SSLCERT_BLOB, certificates)
            setBlob(CURLOPT_SSLKEY_BLOB, key)
        case .pkcs12(let bytes):
            unsafe tern_easy_set_string(easy, CURLOPT_SSLCERTTYPE, "P12")
            setBlob(CURLOPT_SSLCERT_BLOB, bytes)
            unsafe tern_easy_clear_blob(easy, CURLOPT_SSLKEY_BLOB)
        }
    }

    private func setBlob(_ option: CURLoption, _ data: Data) {
        unsafe data.withUnsafeBytes { bytes in
            // libcurl copies.
            _ = unsafe tern_easy_set_blob(
                easy, option, UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
        }
    }
}
#endif
