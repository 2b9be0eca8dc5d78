#if os(Linux)
import CTernOpenSSL

/// Creates OpenSSL's context for a trust policy.
@safe struct TLSContextBuilder {
    private let context: OpaquePointer

    /// Returns the address of a new context, which the caller owns.
    static func build(_ options: TLSOptions) throws(EngineError) -> UInt {
        let context = unsafe tern_ssl_context_create(
            options.minimumVersion == .tls13 ? 1 : 0, options.anchors == .none ? 0 : 1,
            options.revocation == .requiresStaple ? 1 : 0)
        guard let context = unsafe context else {
            throw EngineError(.tls, "OpenSSL cannot create a context: \(reason)")
        }
        if options.logKeys != nil { unsafe tern_ssl_context_log_keys(context) }
        let builder = unsafe TLSContextBuilder(context: context)
        do throws(EngineError) {
            try builder.addAnchors(of: options)
            try builder.addRevoked(options.revocation)
            try builder.setIdentity(options.identity)
        } catch {
            unsafe tern_ssl_context_free(context)
            throw error
        }
        return UInt(bitPattern: context)
    }

    private static var reason: String { unsafe String(cString: tern_ssl_error_text()) }

    private func addAnchors(of options: TLSOptions) throws(EngineError) {
        switch options.anchors {
        case .standard:
            // A list of revoked certificates is for this context alone, and needs the whole chain up to a root.
            if case .list = options.revocation { return unsafe try TLSAuthorities.of(options.roots).copy(to: context) }
            unsafe try TLSAuthorities.of(options.roots).share(with: context)
        case .standardAnd(let certificates):
            unsafe try TLSAuthorities.of(options.roots).copy(to: context)
            try add(certificates)
        case .only(let certificates):
            try add(certificates)
        case .none:
            // Only the signers of stapled responses are verified.
            if options.revocation == .requiresStaple {
                unsafe try TLSAuthorities.of(options.roots).copy(to: context)
            }
        }
    }

    /// Adds certificates in DER form, and allows any of them to end a chain.
    private func add(_ certificates: [[UInt8]]) throws(EngineError) {
        for certificate in certificates {
            let isAdded = unsafe certificate.withUnsafeBufferPointer { bytes in
                unsafe tern_ssl_context_add_der(context, bytes.baseAddress, bytes.count)
            }
            guard isAdded == 1 else {
                throw EngineError(.invalidRequest, "an anchor of the trust policy cannot be read: \(Self.reason)")
            }
        }
        unsafe tern_ssl_context_allow_partial_chains(context)
    }

    private func addRevoked(_ revocation: TLSOptions.Revocation) throws(EngineError) {
        guard case .list(let file) = revocation else { return }
        guard !file.utf8.contains(0), unsafe tern_ssl_context_add_revoked(context, file) == 1 else {
            throw EngineError(
                .invalidRequest, "the list of revoked certificates in the file \(file) cannot be read: \(Self.reason)")
        }
    }

    private func setIdentity(_ identity: TLSOptions.Identity?) throws(EngineError) {
        let isSet: Int32
        switch identity {
        case nil:
            return
        case .pem(let certificates, let key, let password):
            // A zero byte would end the password.
            guard password?.utf8.contains(0) != true else { throw Self.unreadableIdentity("zero byte in the password") }
            isSet = unsafe certificates.withUnsafeBufferPointer { certificates in
                unsafe key.withUnsafeBufferPointer { key in
                    unsafe tern_ssl_context_set_pem_identity(
                        context, certificates.baseAddress, certificates.count, key.baseAddress, key.count,
                        password ?? "")
                }
            }
        case .pkcs12(let file, let password):
            guard !password.utf8.contains(0) else { throw Self.unreadableIdentity("zero byte in the password") }
            isSet = unsafe file.withUnsafeBufferPointer { bytes in
                unsafe tern_ssl_context_set_pkcs12_identity(context, bytes.baseAddress, bytes.count, password)
            }
        }
        guard isSet == 1 else { throw Self.unreadableIdentity(Self.reason) }
    }

    private static func unreadableIdentity(_ reason: String) -> EngineError {
        EngineError(.tls, "the identity of the client cannot be read: \(reason)")
    }
}
#endif
