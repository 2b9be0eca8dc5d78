#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The parts of the key of a stored response that belong to the session.
package struct CacheScope: Sendable {
    package let partition: String
    /// Identifies the trust and the route of the connection; empty for the defaults.
    package let trust: String
}

extension TaskRegistry {
    /// The scopes of the responses to requests without settings of their own.
    package nonisolated var cacheScopes: [CacheScope] { cache?.scopes ?? [] }

    /// Returns the partition of the responses to the session's requests. Computes a digest, so ask once and keep the
    /// result.
    ///
    /// - Parameters:
    ///   - handlesCookies: Whether the requests send the session's cookies.
    ///   - hook: A unique number for a hook that changes the requests; nil for none.
    package nonisolated func cachePartition(handlesCookies: Bool, hook: UInt64? = nil) -> CachePartition {
        let owner = hook.map { "hook \($0)" } ?? "\(sessionID)"
        return CachePartition(
            configuration, cookies: handlesCookies ? cookies : nil, owner: owner, hasRequestHook: hook != nil)
    }
}

/// The cache of a session, and the parts of its keys that are the same for all requests.
struct SessionCache: Sendable {
    let cache: any ExchangeCache
    /// The partition of responses to requests that send no cookies.
    private let partition: CachePartition
    /// The partition of responses to requests that send the session's cookies.
    private let cookiePartition: CachePartition
    /// Identifies the trust policies and the routes of the session; empty for the defaults.
    private let trust: String

    /// Creates the value; nil for a configuration without a cache.
    init?(_ configuration: Session.Configuration, cookies: CookieStore?, session: Session.ID) {
        guard let cache = configuration.exchangeCache else { return nil }
        self.cache = cache
        partition = CachePartition(configuration, cookies: nil, owner: "\(session)")
        cookiePartition = CachePartition(configuration, cookies: cookies, owner: "\(session)")
        trust = Self.trust(of: configuration)
    }

    /// The scopes of requests that send cookies, and of those that send none.
    var scopes: [CacheScope] {
        let names = partition == cookiePartition ? [partition.name] : [partition.name, cookiePartition.name]
        return names.map { CacheScope(partition: $0, trust: trust) }
    }

    /// Returns the scope of the response to a request.
    ///
    /// - Parameters:
    ///   - headers: The fields as they are sent.
    ///   - sendsCookies: Whether cookies of a store are sent with the request. The server knows no user of a store that
    ///     has no cookies for it.
    func scope(of request: PreparedRequest, headers: Headers, sendsCookies: Bool) -> CacheScope {
        let own = request.request
        let partition = sendsCookies && own.cookies == nil ? cookiePartition : partition
        let host = own.target.otherHost(in: headers)
        var fields: [String] = []
        // The server answers for the host of the field, which may be another than that of the URL.
        if let host { fields += ["host", host] }
        if let policy = own.trust { fields += ["trust"] + policy.cacheIdentity }
        if let path = own.unixSocketPath { fields += ["socket", path] }
        if sendsCookies, let store = own.cookies?.makeStore() {
            fields += ["cookies"] + CachePartition.identity(of: store)
        }
        if let owner = own.credentialOwner { fields += ["owner", CachePartition.process, "\(owner)"] }
        guard !fields.isEmpty else { return CacheScope(partition: partition.name, trust: trust) }
        return CacheScope(partition: partition.name, trust: CachePartition.digest([trust] + fields))
    }

    /// Identifies how a session makes sure that it speaks with the right server. An exchange of a session that accepts
    /// more never answers a session that accepts less.
    private static func trust(of configuration: Session.Configuration) -> String {
        var fields: [String] = []
        switch configuration.authorities {
        case .system: break
        case .file(let path): fields += ["authorities", path]
        case .pem(let data): fields += ["authorities", DigestFunction.hash(Array(data), .sha256).hexadecimal]
        }
        if configuration.trust != TrustPolicies() {
            fields.append("standard")
            if let standard = configuration.trust.standard { fields += standard.cacheIdentity }
            for (host, policy) in configuration.trust.hosts.sorted(by: { $0.key < $1.key }) {
                fields += ["host", host] + policy.cacheIdentity
            }
        }
        for (host, addresses) in configuration.hostAddresses.sorted(by: { $0.key < $1.key }) {
            fields += ["address", host] + addresses
        }
        if let path = configuration.unixSocketPath { fields += ["socket", path] }
        for proxy in configuration.proxies.given { fields += ["proxy", "\(proxy)"] + configuration.proxies.exceptions }
        return fields.isEmpty ? "" : CachePartition.digest(fields)
    }
}

extension Target {
    /// Returns the value of `Host` in lower case if it names another host or port than the URL; nil if it does not, or
    /// without the field.
    func otherHost(in headers: Headers) -> String? {
        guard let host = headers["Host"]?.lowercased() else { return nil }
        // An origin always has the port.
        let isSame = origin == "\(scheme)://\(host)" || origin == "\(scheme)://\(host):\(isSecure ? 443 : 80)"
        return isSame ? nil : host
    }
}

extension TrustPolicy {
    /// The texts that identify the policy. Two policies with the same texts trust the same servers.
    fileprivate var cacheIdentity: [String] {
        var fields: [String]
        switch anchors {
        case .standard: fields = ["standard"]
        case .standardAnd(let certificates): fields = ["and"] + certificates.map { $0.fingerprint.hexadecimal }
        case .only(let certificates): fields = ["only"] + certificates.map { $0.fingerprint.hexadecimal }
        case .none: fields = ["none"]
        }
        if let pins { fields += ["pins"] + pins.map(\.description) }
        fields += [
            "\(pinScope)", pinsExpire.map { "\($0.timeIntervalSince1970)" } ?? "", "\(isReportOnly)",
            "\(checksHostName)", "\(minimumVersion)", "\(revocation)", identity?.digest ?? "",
        ]
        // Known in this process only.
        if let decision { fields += ["decision", CachePartition.process, "\(decision.id)"] }
        return fields
    }
}

/// The fields that the session adds to a request from its own state, which other requests change: its cookies, and the
/// answer to an earlier challenge.
final class SessionFields: Sendable {
    /// The value of the `Cookie` field, with the cookies that the caller wrote; nil without cookies of a store.
    let cookies: [UInt8]?
    /// The authorization for the server; nil for none.
    let authorization: Authorization?

    init(cookies: [UInt8]?, authorization: Authorization?) {
        self.cookies = cookies
        self.authorization = authorization
    }

    /// Returns whether both identify the same user.
    func hasSameUser(as other: SessionFields) -> Bool {
        cookies == other.cookies && authorization?.credential == other.authorization?.credential
    }
}

extension PreparedRequest {
    /// The fields that the session adds to the request now.
    var presentSessionFields: SessionFields {
        SessionFields(cookies: cookieField(), authorization: sentAuthorization)
    }

    /// Returns the fields as they are sent to a server, with a digest in place of an authorization that the session
    /// adds.
    func fieldsAsSent(with added: SessionFields) -> Headers {
        var fields = headers
        let hasDefaults = request.sendsDefaultFields
        if hasDefaults, !fields.contains("Accept") { fields["Accept"] = "*/*" }
        if hasDefaults, decompresses, registry.transport.leavesStreamsCompressed, !fields.contains("Accept-Encoding") {
            fields["Accept-Encoding"] = headers.contains("Range") ? "identity" : ContentDecoder.acceptEncoding
        }
        // Its text is not known before the request is sent. A digest has the same differences.
        if added.authorization != nil, let digest = credentialDigest(with: added) { fields["Authorization"] = digest }
        if let cookies = added.cookies {
            fields["Cookie"] = String(validating: cookies, as: UTF8.self) ?? cookies.hexadecimal
        }
        return fields
    }

    /// Returns a digest of the credentials of the request: of its header fields that hold a secret, of its URL, and of
    /// the authorization that is sent for it. nil without any.
    func credentialDigest(with added: SessionFields) -> String? {
        var fields: [String] = []
        // The session's own fields were looked at once.
        let mayHaveSecrets = !request.headers.isEmpty || registry.headers.haveSecrets || !redirectedFrom.isEmpty
        for field in mayHaveSecrets ? headers : [:]
        where Headers.isSecret(field.name) && !Headers.namesMatch(field.name, "Proxy-Authorization") {
            fields += [field.name.lowercased(), field.value]
        }
        if let own = Credential(of: request.target) { fields += ["url"] + own.identity }
        if let answer = added.authorization { fields += ["answer"] + answer.credential.identity }
        return fields.isEmpty ? nil : CachePartition.digest(fields)
    }

    /// The authorization that the session adds to the request: the answer to a challenge, now or earlier.
    private var sentAuthorization: Authorization? {
        if let challengeAnswer, challengeAnswer.source == .server { return challengeAnswer }
        guard registry.authorizations.hasAny, !headers.contains("Authorization") else { return nil }
        return registry.authorizations.authorization(for: request.target, owner: credentialOwner, source: .server)
    }
}

extension Credential {
    /// The texts that identify the user.
    var identity: [String] {
        switch content {
        case .password(let user, let password): ["user", user, password]
        case .token(let token): ["token", token]
        }
    }
}
