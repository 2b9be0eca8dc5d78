#if os(Linux)
import CTernOpenSSL
import TernConcurrency
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The standard authorities of trust policies, which are parsed once for all policies of the process that name the same
/// place or text. Any thread may use them.
@safe final class TLSAuthorities: Sendable {
    /// The source of certificates. A file or folder that has changed is another source.
    private enum Source: Hashable {
        case locations(file: String?, fileVersion: FileVersion?, folder: String?, folderVersion: FileVersion?)
        /// The locations that OpenSSL was built with.
        case openSSL
        case pem([UInt8])
    }

    /// The state of a file by which a change of its contents is noticed.
    private struct FileVersion: Hashable {
        let device: UInt64
        let number: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int

        init?(_ path: String?) {
            var status = stat()
            guard let path, unsafe stat(path, &status) == 0 else { return nil }
            device = UInt64(status.st_dev)
            number = UInt64(status.st_ino)
            size = Int64(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    /// The number of sources that are remembered. Contexts keep the authorities that they use.
    private static let limit = 8
    private static let known = Lock<[Source: TLSAuthorities]>([:])

    private struct State {
        /// The address of OpenSSL's store; nil until the certificates are parsed.
        var store: UInt?
        var parses = 0
    }

    private let source: Source
    /// Held while the certificates are parsed, so that they are parsed once. After a failure, the next call tries
    /// again.
    private let state = Lock(State())

    private init(_ source: Source) { self.source = source }

    deinit {
        if let address = state.withLock({ $0.store }) {
            unsafe tern_ssl_authorities_free(OpaquePointer(bitPattern: address))
        }
    }

    /// Returns the authorities of policies with these roots. Reads no certificate yet.
    static func of(_ roots: TLSOptions.Roots) -> TLSAuthorities {
        let source: Source =
            switch roots {
            case .system:
                switch SystemRoots.find() {
                case .locations(let file, let folder): locations(file: file, folder: folder)
                case .openSSL: .openSSL
                }
            case .file(let path): locations(file: path, folder: nil)
            case .pem(let text): .pem(text)
            }
        return known.withLock { known in
            if let found = known[source] { return found }
            if known.count >= limit { known.removeAll() }
            let made = TLSAuthorities(source)
            known[source] = made
            return made
        }
    }

    private static func locations(file: String?, folder: String?) -> Source {
        .locations(file: file, fileVersion: FileVersion(file), folder: folder, folderVersion: FileVersion(folder))
    }

    /// The number of attempts to parse the certificates.
    var parses: Int { state.withLock { $0.parses } }

    /// Lets a context, which gets no other anchors, use the authorities. Takes no time once they are parsed.
    func share(with context: OpaquePointer) throws(EngineError) {
        let authorities = try loaded()
        guard unsafe tern_ssl_context_share_authorities(context, OpaquePointer(bitPattern: authorities)) == 1 else {
            throw EngineError(.tls, "the authorities cannot be used: \(Self.reason)")
        }
    }

    /// Adds the authorities to the anchors of a context.
    func copy(to context: OpaquePointer) throws(EngineError) {
        let authorities = try loaded()
        guard unsafe tern_ssl_context_copy_authorities(context, OpaquePointer(bitPattern: authorities)) == 1 else {
            throw EngineError(.tls, "the authorities cannot be used: \(Self.reason)")
        }
        // The certificates of folders are read when a chain needs them.
        guard let own = unsafe tern_ssl_context_authorities(context) else { return }
        switch source {
        case .locations(_, _, let folder?, _): unsafe try add(folder: folder, to: own)
        case .openSSL: unsafe try addDefaultLocations(to: own)
        case .locations, .pem: return
        }
    }

    // MARK: Parsing

    private static var reason: String { unsafe String(cString: tern_ssl_error_text()) }

    /// Returns the address of OpenSSL's store, which is made if it is not there.
    private func loaded() throws(EngineError) -> UInt {
        try state.withLock { (state) throws(EngineError) -> UInt in
            if let store = state.store { return store }
            state.parses += 1
            guard let made = unsafe tern_ssl_authorities_create() else {
                throw EngineError(.tls, "OpenSSL cannot create a list of authorities: \(Self.reason)")
            }
            do throws(EngineError) {
                unsafe try load(into: made)
            } catch {
                unsafe tern_ssl_authorities_free(made)
                throw error
            }
            let address = UInt(bitPattern: made)
            state.store = address
            return address
        }
    }

    private func load(into store: OpaquePointer) throws(EngineError) {
        switch source {
        case .locations(let file, _, let folder, _):
            if let file { unsafe try add(file: file, to: store) }
            if let folder { unsafe try add(folder: folder, to: store) }
        case .openSSL: unsafe try addDefaultLocations(to: store)
        case .pem(let text):
            let isAdded = unsafe text.withUnsafeBufferPointer { bytes in
                unsafe tern_ssl_authorities_add_pem(store, bytes.baseAddress, bytes.count)
            }
            guard isAdded == 1 else {
                throw EngineError(.tls, "the authorities (\(text.count) bytes of PEM) cannot be read: \(Self.reason)")
            }
        }
    }

    private func add(file path: String, to store: OpaquePointer) throws(EngineError) {
        guard !path.utf8.contains(0), unsafe tern_ssl_authorities_add_file(store, path) == 1 else {
            throw EngineError(.tls, "the authorities in the file \(path) cannot be read: \(Self.reason)")
        }
    }

    private func add(folder path: String, to store: OpaquePointer) throws(EngineError) {
        guard unsafe tern_ssl_authorities_add_folder(store, path) == 1 else {
            throw EngineError(.tls, "the authorities in the folder \(path) cannot be read: \(Self.reason)")
        }
    }

    private func addDefaultLocations(to store: OpaquePointer) throws(EngineError) {
        guard unsafe tern_ssl_authorities_add_default_locations(store) == 1 else {
            throw EngineError(.tls, "the authorities of the system cannot be read: \(Self.reason)")
        }
    }
}

/// The location of the system's authorities.
enum SystemRoots: Equatable {
    case locations(file: String?, folder: String?)
    /// The locations that OpenSSL was built with.
    case openSSL

    /// The files of the distributions: Debian, Arch and Alpine; Fedora; openSUSE; Alpine and others.
    static let files = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ]

    /// Returns the locations that the environment names (SSL_CERT_FILE and SSL_CERT_DIR), or the first readable file of
    /// a distribution.
    static func find() -> SystemRoots {
        find(file: variable("SSL_CERT_FILE"), folder: variable("SSL_CERT_DIR")) { path in
            unsafe access(path, R_OK) == 0
        }
    }

    static func find(file: String?, folder: String?, isReadable: (String) -> Bool) -> SystemRoots {
        if file != nil || folder != nil { return .locations(file: file, folder: folder) }
        if let found = files.first(where: isReadable) { return .locations(file: found, folder: nil) }
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
