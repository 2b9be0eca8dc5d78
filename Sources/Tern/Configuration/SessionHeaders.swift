/// Selects the header fields that a session adds to a request, by the request's origin. Pure. A class, because each
/// request asks for its fields, and a copy has many references.
final class SessionHeaders: Sendable {
    private let all: Headers
    /// The fields without a secret.
    private let withoutSecrets: Headers
    /// The origins that receive all fields.
    private let origins: OriginSet
    /// The reason why no request can be sent with these fields; nil when requests can.
    let problem: String?

    init(_ headers: Headers, secretsTo scope: Session.Configuration.HeaderOrigins) {
        all = headers
        withoutSecrets = Headers(headers.filter { !Self.isSecretForOrigins($0) })
        let secret = withoutSecrets.count == headers.count ? nil : headers.first(where: Self.isSecretForOrigins)
        origins = OriginSet(secret == nil ? .all : scope)
        if let secret, case .only(let urls) = scope, urls.isEmpty {
            problem =
                "the header \(secret.name.printable(limit: 80)) holds a secret, and secretHeaderOrigins does not "
                + "say which origins it is for"
        } else {
            problem = OriginSet(scope).problem.map { "secretHeaderOrigins: \($0)" }
        }
    }

    /// Returns whether a field is sent to the named origins only: it holds a secret and is not `Proxy-Authorization`,
    /// which is meant for the proxy and never sent to an origin.
    private static func isSecretForOrigins(_ field: Headers.Field) -> Bool {
        Headers.isSecret(field.name) && !Headers.namesMatch(field.name, "Proxy-Authorization")
    }

    /// Whether a field holds a secret.
    var haveSecrets: Bool { withoutSecrets.count != all.count }

    /// The fields for every request; nil if they depend on its origin. Known without a copy of its target.
    var forEveryOrigin: Headers? {
        @inline(never) get { origins.isEveryOrigin ? all : nil }
    }

    /// Returns the fields for a request to a URL.
    @inline(never)
    func fields(for target: Target) -> Headers {
        origins.contains(target) ? all : withoutSecrets
    }
}
