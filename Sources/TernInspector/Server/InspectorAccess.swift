/// Decides which requests a page answers. Pure.
///
/// A web page of another site can send requests to this machine, and by a name of its own that leads here (DNS
/// rebinding) can even read the answers. The token in the path keeps both out, and so do the checks of `Host`, `Origin`
/// and `Sec-Fetch-Site`; no answer has a field that would let another origin read it.
struct InspectorAccess: Sendable {
    /// A request for the page, as far as it decides.
    struct Question: Sendable {
        var method = "GET"
        /// The target with its query.
        var target: String
        /// All values of `Host`.
        var hosts: [String]
        var origin: String?
        var fetchSite: String?
    }

    /// A part of the page.
    enum Resource: Sendable, Equatable {
        case page, events, cache, har
        case task(UInt64)
    }

    enum Decision: Sendable, Equatable {
        case answer(Resource)
        case refuse(status: Int, reason: String)
    }

    let port: Int
    let token: String

    /// The maximum number of bytes of a target.
    static let targetLimit = 512

    func decision(about question: Question) -> Decision {
        guard question.target.utf8.count <= Self.targetLimit else {
            return .refuse(status: 414, reason: "the target is too long")
        }
        guard question.hosts.count == 1, names.contains(question.hosts[0].lowercased()) else {
            return .refuse(status: 403, reason: "the Host field does not name this page")
        }
        if let origin = question.origin, !names.contains(where: { origin.lowercased() == "http://\($0)" }) {
            return .refuse(status: 403, reason: "another origin asks")
        }
        if let site = question.fetchSite, site != "same-origin", site != "none" {
            return .refuse(status: 403, reason: "another site asks")
        }
        guard question.method == "GET" || question.method == "HEAD" else {
            return .refuse(status: 405, reason: "the page answers GET and HEAD alone")
        }
        // A wrong token and an unknown path have one answer.
        guard let resource = resource(question.target) else { return .refuse(status: 404, reason: "nothing is here") }
        return .answer(resource)
    }

    /// The values of `Host` that name the page.
    private var names: [String] { ["127.0.0.1:\(port)", "localhost:\(port)"] }

    private func resource(_ target: String) -> Resource? {
        let path = target.prefix { $0 != "?" }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard path.hasPrefix("/"), let given = parts.first, isToken(given) else { return nil }
        switch Array(parts.dropFirst()) {
        case [""]: return .page
        case ["events"]: return .events
        case ["cache"]: return .cache
        case ["requests.har"]: return .har
        case let rest where rest.count == 2 && rest[0] == "tasks":
            guard rest[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return UInt64(rest[1]).map { .task($0) }
        default: return nil
        }
    }

    /// Compares in a time that does not depend on the place of the first difference.
    private func isToken(_ given: Substring) -> Bool {
        let (given, token) = (Array(given.utf8), Array(token.utf8))
        guard given.count == token.count else { return false }
        return zip(given, token).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// Returns 128 random bits of the system as text.
    static func randomText() -> String {
        var random = SystemRandomNumberGenerator()
        return [random.next(), random.next()].map { (number: UInt64) in
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
    }
}
