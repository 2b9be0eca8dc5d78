import Synchronization
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes the values of `Authorization` fields from a credential and one scheme.
///
/// Digest counts its uses, so a caller that sends several requests keeps the changed value.
package struct Authorization: Sendable {
    private indirect enum Scheme {
        case fixed(String)
        case digest(DigestSession)
    }

    package let source: AuthenticationChallenge.Source
    package let credential: Credential
    private var scheme: Scheme

    /// Answers the strongest offer that accepts the credential.
    ///
    /// - Throws: `Problem` when no offer accepts the credential, or when it cannot be sent.
    package init(
        _ credential: Credential, answering challenge: AuthenticationChallenge,
        makeNonce: @escaping @Sendable () -> String = Self.randomNonce
    ) throws(Problem) {
        try self.init(credential, answering: challenge.offers, from: challenge.source, makeNonce: makeNonce)
    }

    /// Answers the first offer that accepts the credential.
    ///
    /// - Throws: `Problem` when no offer accepts the credential, or when it cannot be sent.
    init(
        _ credential: Credential, answering offers: [AuthenticationChallenge.Offer],
        from source: AuthenticationChallenge.Source,
        makeNonce: @escaping @Sendable () -> String = Self.randomNonce
    ) throws(Problem) {
        self.source = source
        self.credential = credential
        for offer in offers {
            switch credential.content {
            case .token(let token):
                guard Headers.namesMatch(offer.scheme, "Bearer") else { continue }
                scheme = .fixed(try Self.bearer(token))
                return
            case .password(let user, let password):
                if let digest = DigestChallenge(offer) {
                    try Self.check(user, password, allowsColon: true)
                    scheme = .digest(DigestSession(digest, user: user, password: password, makeNonce: makeNonce))
                    return
                }
                guard Headers.namesMatch(offer.scheme, "Basic") else { continue }
                scheme = .fixed(try Self.basic(user, password))
                return
            }
        }
        throw .noOffer
    }

    /// Creates an authorization to send before a challenge: Bearer for a token, Basic for a user name and password.
    package init(preemptive credential: Credential) throws(Problem) {
        source = .server
        self.credential = credential
        switch credential.content {
        case .token(let token): scheme = .fixed(try Self.bearer(token))
        case .password(let user, let password): scheme = .fixed(try Self.basic(user, password))
        }
    }

    /// The scheme, and for Digest its algorithm.
    package var schemeName: String {
        switch scheme {
        case .fixed(let value): String(value.prefix { $0 != " " })
        case .digest(let session): "Digest \(session.challenge.algorithm.rawValue)"
        }
    }

    /// The algorithm to hash a request's body with before the call of ``field(method:target:bodyHash:)``; nil unless
    /// Digest asks for `auth-int`. A body that cannot be read twice cannot be sent then.
    package var bodyDigest: DigestFunction.Algorithm? {
        if case .digest(let session) = scheme { session.bodyDigest } else { nil }
    }

    /// Returns the field to send with a request. Digest counts each call as one use.
    ///
    /// - Parameter bodyHash: The hash of the body, or of an empty body, if ``bodyDigest`` is not nil.
    package mutating func field(
        method: Request.Method, target: Target, bodyHash: [UInt8] = []
    ) -> Headers.Field {
        let value = value(method: method, uri: target.pathAndQuery, bodyHash: bodyHash)
        return Headers.Field(name: source.authorizationField, value: value)
    }

    /// Returns the value of the field for a request target. Digest counts each call as one use.
    mutating func value(method: Request.Method, uri: String, bodyHash: [UInt8] = []) -> String {
        switch scheme {
        case .fixed(let value): return value
        case .digest(var session):
            defer { scheme = .digest(session) }
            return session.answer(method: method, uri: uri, bodyHash: Hexadecimal.lowercase(bodyHash))
        }
    }

    /// The authorization that remains for other requests once this request takes the next use.
    package var afterOneUse: Authorization {
        guard case .digest(var session) = scheme else { return self }
        session.reserveUse()
        var rest = self
        rest.scheme = .digest(session)
        return rest
    }

    /// Applies the `Authentication-Info` of an accepted request, which can name the next nonce (RFC 7616 §3.5).
    package mutating func update(from information: String?) {
        guard case .digest(var session) = scheme, let information else { return }
        // The field has the form of a challenge's parameters.
        let parameters = ChallengeParser.offers(in: ["Digest \(information)"]).first?.parameters
        guard let nonce = parameters?["nextnonce"], !nonce.isEmpty else { return }
        session.renew(nonce: nonce)
        scheme = .digest(session)
    }

    private static func bearer(_ token: String) throws(Problem) -> String {
        let isToken = token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isToken, !token.isEmpty else { throw .badToken }
        return "Bearer \(token)"
    }

    /// Encodes credentials by RFC 7617 §2, always as UTF-8, because no other encoding holds every name.
    private static func basic(_ user: String, _ password: String) throws(Problem) -> String {
        try check(user, password, allowsColon: false)
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    private static func check(_ user: String, _ password: String, allowsColon: Bool) throws(Problem) {
        if !allowsColon, user.utf8.contains(UInt8(ascii: ":")) { throw .colon }
        if user.utf8.contains(where: \.isASCIIControl) || password.utf8.contains(where: \.isASCIIControl) {
            throw .controlCharacter
        }
    }

    /// Returns 128 random bits of the system in hexadecimal.
    @Sendable package static func randomNonce() -> String {
        let (first, second) = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))
        return String(first, radix: 16) + String(second, radix: 16)
    }

    /// The reason why a credential cannot answer a challenge. The text contains no secret.
    package struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        package let reason: String
        package var description: String { reason }

        static let noOffer = Problem(reason: "the credential fits none of the schemes that the server offers")
        static let colon = Problem(reason: "a user name with a colon cannot be sent by Basic (RFC 7617 §2)")
        static let controlCharacter = Problem(reason: "the user name or the password contains a control character")
        static let badToken = Problem(reason: "the token is empty, or has characters that a field cannot hold")
    }
}

/// Remembers the authorizations that servers accepted, so that later requests of a session are not challenged: nonces
/// of Digest with their counts, and credentials of Basic and Bearer.
///
/// Entries are kept by origin and owner: a request with credentials in its URL never uses the credentials of another
/// one.
package final class AuthenticationCache: Sendable {
    /// The owner of a credential.
    package enum Owner: Sendable, Hashable {
        /// The session's provider or policy, which serves all requests without credentials of their own.
        case session
        /// A provider or policy that was set on a request and is shared by its copies.
        case request(UInt64)
        /// The URL that contains the credential.
        case url(Credential)
    }

    private struct Key: Hashable {
        let source: AuthenticationChallenge.Source
        let origin: String
        let owner: Owner
    }

    // The limit keeps a crawler that visits many origins from growing the cache.
    static let limit = 256

    private let entries = Lock<[Key: Authorization]>([:])
    private let hasEntries = Atomic<Bool>(false)

    package init() {}

    /// Whether anything was ever remembered.
    package var hasAny: Bool { hasEntries.load(ordering: .relaxed) }

    /// Returns the remembered authorization. Costs one branch while the cache is empty. Its
    /// ``Authorization/bodyDigest`` tells whether the hash of the body is needed.
    package func authorization(
        for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server
    ) -> Authorization? {
        if !hasEntries.load(ordering: .relaxed) { return nil }
        return entries.withLock { $0[Key(source: source, origin: target.origin, owner: owner)] }
    }

    /// Returns the field for a request and counts its use, so that no two requests send the same count of one nonce;
    /// nil if nothing is remembered.
    package func field(
        for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server, method: Request.Method,
        bodyHash: [UInt8] = []
    ) -> Headers.Field? {
        if !hasEntries.load(ordering: .relaxed) { return nil }
        let key = Key(source: source, origin: target.origin, owner: owner)
        return entries.withLock { $0[key]?.field(method: method, target: target, bodyHash: bodyHash) }
    }

    /// Remembers an accepted authorization. All requests share its count of uses.
    package func remember(_ authorization: Authorization, for target: Target, owner: Owner) {
        let key = Key(source: authorization.source, origin: target.origin, owner: owner)
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[key] == nil, let any = entries.keys.first { entries[any] = nil }
            entries[key] = authorization
        }
        hasEntries.store(true, ordering: .relaxed)
    }

    /// Removes a refused credential, unless another request has stored a newer one.
    package func forget(
        _ credential: Credential, for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server
    ) {
        let key = Key(source: source, origin: target.origin, owner: owner)
        entries.withLock { entries in
            if entries[key]?.credential == credential { entries[key] = nil }
        }
    }

    /// Applies the `Authentication-Info` of an accepted request. Costs one branch without the field.
    package func update(
        from information: String?, for target: Target, owner: Owner, source: AuthenticationChallenge.Source = .server
    ) {
        guard let information else { return }
        let key = Key(source: source, origin: target.origin, owner: owner)
        entries.withLock { $0[key]?.update(from: information) }
    }

    /// Removes all entries.
    package func removeAll() {
        entries.withLock { $0.removeAll() }
        hasEntries.store(false, ordering: .relaxed)
    }
}
