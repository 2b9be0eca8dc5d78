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

/// Origins by their canonical forms. Pure.
struct OriginSet: Sendable {
    /// nil for every origin.
    private let origins: Set<String>?
    /// The reason why a URL names no origin; nil if each does.
    let problem: String?

    init(_ scope: Session.Configuration.HeaderOrigins) {
        guard case .only(let urls) = scope else {
            (origins, problem) = (nil, nil)
            return
        }
        var named: Set<String> = []
        var problem: String?
        for url in urls {
            do throws(Target.Problem) {
                named.insert(try Target(absolute: url).origin)
            } catch {
                problem = error.reason
            }
        }
        (origins, self.problem) = (named, problem)
    }

    var isEveryOrigin: Bool { origins == nil }

    func contains(_ target: Target) -> Bool { origins?.contains(target.origin) ?? true }
}
