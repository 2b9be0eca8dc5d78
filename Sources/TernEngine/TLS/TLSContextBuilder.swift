#if os(Linux)
import CTernOpenSSL
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

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
            try addRoots(options.roots)
            // A list of revoked certificates needs the whole chain up to a root.
            if case .list = options.revocation { return }
            unsafe tern_ssl_context_allow_partial_chains(context)
        case .standardAnd(let certificates):
            try addRoots(options.roots)
            try add(certificates)
        case .only(let certificates):
            try add(certificates)
        case .none:
            // Only the signers of stapled responses are verified.
            if options.revocation == .requiresStaple { try addRoots(options.roots) }
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

    private func addRoots(_ roots: TLSOptions.Roots) throws(EngineError) {
        switch roots {
        case .system:
            try addSystemRoots()
        case .file(let path):
            try addFile(path)
        case .pem(let text):
            let isAdded = unsafe text.withUnsafeBufferPointer { bytes in
                unsafe tern_ssl_context_add_pem(context, bytes.baseAddress, bytes.count)
            }
            guard isAdded == 1 else {
                throw EngineError(.tls, "the authorities (\(text.count) bytes of PEM) cannot be read: \(Self.reason)")
            }
        }
    }

    private func addSystemRoots() throws(EngineError) {
        switch SystemRoots.find() {
        case .places(let file, let folder):
            if let file { try addFile(file) }
            if let folder, unsafe tern_ssl_context_add_folder(context, folder) != 1 {
                throw EngineError(.tls, "the authorities in the folder \(folder) cannot be read: \(Self.reason)")
            }
        case .openSSL:
            guard unsafe tern_ssl_context_add_default_places(context) == 1 else {
                throw EngineError(.tls, "the authorities of the system cannot be read: \(Self.reason)")
            }
        }
    }

    private func addFile(_ path: String) throws(EngineError) {
        guard !path.utf8.contains(0), unsafe tern_ssl_context_add_file(context, path) == 1 else {
            throw EngineError(.tls, "the authorities in the file \(path) cannot be read: \(Self.reason)")
        }
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

/// The place of the system's authorities.
enum SystemRoots: Equatable {
    case places(file: String?, folder: String?)
    /// The places that OpenSSL was built with.
    case openSSL

    /// The files of the distributions: Debian, Arch and Alpine; Fedora; openSUSE; Alpine and others.
    static let files = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    /// Returns the places that the environment names (SSL_CERT_FILE and SSL_CERT_DIR), or the first readable file of a
    /// distribution.
    static func find() -> SystemRoots {
        find(file: variable("SSL_CERT_FILE"), folder: variable("SSL_CERT_DIR")) { path in
            unsafe access(path, R_OK) == 0
        }
    }

    static func find(file: String?, folder: String?, isReadable: (String) -> Bool) -> SystemRoots {
        if file != nil || folder != nil { return .places(file: file, folder: folder) }
        if let found = files.first(where: isReadable) { return .places(file: found, folder: nil) }
        return .openSSL
    }

    /// Returns a variable of the environment; nil if it is empty.
    private static func variable(_ name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        let text = unsafe String(cString: value)
        return text.isEmpty ? nil : text
    }
}
#endif
