/// What a redirect asks for, by RFC 9110 §15.4 and the fetch standard's "HTTP-redirect fetch". Pure.
///
/// - 301 and 302 turn POST into GET, and 303 turns everything but GET and HEAD into GET; 307 and 308 change nothing.
/// - A Location is resolved against the URL that answered, and takes over its fragment if it has none of its own
///   (RFC 9110 §10.2.2). Several that differ are a failure: which one a server meant cannot be known.
/// - A URL may be met again: servers set a cookie and redirect to the same place. Beyond the limit that is a loop.
/// - From https to http is refused; credentials and cookies never go to another origin.
struct RedirectRules: Sendable {
    /// What becomes of an answer.
    enum Action: Sendable {
        /// It is no redirect, or has no Location: it stands.
        case stand
        case follow(Step)
        case fail(TransferFailure)
    }

    /// The request that follows.
    struct Step: Sendable {
        var method: Request.Method
        var target: Target
        var headers: Headers
        var keepsBody: Bool
    }

    /// Redirects that are followed one after the other.
    let limit: Int
    private var visited: [Visit] = []

    private struct Visit: Equatable {
        let method: Request.Method
        let url: String
    }

    init(limit: Int) { self.limit = limit }

    /// The fields that belong to a request's body (RFC 9110 §15.4, step 3 of the list).
    private static let bodyFields = [
        "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location", "Digest",
        "Content-Digest", "Last-Modified",
    ]
    /// The fields that are meant for one origin alone.
    private static let originFields = ["Authorization", "Proxy-Authorization", "Cookie", "Host", "Origin", "Referer"]

    mutating func action(
        for status: Int, locations: [String], method: Request.Method, target: Target, headers: Headers
    ) -> Action {
        guard [301, 302, 303, 307, 308].contains(status), let location = locations.first else { return .stand }
        if locations.contains(where: { $0 != location }) {
            return .fail(TransferFailure(.redirect, "the redirect from \(target) names several places"))
        }
        var next: Target
        do {
            next = try target.resolving(location)
        } catch {
            return .fail(TransferFailure(.redirect, "the redirect from \(target) leads nowhere: \(error.reason)"))
        }
        // The user information stays with its origin: a Location rarely repeats it.
        let fragment = next.fragment ?? target.fragment
        if next.origin == target.origin { next = Target(string: next.string, authority: target.authority) }
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
            for name in Self.originFields { step.headers.remove(name) }
            for field in step.headers where Headers.isSecret(field.name) { step.headers.remove(field.name) }
        }
        return checked(step)
    }

    private mutating func checked(_ step: Step) -> Action {
        let visit = Visit(method: step.method, url: step.target.string)
        // The first visit is the request itself.
        if visited.count > limit {
            let text = "more than \(limit) redirects, the last one to \(step.target)"
            guard let seen = visited.lastIndex(of: visit) else {
                return .fail(TransferFailure(.tooManyRedirects, text))
            }
            let steps = visited.count - seen
            let back = steps == 1 ? "1 redirect before" : "\(steps) redirects before"
            return .fail(TransferFailure(.redirectLoop, "\(text), which was asked for \(back)"))
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

extension Target {
    /// The URL that a reference means, seen from this one (RFC 3986 §5.2): `next`, `/path`, `?query`, `//host`, a URL.
    /// Bytes that a URL cannot hold are percent-encoded; those of a Location are often raw UTF-8.
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
