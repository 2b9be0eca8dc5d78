#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A credential in the form of one scheme: what makes the values of `Authorization` fields.
///
/// A value that changes with each use, as Digest counts its answers: who sends several requests keeps it.
package struct Authorization: Sendable {
    private enum Scheme {
        case fixed(String)
        case digest(DigestSession)
    }

    package let source: AuthenticationChallenge.Source
    package let credential: Credential
    private var scheme: Scheme

    /// Answers the strongest offer that the credential fits.
    ///
    /// - Throws: `Problem` when it fits none, or cannot be sent.
    package init(
        _ credential: Credential, answering challenge: AuthenticationChallenge,
        makeNonce: @escaping @Sendable () -> String = Self.randomNonce
    ) throws(Problem) {
        source = challenge.source
        self.credential = credential
        for offer in challenge.offers {
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

    /// What is sent before anybody asks: a token as Bearer, a user name and password as Basic.
    package init(preemptive credential: Credential) throws(Problem) {
        source = .server
        self.credential = credential
        switch credential.content {
        case .token(let token): scheme = .fixed(try Self.bearer(token))
        case .password(let user, let password): scheme = .fixed(try Self.basic(user, password))
        }
    }

    /// The scheme, with the algorithm of Digest.
    package var schemeName: String {
        switch scheme {
        case .fixed(let value): String(value.prefix { $0 != " " })
        case .digest(let session): "Digest \(session.challenge.algorithm.rawValue)"
        }
    }

    /// The algorithm that a request's body is to be hashed with before ``field(method:target:bodyHash:)`` is called: for
    /// Digest with `auth-int` alone. A body that cannot be read twice cannot be sent then.
    package var bodyDigest: DigestFunction.Algorithm? {
        if case .digest(let session) = scheme { session.bodyDigest } else { nil }
    }

    /// The field to be sent with a request. Digest counts the call.
    ///
    /// - Parameter bodyHash: The body's hash, of an empty one too, if ``bodyDigest`` asks for it.
    package mutating func field(
        method: Request.Method, target: Target, bodyHash: [UInt8] = []
    ) -> Headers.Field {
        switch scheme {
        case .fixed(let value):
            return Headers.Field(name: source.authorizationField, value: value)
        case .digest(var session):
            let value = session.answer(
                method: method, uri: target.pathAndQuery, bodyHash: Hexadecimal.lowercase(bodyHash))
            scheme = .digest(session)
            return Headers.Field(name: source.authorizationField, value: value)
        }
    }

    /// What is left for others when the next use is taken.
    package var afterOneUse: Authorization {
        guard case .digest(var session) = scheme else { return self }
        session.skipOneUse()
        var rest = self
        rest.scheme = .digest(session)
        return rest
    }

    /// Takes in the `Authentication-Info` of a good answer, which may name the next nonce (RFC 7616 §3.5).
    package mutating func take(information: String?) {
        guard case .digest(var session) = scheme, let information else { return }
        // The field has the form of a challenge's parameters.
        let parameters = ChallengeParser.offers(in: ["Digest \(information)"]).first?.parameters
        guard let nonce = parameters?["nextnonce"], !nonce.isEmpty else { return }
        session.takeNext(nonce: nonce)
        scheme = .digest(session)
    }

    private static func bearer(_ token: String) throws(Problem) -> String {
        let isToken = token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isToken, !token.isEmpty else { throw .badToken }
        return "Bearer \(token)"
    }

    /// RFC 7617 §2, with UTF-8 whether the server says so or not: nothing else holds all names.
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

    /// 128 bits of the system's randomness.
    @Sendable package static func randomNonce() -> String {
        let (first, second) = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))
        return String(first, radix: 16) + String(second, radix: 16)
    }

    /// Why a credential cannot answer a challenge. The text holds no secret.
    package struct Problem: Error, Sendable, Hashable, CustomStringConvertible {
        package let reason: String
        package var description: String { reason }

        static let noOffer = Problem(reason: "the credential fits none of the schemes that the server offers")
        static let colon = Problem(reason: "a user name with a colon cannot be sent by Basic (RFC 7617 §2)")
        static let controlCharacter = Problem(reason: "the user name or the password contains a control character")
        static let badToken = Problem(reason: "the token is empty, or has characters that a field cannot hold")
    }
}
