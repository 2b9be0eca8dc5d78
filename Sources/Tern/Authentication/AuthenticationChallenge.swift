/// What a server or a proxy asks for before it lets a request in: status 401 or 407 (RFC 9110 §11).
public struct AuthenticationChallenge: Sendable {
    /// Who asks.
    public enum Source: Sendable, Hashable {
        /// The server: 401, `WWW-Authenticate`, answered by `Authorization`.
        case server
        /// A proxy that received a plain http request. The challenge is a 407 response with `Proxy-Authenticate`, and
        /// the answer is a `Proxy-Authorization` field.
        case proxy
    }

    /// One scheme that would be accepted.
    public struct Offer: Sendable, Hashable {
        /// The scheme as it was written, such as `Basic`; compared without regard to case.
        public let scheme: String
        /// What stands alone behind the scheme, in place of parameters.
        public internal(set) var token: String?
        /// The parameters by their names in lower case, without quotes.
        public internal(set) var parameters: [String: String] = [:]

        init(scheme: String) { self.scheme = scheme }

        /// The part of the server that the credential is for, as the server names it.
        public var realm: String? { parameters["realm"] }
    }

    /// Who asks.
    public let source: Source
    /// `scheme://host:port` of the server that was asked.
    public let origin: String
    /// The schemes that would be accepted and that Tern can answer, the strongest first: Digest with SHA-512/256,
    /// SHA-256 and MD5, Bearer, Basic. Never empty.
    public let offers: [Offer]
    /// How many credentials were refused for this request so far.
    public let previousFailures: Int
    /// The answer that holds the challenge.
    public let response: ResponseHead

    /// The realm of the strongest offer.
    public var realm: String? { offers.first?.realm }
}

extension AuthenticationChallenge.Source {
    /// The field with the challenges.
    var challengeField: String { self == .server ? "WWW-Authenticate" : "Proxy-Authenticate" }

    /// The field with the answer.
    package var authorizationField: String { self == .server ? "Authorization" : "Proxy-Authorization" }

    /// The field of an accepted request's answer.
    package var informationField: String {
        self == .server ? "Authentication-Info" : "Proxy-Authentication-Info"
    }

    /// The status of a request that was not let in.
    package var status: Int { self == .server ? 401 : 407 }

    /// nil for other statuses than 401 and 407.
    init?(status: Int) {
        switch status {
        case 401: self = .server
        case 407: self = .proxy
        default: return nil
        }
    }
}

/// What becomes of a challenge.
public enum ChallengeDecision: Sendable {
    /// The caller has answered it by itself: this request is sent in place of the one that was challenged.
    case send(Request)
    /// The task fails with this error, as `underlying` of one of kind `.authentication` unless it is a `NetworkError`.
    case cancel(any Error)
    /// This credential is tried.
    case use(Credential)
    /// As if nobody had been asked: the URL's own credential, then the provider's.
    case performDefault
    /// It is not answered: the 401 or 407 is the response.
    case reject
}
