import TernConcurrency

/// Decides how a request continues after a response: whether the response is final, or a redirect or a challenge leads
/// to another request. Pure; one value for all responses to one request.
struct FollowUpRules: Sendable {
    /// The next step after a response.
    enum Action: Sendable {
        /// Delivers the response.
        case deliver
        /// Follows a redirect, if the policies and the session allow it.
        case redirect(RedirectRules.Step)
        /// Fails with this error, unless the policies or the session make the redirect the response.
        case refuse(FailureCause)
        /// Asks for a credential and sends the request again with it.
        case ask(AuthenticationChallenge)
        /// Sends the request again with the same credential, for a new nonce.
        case renew(Authorization)
        /// Sends the request again on a new connection.
        case reconnect
        /// Sends the request again without its expectation, which the server cannot meet (RFC 9110 §15.5.18).
        case dropExpectation(PreparedRequest)
    }

    private var redirects: RedirectRules
    private var authentication = AuthenticationRules()
    private var hasMetChallenge = false
    private var wasMisdirected = false
    /// The redirects so far, oldest first.
    private(set) var history: [ResponseHead] = []
    private var nanosecondsSpent: UInt64 = 0

    init(maximumRedirects: Int) { redirects = RedirectRules(limit: maximumRedirects) }

    /// Decides on a status of 300–399.
    ///
    /// - Parameter locations: The values to use in place of those of Location; nil for those of the response.
    mutating func redirect(
        after head: ResponseHead, to locations: [String]? = nil, of request: Request, headers: Headers
    ) -> Action {
        let action = redirects.action(
            for: head.status, locations: locations ?? head.headers.values(for: "Location"), method: request.method,
            target: request.target, headers: headers)
        switch action {
        case .deliver: return .deliver
        case .fail(let failure): return .refuse(failure)
        case .follow(let step):
            // The caller names the socket for one origin. The cookies and credentials of others are not meant for it.
            guard request.unixSocketPath == nil || step.target.origin == request.target.origin else {
                let reason =
                    "the redirect from \(request.target) to \(step.target) leads to another origin, and the request has a "
                    + "Unix socket of its own"
                return .refuse(FailureCause(.redirect, reason))
            }
            return .redirect(step)
        }
    }

    /// Records a redirect that is followed.
    mutating func recordRedirect(_ head: ResponseHead) { history.append(head) }

    /// Decides on a status of 421: the connection does not serve the origin. A new one is tried once, for every method,
    /// because the server has not acted (RFC 9110 §15.5.20). A second 421 is the response.
    mutating func misdirected() -> Action {
        if wasMisdirected { return .deliver }
        wasMisdirected = true
        return .reconnect
    }

    /// Decides on a status of 401 or 407.
    ///
    /// - Parameters:
    ///   - sent: The remembered authorization that the request was sent with; nil for none.
    ///   - target: The URL of the request.
    mutating func challenge(_ head: ResponseHead, sent: Authorization?, target: Target) -> Action {
        if !hasMetChallenge, let sent { authentication.recordInitial(sent, to: target) }
        hasMetChallenge = true
        return switch authentication.action(for: head) {
        case .returnResponse: .deliver
        case .ask(let challenge): .ask(challenge)
        case .renew(let authorization): .renew(authorization)
        }
    }

    /// Returns the answer to a challenge; nil if the credential was just refused, so that the challenge is the
    /// response.
    ///
    /// - Throws: An error when the credential fits no offer or cannot be sent.
    mutating func answer(
        _ challenge: AuthenticationChallenge, with credential: Credential
    ) throws(Authorization.Problem) -> Authorization? {
        try authentication.answer(challenge, with: credential)
    }

    /// Records that a policy answers a challenge with a request of its own.
    mutating func recordAnswer(to challenge: AuthenticationChallenge) { authentication.recordAnswer(to: challenge) }

    /// Adds the time of an attempt that another one follows. It counts for the total time limit.
    mutating func addTime(of outcome: AttemptOutcome?) { nanosecondsSpent += outcome?.metrics.activeTime ?? 0 }

    /// Adds time that a request has waited before it was sent or answered.
    mutating func addTime(_ time: Duration) { nanosecondsSpent += time.wholeNanoseconds }

    var timeSpent: Duration { .nanoseconds(nanosecondsSpent) }
}
