extension Session.Configuration {
    /// The redirects that a session follows.
    ///
    /// A redirect that is not followed is the response, and its 3xx status is accepted regardless of the validation.
    public enum Redirects: Sendable, Hashable {
        /// Follows every redirect that the rules of RFC 9110 §15.4 allow. A redirect to a scheme other than http and
        /// https, or from https to http, fails with an error of kind `.redirect`.
        case follow
        /// Follows no redirect.
        case stop
        /// Follows redirects to the scheme, host and port of the request that was answered. Every other redirect is the
        /// response, also one whose `Location` is not a URL or not http or https, and one from https to http.
        case sameOrigin

        /// Returns whether a redirect that the rules allow is the response.
        func stops(at target: Target, _ request: Request) -> Bool {
            switch self {
            case .follow: false
            case .stop: true
            case .sameOrigin: target.origin != request.target.origin
            }
        }

        /// Returns whether a refused redirect is the response. With `.sameOrigin`, a redirect beyond the maximum number
        /// is an error instead, because the redirects before it stayed on one origin.
        func stops(atRefused kind: NetworkError.Kind) -> Bool {
            self == .stop || self == .sameOrigin && kind == .redirect
        }
    }
}
