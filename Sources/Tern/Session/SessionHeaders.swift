extension Session.Configuration {
    /// The origins that receive header fields with a secret.
    ///
    /// ```swift
    /// configuration.headers["Authorization"] = "Bearer \(token)"
    /// configuration.secretHeaderOrigins = ["https://api.example.com"]
    /// ```
    public enum HeaderOrigins: Sendable, Hashable, ExpressibleByArrayLiteral {
        /// The origins of these URLs, such as `https://api.example.com`. Only the scheme, host and port count, not the
        /// path.
        case only([String])
        /// Every origin that a request names. A redirect to another origin still removes the fields.
        case all

        /// Creates the value from the origins of these URLs.
        public init(arrayLiteral urls: String...) { self = .only(urls) }
    }
}

/// Selects the header fields that a session adds to a request, by the request's origin. Pure.
struct SessionHeaders: Sendable {
    private let all: Headers
    /// The fields without a secret.
    private let open: Headers
    /// The origins that receive all fields; nil for every origin.
    private let origins: Set<String>?
    /// The reason why no request can be sent with these fields; nil when requests can.
    let problem: String?

    init(_ headers: Headers, secretsTo scope: Session.Configuration.HeaderOrigins) {
        all = headers
        open = Headers(headers.filter { !Self.isBound($0) })
        let secret = open.count == headers.count ? nil : headers.first(where: Self.isBound)
        switch scope {
        case .all:
            origins = nil
            problem = nil
        case .only(let urls):
            var named: Set<String> = []
            var problem: String?
            for url in urls {
                do throws(Target.Problem) {
                    named.insert(try Target(absolute: url).origin)
                } catch {
                    problem = "secretHeaderOrigins: \(error.reason)"
                }
            }
            if let secret, urls.isEmpty {
                problem =
                    "the header \(secret.name.printable(limit: 80)) holds a secret, and secretHeaderOrigins does not "
                    + "say which origins it is for"
            }
            origins = secret == nil ? nil : named
            self.problem = problem
        }
    }

    /// Returns whether a field is sent to the named origins only: it holds a secret and is not `Proxy-Authorization`,
    /// which is meant for the proxy and never sent to an origin.
    private static func isBound(_ field: Headers.Field) -> Bool {
        Headers.isSecret(field.name) && !Headers.namesMatch(field.name, "Proxy-Authorization")
    }

    /// Returns the fields for a request to a URL.
    func fields(for target: Target) -> Headers {
        guard let origins else { return all }
        return origins.contains(target.origin) ? all : open
    }
}
