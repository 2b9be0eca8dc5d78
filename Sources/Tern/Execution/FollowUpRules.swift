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
        case refuse(TransferFailure)
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

    /// Returns whether a response can lead to another request: a redirect, a challenge, or a refused expectation (417).
    static func mayFollow(_ head: ResponseHead) -> Bool {
        guard head.status >= 400 else { return head.status >= 300 }
        return [401, 407, 417, 421].contains(head.status)
    }

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
                return .refuse(TransferFailure(.redirect, reason))
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
    mutating func addTime(of outcome: TransferOutcome?) { nanosecondsSpent += outcome?.metrics.activeTime ?? 0 }

    /// Adds time that a request has waited before it was sent or answered.
    mutating func addTime(_ time: Duration) { nanosecondsSpent += time.wholeNanoseconds }

    var timeSpent: Duration { .nanoseconds(nanosecondsSpent) }
}

/// Decides how a redirect is followed, by RFC 9110 §15.4 and the fetch standard's "HTTP-redirect fetch". Pure.
///
/// - 301 and 302 turn POST into GET. 303 turns every method except GET and HEAD into GET. 307 and 308 change nothing.
/// - A Location is resolved against the URL of the response, and takes over the fragment of that URL if it has none of
///   its own (RFC 9110 §10.2.2). Several Locations that differ are an error, because the intended one is unknown.
/// - The same URL can occur again: servers set a cookie and redirect to the same URL. Beyond the limit it is a loop.
/// - A redirect from https to http is refused. Credentials and cookies never go to another origin.
struct RedirectRules: Sendable {
    /// The next step after a response.
    enum Action: Sendable {
        /// Delivers the response: it is not a redirect, or has no Location.
        case deliver
        /// Sends another request.
        case follow(Step)
        /// Refuses the redirect.
        case fail(TransferFailure)
    }

    /// The request that follows a redirect.
    struct Step: Sendable {
        var method: Request.Method
        var target: Target
        var headers: Headers
        var keepsBody: Bool
    }

    /// The maximum number of redirects in a row.
    let limit: Int
    private var visited: [Visit] = []

    /// A request that was sent.
    private struct Visit: Equatable {
        let method: Request.Method
        let url: String
    }

    init(limit: Int) { self.limit = limit }

    /// The fields that describe or frame a request's body (RFC 9110 §15.4, step 3 of the list). The engine refuses a
    /// Transfer-Encoding without a body, and an expectation needs one (§10.1.1).
    private static let bodyFields = [
        "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location", "Digest",
        "Content-Digest", "Last-Modified", "Content-Range", "Content-Disposition", "Content-MD5", "Repr-Digest",
        "Transfer-Encoding", "Trailer", "Expect",
    ]

    mutating func action(
        for status: Int, locations: [String], method: Request.Method, target: Target, headers: Headers
    ) -> Action {
        guard [301, 302, 303, 307, 308].contains(status), let location = locations.first else { return .deliver }
        if locations.contains(where: { !$0.hasSameBytes(as: location) }) {
            return .fail(TransferFailure(.redirect, "the redirect from \(target) names several places"))
        }
        var next: Target
        do {
            next = try target.resolving(location)
        } catch {
            return .fail(TransferFailure(.redirect, "the redirect from \(target) leads nowhere: \(error.reason)"))
        }
        // The user information stays with its origin, because a Location rarely repeats it. One that has its own
        // replaces it.
        let fragment = next.fragment ?? target.fragment
        let hasUser = next.user != nil || next.password != nil
        if next.origin == target.origin, !hasUser { next = Target(string: next.string, authority: target.authority) }
        if next.fragment != fragment { next = next.with(fragment: fragment) }
        if visited.isEmpty { visited.append(Visit(method: method, url: target.string)) }
        if target.isSecure, !next.isSecure {
            let reason = "the redirect from \(target) to \(next) would give up TLS"
            return .fail(TransferFailure(.redirect, reason))
        }
        var step = Step(method: method, target: next, headers: headers, keepsBody: true)
        if Self.becomesGet(status, method) {
            step.method = .get
            step.keepsBody = false
            for name in Self.bodyFields { step.headers.remove(name) }
        }
        if next.origin != target.origin {
            step.headers.removeFieldsForOneOrigin()
        }
        return checked(step)
    }

    /// Follows a redirect unless there were too many.
    private mutating func checked(_ step: Step) -> Action {
        let visit = Visit(method: step.method, url: step.target.string)
        // The first visit is the original request.
        if visited.count > limit {
            let text = "more than \(limit) redirects, the last one to \(step.target)"
            guard let seen = visited.lastIndex(of: visit) else {
                return .fail(TransferFailure(.tooManyRedirects, text))
            }
            let steps = visited.count - seen
            let back = steps == 1 ? "1 redirect before" : "\(steps) redirects before"
            return .fail(TransferFailure(.redirectLoop, "\(text), which was requested \(back)"))
        }
        visited.append(visit)
        return .follow(step)
    }

    private static func becomesGet(_ status: Int, _ method: Request.Method) -> Bool {
        switch status {
        case 301, 302: method == .post
        case 303: method != .get && method != .head
        default: false
        }
    }
}

extension Headers {
    /// The fields that are meant for one origin only.
    private static let originFields = ["Authorization", "Proxy-Authorization", "Cookie", "Host", "Origin", "Referer"]

    /// Removes the fields that must not follow a request to another origin: those that name the origin, and secrets.
    mutating func removeFieldsForOneOrigin() {
        for name in Self.originFields { remove(name) }
        for field in self where Self.isSecret(field.name) { remove(field.name) }
    }
}

extension Target {
    /// Returns the URL of a reference relative to this URL (RFC 3986 §5.2): `next`, `/path`, `?query`, `//host`, a URL.
    /// Bytes that a URL cannot hold are percent-encoded, because a Location is often raw UTF-8.
    package func resolving(_ reference: String) throws(Problem) -> Target {
        var bytes = Array(reference.utf8)
        if let fragment = Reference.fragment(of: bytes[...]) {
            bytes.removeSubrange((bytes.firstIndex(of: Reference.hash) ?? bytes.endIndex)...)
            return try resolving(String(decoding: bytes, as: UTF8.self)).with(fragment: fragment)
        }
        let isWhole = Reference.schemeEnd(bytes) != nil
        if isWhole { return try Target(absolute: reference) }
        if bytes.starts(with: "//".utf8) { return try Target(absolute: scheme + ":" + reference) }
        var path = Array(pathAndQuery.utf8)
        switch bytes.first {
        case nil, Reference.hash:
            break
        case Reference.slash:
            path = []
        case Reference.query:
            path = Array(path.prefix { $0 != Reference.query })
        default:
            path = Array(path.prefix { $0 != Reference.query })
            path.removeSubrange(((path.lastIndex(of: Reference.slash) ?? -1) + 1)...)
        }
        let tail = try Reference.normalized((path + bytes)[...])
        return Target(string: authority.root + String(decoding: tail, as: UTF8.self), authority: authority)
    }
}
