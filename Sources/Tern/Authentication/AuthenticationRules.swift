/// Decides how one request answers responses with status 401 and 407. One value serves all attempts of a request, also
/// after redirects to other origins.
///
/// - A credential that was refused is not sent again with the same scheme.
/// - A Digest challenge that is `stale`, or that refuses a remembered nonce, is answered with the same credential, once
///   for each credential.
/// - A credential that was remembered from another request, or sent preemptively, does not count as a failure.
/// - The provider, and a policy that answers with a request of its own, are asked at most four times.
package struct AuthenticationRules: Sendable {
    /// The next step after a response.
    package enum Action: Sendable {
        /// Return the response: it has no challenge that can be answered, or there were too many.
        case returnResponse
        /// Ask the policy, the URL and the provider for a credential, then call ``answer(_:with:makeNonce:)``.
        case ask(AuthenticationChallenge)
        /// Send the same credential again with a new nonce.
        case renew(Authorization)
    }

    private static let maximumFailures = 4

    private struct SentAuthorization: Equatable {
        let credential: Credential
        let scheme: String

        init(_ authorization: Authorization) {
            credential = authorization.credential
            scheme = authorization.schemeName
        }
    }

    private struct State {
        var origin: String
        var failures = 0
        /// The credential and scheme of the last attempt.
        var last: SentAuthorization?
        var wasRenewed = false
        /// True after a request that a policy made in answer to a challenge.
        var wasAnsweredByPolicy = false
        /// True for an authorization that was not made for a challenge of this request.
        var isRemembered = false
    }

    private var states: [AuthenticationChallenge.Source: State] = [:]

    package init() {}

    /// Records the authorization that a request carries before any challenge, because it is remembered or preemptive.
    package mutating func recordInitial(_ authorization: Authorization, to target: Target) {
        states[authorization.source] = State(
            origin: target.origin, last: SentAuthorization(authorization), isRemembered: true)
    }

    /// Returns the next step for a response. A status other than 401 and 407 is returned to the caller.
    package mutating func action(
        for response: ResponseHead, makeNonce: @escaping @Sendable () -> String = Authorization.randomNonce
    ) -> Action {
        guard let source = AuthenticationChallenge.Source(status: response.status) else { return .returnResponse }
        let offers = Self.answerable(response.headers.values(for: source.challengeField))
        if offers.isEmpty { return .returnResponse }
        let origin = response.target.origin
        var state = states[source] ?? State(origin: origin)
        // The failures of one server do not count for another one.
        if state.origin != origin { state = State(origin: origin) }
        defer { states[source] = state }
        let wasRemembered = state.isRemembered
        state.isRemembered = false
        if let last = state.last, !state.wasRenewed,
            Self.isNonceExpired(in: offers, last: last, wasRemembered: wasRemembered)
        {
            state.wasRenewed = true
            let challenge = Self.challenge(from: source, offers: offers, state: state, response: response)
            // The renewal fails if the server no longer offers the scheme. The credential is then asked for again.
            let answer = try? Authorization(last.credential, answering: challenge, makeNonce: makeNonce)
            if let answer { return .renew(answer) }
        }
        if state.last != nil && !wasRemembered || state.wasAnsweredByPolicy { state.failures += 1 }
        state.wasAnsweredByPolicy = false
        if state.failures >= Self.maximumFailures { return .returnResponse }
        return .ask(Self.challenge(from: source, offers: offers, state: state, response: response))
    }

    /// Returns the answer to a challenge with a credential; nil if the same credential was refused just now, so that
    /// the challenge becomes the response.
    ///
    /// - Throws: `Problem` when no offer accepts the credential, or when it cannot be sent.
    package mutating func answer(
        _ challenge: AuthenticationChallenge, with credential: Credential,
        makeNonce: @escaping @Sendable () -> String = Authorization.randomNonce
    ) throws(Authorization.Problem) -> Authorization? {
        var state = states[challenge.source] ?? State(origin: challenge.origin)
        let answer = try Authorization(credential, answering: challenge, makeNonce: makeNonce)
        if state.last == SentAuthorization(answer) { return nil }
        state.last = SentAuthorization(answer)
        state.wasRenewed = false
        states[challenge.source] = state
        return answer
    }

    /// Records that a policy answers a challenge with a request of its own, whose refusal is a failure.
    package mutating func recordAnswer(to challenge: AuthenticationChallenge) {
        states[challenge.source, default: State(origin: challenge.origin)].wasAnsweredByPolicy = true
    }

    private static func challenge(
        from source: AuthenticationChallenge.Source, offers: [AuthenticationChallenge.Offer], state: State,
        response: ResponseHead
    ) -> AuthenticationChallenge {
        AuthenticationChallenge(
            source: source, origin: state.origin, offers: offers, previousFailures: state.failures, response: response)
    }

    /// Returns whether the server refused only the nonce. The strongest offer decides, because a server marks all of
    /// them alike. Some servers never send `stale`, and a nonce from another request may have expired.
    private static func isNonceExpired(
        in offers: [AuthenticationChallenge.Offer], last: SentAuthorization, wasRemembered: Bool
    ) -> Bool {
        guard let digest = offers.lazy.compactMap({ DigestChallenge($0) }).first else { return false }
        return digest.isStale || wasRemembered && last.scheme.hasPrefix("Digest")
    }

    /// Returns the offers that can be answered, strongest first. Offers of equal strength keep the server's order.
    static func answerable(_ fields: [String]) -> [AuthenticationChallenge.Offer] {
        let ranked = ChallengeParser.offers(in: fields).compactMap { offer in
            strength(offer).map { (strength: $0, offer: offer) }
        }
        return ranked.enumerated().sorted { left, right in
            (right.element.strength, left.offset) < (left.element.strength, right.offset)
        }.map(\.element.offer)
    }

    private static func strength(_ offer: AuthenticationChallenge.Offer) -> Int? {
        if let digest = DigestChallenge(offer) { return 10 + digest.strength }
        if Headers.namesMatch(offer.scheme, "Bearer") { return 2 }
        return Headers.namesMatch(offer.scheme, "Basic") ? 1 : nil
    }
}
