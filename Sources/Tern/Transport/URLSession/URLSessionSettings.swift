#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
#if canImport(Darwin)
import Security
#endif

/// Maps a session's configuration to URLSession, and refuses the settings that URLSession does not support.
struct URLSessionSettings: Sendable {
    private let maximumConnectionsPerHost: Int
    private let proxies: URLSessionProxies
    /// The certificates of the only trusted authorities, in DER form; nil for those of the system.
    let anchors: [Data]?
    let trust: TrustPolicies
    /// Whether the servers are known to speak HTTP/3.
    let assumesHTTP3: Bool
    /// The reason why no request of this session can be sent; nil if requests can be sent.
    let refusal: FailureCause?

    init(_ configuration: Session.Configuration) {
        maximumConnectionsPerHost = max(1, configuration.maximumConnectionsPerHost)
        trust = configuration.trust
        assumesHTTP3 = configuration.http3 == .always
        proxies = URLSessionProxies(configuration.proxies)
        do throws(FailureCause) {
            try Self.checkNetwork(configuration)
            anchors = try Self.anchors(configuration.authorities)
            refusal = nil
        } catch {
            anchors = nil
            refusal = error
        }
    }

    /// Switches off the system's cookies, cache and credentials. Tern handles them above the transport.
    func apply(to configuration: URLSessionConfiguration) {
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.httpCookieAcceptPolicy = .never
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .useProtocolCachePolicy
        configuration.timeoutIntervalForRequest = URLSessionRequest.noTimeout
        configuration.timeoutIntervalForResource = URLSessionRequest.noTimeout
        configuration.httpMaximumConnectionsPerHost = maximumConnectionsPerHost
        if let dictionary = proxies.dictionary { configuration.connectionProxyDictionary = dictionary }
    }

    func refusal(of request: WireRequest) -> FailureCause? {
        if let refusal { return refusal }
        if let upgrade = request.upgrade?.name, upgrade != "websocket" {
            return FailureCause(.unsupported, "URLSession cannot switch a connection to the protocol \(upgrade)")
        }
        if request.trust != nil {
            return FailureCause(
                .unsupported, "URLSession shares its connections: a request cannot have a trust policy of its own")
        }
        let host = request.target.host
        guard let policy = trust.policy(for: host) else {
            return TrustPolicies.refusal(of: host)
        }
        if policy.pins != nil, !request.target.isSecure {
            return FailureCause(
                .invalidRequest, "the trust policy for \(host) has pins, and http has no certificates")
        }
        if request.unixSocketPath != nil {
            return FailureCause(.unsupported, "URLSession cannot connect to a Unix socket")
        }
        if request.source.hasTrailers {
            return FailureCause(.unsupported, "URLSession cannot send the trailers of a request")
        }
        if request.target.url == nil {
            return FailureCause(.invalidRequest, "URLSession cannot read the URL")
        }
        return nil
    }

    private static func checkNetwork(_ configuration: Session.Configuration) throws(FailureCause) {
        if let problem = configuration.problem { throw problem }
        if !configuration.hostAddresses.isEmpty {
            throw FailureCause(.unsupported, "URLSession resolves names by itself: hostAddresses has no effect")
        }
        if configuration.proxies.exceptions.contains(where: { ProxyExceptions.Entry($0)?.port != nil }) {
            throw FailureCause(.unsupported, "URLSession excepts hosts from its proxies with all of their ports")
        }
        if configuration.localEndpoint != .any {
            throw FailureCause(.unsupported, "URLSession chooses the local endpoint by itself")
        }
        if configuration.proxies.given.contains(where: \.hasCredentials) {
            throw FailureCause(.unsupported, "URLSession takes a proxy's credentials from the system alone")
        }
        #if canImport(FoundationNetworking)
        switch configuration.proxies {
        case .environment, .none: break
        case .only, .schemes: throw FailureCause(.unsupported, "FoundationNetworking uses no given proxies")
        }
        #endif
    }

    private static func anchors(_ authorities: Session.Configuration.Authorities) throws(FailureCause) -> [Data]? {
        let pem: Data
        switch authorities {
        case .system:
            return nil
        case .pem(let bytes):
            pem = bytes
        case .file(let path):
            do {
                pem = try Data(contentsOf: URL(filePath: path))
            } catch {
                throw FailureCause(.fileSystem, "the authorities' file cannot be read", underlying: error)
            }
        }
        #if canImport(FoundationNetworking)
        throw FailureCause(.unsupported, "FoundationNetworking trusts the system's authorities alone")
        #else
        // OpenSSL passes over damaged ones in the same way.
        let certificates = PEMBlocks.decode(pem, label: "CERTIFICATE").compactMap(\.self)
        if certificates.isEmpty {
            throw FailureCause(.tls, "there is no certificate in PEM form among the authorities")
        }
        return certificates
        #endif
    }
}

/// The proxies for `URLSessionConfiguration.connectionProxyDictionary`.
struct URLSessionProxies: Sendable {
    private let http: Proxy?
    private let https: Proxy?
    private let exceptions: [String]
    /// Whether the proxies of the system's settings are used.
    private let isSystems: Bool

    init(_ proxies: Session.Configuration.Proxies) {
        isSystems = proxies == .environment
        switch proxies {
        case .environment, .none: (http, https, exceptions) = (nil, nil, [])
        case .only(let proxy, let except): (http, https, exceptions) = (proxy, proxy, except)
        case .schemes(let http, let https, let except): (self.http, self.https, exceptions) = (http, https, except)
        }
    }

    /// The dictionary; nil to use the system's settings, empty for no proxies.
    var dictionary: [AnyHashable: Any]? {
        if isSystems { return nil }
        var result: [AnyHashable: Any] = [:]
        add(http, scheme: "HTTP", to: &result)
        add(https, scheme: "HTTPS", to: &result)
        // Networks, and names with a leading dot, stay unchanged.
        let hosts = exceptions.map { (try? CanonicalHost($0))?.text ?? $0 }
        if !hosts.isEmpty { result["ExceptionsList"] = hosts }
        return result
    }

    private func add(_ proxy: Proxy?, scheme: String, to result: inout [AnyHashable: Any]) {
        guard let proxy else { return }
        let name =
            switch proxy.kind {
            case .http, .https: scheme
            case .socks5, .socks5WithLocalNames: "SOCKS"
            }
        result["\(name)Enable"] = 1
        result["\(name)Proxy"] = proxy.canonicalHost?.text ?? proxy.host
        result["\(name)Port"] = Int(proxy.port)
    }
}

#if canImport(Darwin)
/// Evaluates the trust in a server by a policy, and by authorities that replace those of the system.
struct URLSessionTrust {
    private let policy: TrustPolicy
    /// The authorities of the session, in DER form; nil for those of the system.
    private let authorities: [Data]?

    init(_ policy: TrustPolicy, authorities: [Data]?) {
        self.policy = policy
        self.authorities = authorities
    }

    /// Returns the server if the rules but the policy's decision accept it, or the reason why it is not trusted. Can load
    /// a missing certificate from the network, so do not call it with a lock held. Calls `report` with the text of a
    /// violation that is only reported.
    func evaluate(
        _ trust: SecTrust, host: String, report: (String) -> Void
    ) throws(FailureCause) -> ServerTrust {
        SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, policy.checksHostName ? host as CFString : nil))
        setAnchors(trust)
        var error: CFError?
        var failure: String?
        if policy.anchors != .none, !(unsafe SecTrustEvaluateWithError(trust, &error)) {
            let reason = error.map { CFErrorCopyDescription($0) as String } ?? "no reason is known"
            guard policy.canAcceptUntrusted else {
                throw FailureCause(
                    .untrustedServer, "the certificate of \(host) is not trusted: \(reason)", underlying: error)
            }
            failure = reason
        }
        // After the evaluation, this is the verified chain, and not everything that was sent.
        var chain = (SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []).compactMap { certificate in
            // `try?`: no pin matches a certificate that only the system can read.
            try? Certificate(der: SecCertificateCopyData(certificate) as Data)
        }
        let isVerified = policy.anchors != .none && failure == nil
        // Without verification, the server proves possession of its own key only.
        if !isVerified { chain = Array(chain.prefix(1)) }
        switch policy.verdict(on: chain, of: host, now: Date()) {
        case .accepted: break
        case .reported(let text): report(text)
        case .refused(let reason): throw FailureCause(.pinMismatch, reason)
        }
        return ServerTrust(host: host, certificates: chain, failure: failure, isVerified: isVerified)
    }

    private func setAnchors(_ trust: SecTrust) {
        let given: [Certificate]
        var isOnly = true
        switch policy.anchors {
        case .none:
            return
        case .standard:
            guard authorities != nil else { return }
            given = []
        case .standardAnd(let certificates):
            given = certificates
            isOnly = authorities != nil
        case .only(let certificates):
            given = certificates
        }
        var anchors = given.map(\.der)
        if case .only = policy.anchors {} else { anchors += authorities ?? [] }
        let certificates = anchors.compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
        SecTrustSetAnchorCertificates(trust, certificates as CFArray)
        SecTrustSetAnchorCertificatesOnly(trust, isOnly)
    }
}

extension ClientIdentity {
    /// The identity for the system; nil if the file or its password is wrong.
    var credential: URLCredential? {
        guard case .pkcs12(let bytes) = content else { return nil }
        var items: CFArray?
        var options: [String: Any] = [kSecImportExportPassphrase as String: password ?? ""]
        #if os(macOS)
        // On macOS, each handshake would otherwise add it to the user's keychain. Other systems keep nothing.
        options[kSecImportToMemoryOnly as String] = true
        #endif
        guard unsafe SecPKCS12Import(bytes as CFData, options as CFDictionary, &items) == errSecSuccess,
            let first = (items as? [[String: Any]])?.first, let found = first[kSecImportItemIdentity as String]
        else { return nil }
        let identity = found as CFTypeRef
        guard CFGetTypeID(identity) == SecIdentityGetTypeID() else { return nil }
        // The type was checked above, because a conditional cast to a Core Foundation type always succeeds.
        return URLCredential(
            identity: unsafe unsafeDowncast(identity, to: SecIdentity.self), certificates: nil, persistence: .none)
    }
}
#endif
#endif
