/// What an answer with status 401 or 407 asks of one request. Pure; one value for the whole life of a request, redirects
/// to other origins included.
///
/// - A credential that was refused is not sent a second time by the same scheme.
/// - A Digest challenge that is `stale`, or that refuses a remembered nonce, is answered with the same credential, once
///   after each asking.
/// - What was remembered from another request, or sent before it was asked for, does not count as a failure.
/// - Who holds credentials is asked at most four times.
package struct AuthenticationRules: Sendable {
    /// What is to be done about an answer.
    package enum Action: Sendable {
        /// It stands: no challenge, none that can be answered, or too many.
        case stand
        /// Somebody is to be asked for a credential: the policy, the URL, the provider; then ``answer(_:with:makeNonce:)``.
        case ask(AuthenticationChallenge)
        /// The same credential is sent again, for a new nonce.
        case renew(Authorization)
    }

    private static let maximumFailures = 4

    private struct Sent: Equatable {
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
        /// What the last request was sent with.
        var last: Sent?
        var wasRenewed = false
        /// It was not made for a challenge of this request.
        var isRemembered = false
    }

    private var states: [AuthenticationChallenge.Source: State] = [:]

    package init() {}

    /// Notes what a request is sent with before any challenge: what is remembered, or sent preemptively.
    package mutating func sent(_ authorization: Authorization, to target: Target) {
        states[authorization.source] = State(
            origin: target.origin, last: Sent(authorization), isRemembered: true)
    }

    /// Looks at an answer. Any other status than 401 and 407 stands.
    package mutating func action(
        for response: ResponseHead, makeNonce: @escaping @Sendable () -> String = Authorization.randomNonce
    ) -> Action {
        guard let source = AuthenticationChallenge.Source(status: response.status) else { return .stand }
        let offers = Self.answerable(response.headers.values(for: source.challengeField))
        if offers.isEmpty { return .stand }
        let origin = response.target.origin
        var state = states[source] ?? State(origin: origin)
        // What one server has refused says nothing about another one.
        if state.origin != origin { state = State(origin: origin) }
        defer { states[source] = state }
        let wasRemembered = state.isRemembered
        state.isRemembered = false
        if let last = state.last, !state.wasRenewed, Self.isOld(offers, last, wasRemembered) {
            state.wasRenewed = true
            let challenge = Self.challenge(source, offers, state, response)
            // What fitted before can fail to fit when the server has changed its mind: it is asked for then.
            let answer = try? Authorization(last.credential, answering: challenge, makeNonce: makeNonce)
            if let answer { return .renew(answer) }
        }
        if state.last != nil, !wasRemembered { state.failures += 1 }
        if state.failures >= Self.maximumFailures { return .stand }
        return .ask(Self.challenge(source, offers, state, response))
    }

    /// The answer to a challenge with a credential; nil if that one was refused just now, so that the challenge stands.
    ///
    /// - Throws: When the credential fits no offer, or cannot be sent.
    package mutating func answer(
        _ challenge: AuthenticationChallenge, with credential: Credential,
        makeNonce: @escaping @Sendable () -> String = Authorization.randomNonce
    ) throws(Authorization.Problem) -> Authorization? {
        var state = states[challenge.source] ?? State(origin: challenge.origin)
        let answer = try Authorization(credential, answering: challenge, makeNonce: makeNonce)
        if state.last == Sent(answer) { return nil }
        state.last = Sent(answer)
        state.wasRenewed = false
        states[challenge.source] = state
        return answer
    }

    private static func challenge(
        _ source: AuthenticationChallenge.Source, _ offers: [AuthenticationChallenge.Offer], _ state: State,
        _ response: ResponseHead
    ) -> AuthenticationChallenge {
        AuthenticationChallenge(
            source: source, origin: state.origin, offers: offers, previousFailures: state.failures, response: response)
    }

    /// Whether only the nonce was refused. The strongest offer decides: a server says the same of all. Some never say
    /// `stale`, and a nonce from another request may simply have ended.
    private static func isOld(
        _ offers: [AuthenticationChallenge.Offer], _ last: Sent, _ wasRemembered: Bool
    ) -> Bool {
        guard let digest = offers.lazy.compactMap({ DigestChallenge($0) }).first else { return false }
        return digest.isStale || wasRemembered && last.scheme.hasPrefix("Digest")
    }

    /// Those that can be answered, the strongest first; equal ones keep the server's order.
    private static func answerable(_ fields: [String]) -> [AuthenticationChallenge.Offer] {
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
