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
        case fail(FailureCause)
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
        // An empty Location names no other place. It counts as none, as in browsers: a request for the same URL would
        // only be redirected again.
        let locations = locations.filter { !$0.isEmpty }
        guard [301, 302, 303, 307, 308].contains(status), let location = locations.first else { return .deliver }
        if locations.contains(where: { !$0.hasSameBytes(as: location) }) {
            return .fail(FailureCause(.redirect, "the redirect from \(target) names several places"))
        }
        var next: Target
        do {
            next = try target.resolving(location)
        } catch {
            return .fail(FailureCause(.redirect, "the redirect from \(target) leads nowhere: \(error.reason)"))
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
            return .fail(FailureCause(.redirect, reason))
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
                return .fail(FailureCause(.tooManyRedirects, text))
            }
            let steps = visited.count - seen
            let back = steps == 1 ? "1 redirect before" : "\(steps) redirects before"
            return .fail(FailureCause(.redirectLoop, "\(text), which was requested \(back)"))
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
