#if os(Linux)
import CTernOpenSSL

/// The certificates and the key of a policy's identity in PEM form, for a handshake that another library makes. The
/// memory is cleared at the end.
@safe package final class TLSExportedIdentity {
    private let chain: tern_ssl_secret
    private let key: tern_ssl_secret

    /// Creates a copy of the identity; nil if the policy has none.
    package init?(of policy: TLSPolicy) throws(EngineError) {
        guard policy.options.identity != nil else { return nil }
        let context = try policy.context()
        var chain = unsafe tern_ssl_secret()
        var key = unsafe tern_ssl_secret()
        let isWritten = unsafe tern_ssl_context_get_identity(OpaquePointer(bitPattern: context), &chain, &key) == 1
        unsafe self.chain = chain
        unsafe self.key = key
        guard isWritten else { throw EngineError(.tls, "the identity of the client cannot be used over HTTP/3") }
    }

    deinit {
        unsafe tern_ssl_secret_free(chain)
        unsafe tern_ssl_secret_free(key)
    }

    /// The certificates, the identity's own first, and the key. Valid as long as the object.
    var bytes: (chain: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) {
        unsafe (
            UnsafeRawBufferPointer(start: chain.bytes, count: chain.length),
            UnsafeRawBufferPointer(start: key.bytes, count: key.length)
        )
    }
}
#endif
