#if os(Linux)
import CTernOpenSSL
import Synchronization
import TernConcurrency

/// The rules by which TLS connections trust a server, and the identity that they present.
package struct TLSOptions: Sendable {
    /// The authorities that count as the standard ones.
    package enum Roots: Sendable, Equatable {
        /// The authorities of the system.
        case system
        /// The authorities in a file in PEM form.
        case file(String)
        /// The authorities in a text in PEM form.
        case pem([UInt8])
    }

    /// The certificates at which a chain must end. Certificates are in DER form.
    package enum Anchors: Sendable, Equatable {
        /// The standard authorities.
        case standard
        /// The standard authorities and these certificates.
        case standardAnd([[UInt8]])
        /// Only these certificates. The server's own certificate can be one of them.
        case only([[UInt8]])
        /// No certificate: every chain is accepted.
        case none
    }

    /// The check for revoked certificates.
    package enum Revocation: Sendable, Equatable {
        case unchecked
        /// The server must send a valid OCSP response for its certificate (RFC 6066 §8). Such connections are never
        /// resumed, because a resumed handshake has no response.
        case requiresStaple
        /// A file with lists of revoked certificates in PEM form, one for each authority of the chain.
        case list(file: String)
    }

    /// A certificate with its key, to present to a server that requests one.
    package enum Identity: Sendable, Equatable {
        /// Certificates, the identity's own first, and a key in PEM form.
        case pem(certificates: [UInt8], key: [UInt8], password: String?)
        /// A PKCS#12 file (RFC 7292).
        case pkcs12([UInt8], password: String)
    }

    /// The minimum version of TLS.
    package enum Version: Sendable, Equatable {
        case tls12, tls13
    }

    package var roots = Roots.system
    package var anchors = Anchors.standard
    package var revocation = Revocation.unchecked
    /// Whether the certificate must be for the host's name or address, with any anchors.
    package var checksHostName = true
    package var minimumVersion = Version.tls12
    package var identity: Identity?
    /// Decides about a chain that OpenSSL has accepted, before the client proves its identity and before a request is
    /// sent. It runs on the thread of the connection, also for each connection that resumes a session.
    package var judge: (@Sendable (TLSPeer) -> TLSVerdict)?
    /// Decides about each connection after its handshake and before a request is sent, where the judge has accepted the
    /// chain. It may wait; a connection that nobody needs any more cancels its Swift task.
    package var review: (@Sendable (TLSPeer) async -> TLSVerdict)?
    /// Whether the handshake continues with a certificate that is not verified, for a review that can accept it. Such
    /// connections are never resumed.
    package var continuesUnverified = false
    /// Takes each line of a key log, in NSS's format and without a line break; nil for none. It runs on the thread of the
    /// connection, during the handshake and when keys change.
    package var logKeys: (@Sendable (_ line: String) -> Void)?

    package init() {}

    /// Whether a server proves that it is the host of the request.
    var authenticates: Bool { checksHostName && anchors != .none }
}

/// The certificates of a server, in DER form.
package struct TLSPeer: Sendable, Equatable {
    /// The host of the connection.
    package let host: String
    /// The verified chain, the server's own certificate first. If no chain is verified (`TLSOptions.Anchors.none`), the
    /// server's own certificate only, because the server proves possession of no other key.
    package let chain: [[UInt8]]
    /// Whether the chain leads to an anchor.
    package let isVerified: Bool
    /// The rule that the certificates violate, if the handshake continued in spite of it
    /// (`TLSOptions.continuesUnverified`); nil otherwise.
    package let violation: String?
}

/// The decision about the certificates of a server.
package enum TLSVerdict: Sendable, Equatable {
    case accepted
    /// Accepted, with a report for the caller.
    case reported(String)
    /// Refused, with the reason.
    case refused(String)
}

/// A trust policy in OpenSSL's form. All connections that share a policy share its context, and only they share
/// sessions.
package final class TLSPolicy: Sendable {
    private enum State {
        case unprepared
        /// The address of the context. OpenSSL's contexts may be used by many threads, but pointers are not `Sendable`.
        case ready(UInt)
    }

    private static let lastIdentifier = Atomic<UInt64>(0)

    package let options: TLSOptions
    /// A number that no other policy of the process has, now or later.
    let identifier: UInt64
    private let state = Lock(State.unprepared)
    /// The lock above is held while files are read, and the loop must not wait for it.
    private let wasPrepared = Atomic<Bool>(false)

    package init(_ options: TLSOptions) {
        self.options = options
        identifier = Self.lastIdentifier.add(1, ordering: .relaxed).newValue
    }

    deinit {
        if case .ready(let address) = state.withLock({ $0 }) {
            unsafe tern_ssl_context_free(OpaquePointer(bitPattern: address))
        }
    }

    /// Whether connections may resume a session.
    var allowsResumption: Bool { options.revocation != .requiresStaple && !options.continuesUnverified }

    /// Reads the anchors, the list of revoked certificates, and the identity. Takes milliseconds, so call it outside
    /// the loop. Does nothing after a success. After a failure, the next call tries again: a file can be there then, or
    /// a descriptor free.
    @discardableResult package func prepare() -> EngineError? {
        state.withLock { state in
            switch state {
            case .ready: return nil
            case .unprepared:
                do throws(EngineError) {
                    state = .ready(try TLSContextBuilder.build(options))
                    wasPrepared.store(true, ordering: .releasing)
                    return nil
                } catch {
                    guard let lack = SystemError.lackOfDescriptors else { return error }
                    return EngineError(.outOfDescriptors, "\(error.reason): \(lack.text)", code: lack.code)
                }
            }
        }
    }

    /// Whether `prepare()` has succeeded.
    package var isPrepared: Bool { wasPrepared.load(ordering: .acquiring) }

    /// Returns the address of the context, which lives as long as the policy.
    func context() throws(EngineError) -> UInt {
        if let error = prepare() { throw error }
        guard case .ready(let address) = state.withLock({ $0 }) else {
            throw EngineError(.tls, "the trust policy is not prepared")
        }
        return address
    }
}
#endif
