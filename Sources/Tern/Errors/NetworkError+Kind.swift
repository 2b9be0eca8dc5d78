extension NetworkError {
    /// The kind of a failure. New kinds may be added: switch with a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind's name, fit for a metric label.
        public let rawValue: String

        /// A kind by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The kind's name.
        public var description: String { rawValue }

        /// The request cannot be sent as it is; nothing was sent.
        public static let invalidRequest = Kind(rawValue: "invalid-request")
        /// The host's name could not be resolved.
        public static let dns = Kind(rawValue: "dns")
        /// A proxy could not be found or reached by name, or refused to connect to the server.
        public static let proxy = Kind(rawValue: "proxy")
        /// The host refused the connection.
        public static let connectionRefused = Kind(rawValue: "connection-refused")
        /// No connection could be made, for another reason than a refusal.
        public static let connectionFailed = Kind(rawValue: "connection-failed")
        /// The server's certificate is not trusted.
        public static let untrustedServer = Kind(rawValue: "untrusted-server")
        /// No pin of the trust policy fits the server's certificates.
        public static let pinMismatch = Kind(rawValue: "pin-mismatch")
        /// TLS could not be agreed upon.
        public static let tls = Kind(rawValue: "tls")
        /// `Timeouts.connect` ran out.
        public static let connectTimedOut = Kind(rawValue: "connect-timed-out")
        /// `Timeouts.idle` ran out.
        public static let idleTimedOut = Kind(rawValue: "idle-timed-out")
        /// `Timeouts.total` ran out.
        public static let totalTimedOut = Kind(rawValue: "total-timed-out")
        /// The connection ended before the response was whole, and the server may have acted on the request.
        public static let connectionLost = Kind(rawValue: "connection-lost")
        /// The body of the response ended before its stated length.
        public static let truncatedBody = Kind(rawValue: "truncated-body")
        /// What came is not HTTP, or breaks its rules.
        public static let malformedResponse = Kind(rawValue: "malformed-response")
        /// The head or the body of the response is larger than its limit.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// The status is not accepted.
        public static let status = Kind(rawValue: "status")
        /// The content type is not one that was asked for.
        public static let contentType = Kind(rawValue: "content-type")
        /// A check of `ResponseValidation` refused the response; what it threw is the `underlying` error.
        public static let validation = Kind(rawValue: "validation")
        /// The body could not be decoded as the type asked for.
        public static let decoding = Kind(rawValue: "decoding")
        /// The body of the request could not be produced: its encoder, file or sequence failed, or its length is not
        /// the one stated.
        public static let requestBody = Kind(rawValue: "request-body")
        /// A file could not be written or moved.
        public static let fileSystem = Kind(rawValue: "file-system")
        /// The task was cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// The session takes no more tasks.
        public static let sessionInvalidated = Kind(rawValue: "session-invalidated")
        /// A redirect leads nowhere, gives up TLS, or needs a body that can be sent only once.
        public static let redirect = Kind(rawValue: "redirect")
        /// The redirects go round in a circle.
        public static let redirectLoop = Kind(rawValue: "redirect-loop")
        /// More redirects than `Session.Configuration.maximumRedirects`.
        public static let tooManyRedirects = Kind(rawValue: "too-many-redirects")
        /// A credential could not be had or renewed.
        public static let authentication = Kind(rawValue: "authentication")
        /// An interceptor failed; what it threw is the `underlying` error.
        public static let interceptor = Kind(rawValue: "interceptor")
        /// A policy failed; what it threw is the `underlying` error.
        public static let policy = Kind(rawValue: "policy")
        /// The platform or its transport cannot do what was asked.
        public static let unsupported = Kind(rawValue: "unsupported")
    }
}
