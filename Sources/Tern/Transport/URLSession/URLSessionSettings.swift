#if TERN_URLSESSION || !os(Linux)
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What a session's configuration means to URLSession, and what it cannot mean.
struct URLSessionSettings: Sendable {
    private let maximumConnectionsPerHost: Int
    private let proxies: URLSessionProxies
    /// The certificates of the authorities that alone are trusted, in DER form; nil for the system's.
    let anchors: [Data]?
    let trust: TrustPolicies
    /// Why no request of this session can be sent.
    let refusal: TransferFailure?

    init(_ configuration: Session.Configuration) {
        maximumConnectionsPerHost = max(1, configuration.maximumConnectionsPerHost)
        trust = configuration.trust
        proxies = URLSessionProxies(configuration.proxies)
        do throws(TransferFailure) {
            try Self.checkNetwork(configuration)
            anchors = try Self.anchors(configuration.authorities)
            refusal = nil
        } catch {
            anchors = nil
            refusal = error
        }
    }

    /// Nothing is kept by the system: no cookies, no cache, no credentials. Those are decided above the transport.
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

    func refusal(of order: TransferOrder) -> TransferFailure? {
        if let refusal { return refusal }
        if order.trust != nil {
            return TransferFailure(
                .unsupported, "URLSession shares its connections: a request cannot have a trust policy of its own")
        }
        let host = order.target.host
        guard let policy = trust.policy(for: host) else {
            return TrustPolicies.refusal(of: host)
        }
        if policy.pins != nil, !order.target.isSecure {
            return TransferFailure(
                .invalidRequest, "the trust policy for \(host) has pins, and http has no certificates")
        }
        if order.unixSocketPath != nil {
            return TransferFailure(.unsupported, "URLSession cannot connect to a Unix socket")
        }
        if order.target.url == nil {
            return TransferFailure(.invalidRequest, "URLSession cannot read the URL")
        }
        return nil
    }

    private static func checkNetwork(_ configuration: Session.Configuration) throws(TransferFailure) {
        if let problem = configuration.problem { throw problem }
        if !configuration.hostAddresses.isEmpty {
            throw TransferFailure(.unsupported, "URLSession resolves names by itself: hostAddresses has no effect")
        }
        if configuration.localEndpoint != .any {
            throw TransferFailure(.unsupported, "URLSession chooses the local endpoint by itself")
        }
        if configuration.givenProxies.contains(where: \.hasCredentials) {
            throw TransferFailure(.unsupported, "URLSession takes a proxy's credentials from the system alone")
        }
        #if canImport(FoundationNetworking)
        switch configuration.proxies {
        case .environment, .none: break
        case .only, .schemes: throw TransferFailure(.unsupported, "FoundationNetworking uses no given proxies")
        }
        #endif
    }

    /// Why nothing can be sent under a trust policy; nil when it can.
    static func problem(of policy: TrustPolicy) -> TransferFailure? {
        if policy == TrustPolicy() { return nil }
        #if canImport(FoundationNetworking)
        return TransferFailure(.unsupported, "FoundationNetworking checks certificates by the system's rules alone")
        #else
        if policy.revocation != .unchecked {
            return TransferFailure(
                .unsupported, "URLSession asks about revoked certificates by the system's rules alone")
        }
        if case .pem? = policy.identity?.content {
            return TransferFailure(.unsupported, "the system takes a client's identity as PKCS#12 alone")
        }
        if policy.minimumVersion != .tls12 {
            return TransferFailure(.unsupported, "URLSession has one minimum version of TLS for a whole session")
        }
        return nil
        #endif
    }

    private static func anchors(_ authorities: Session.Configuration.Authorities) throws(TransferFailure) -> [Data]? {
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
                throw TransferFailure(.fileSystem, "the authorities' file cannot be read", underlying: error)
            }
        }
        #if canImport(FoundationNetworking)
        throw TransferFailure(.unsupported, "FoundationNetworking trusts the system's authorities alone")
        #else
        let certificates = PEMBlocks.decode(pem, label: "CERTIFICATE")
        if certificates.isEmpty {
            throw TransferFailure(.tls, "there is no certificate in PEM form among the authorities")
        }
        return certificates
        #endif
    }
}
#endif
