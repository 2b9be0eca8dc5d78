extension NetworkError {
    /// The kind of a failure. New kinds can be added, so a switch needs a `default`.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind, suitable as a metric label.
        public let rawValue: String

        /// Creates a kind from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The kind's name.
        public var description: String { rawValue }

        /// The kinds of a server that could not be reached, or did not answer.
        package static let outages: Set<Kind> = [
            .dns, .proxy, .connectionRefused, .connectionFailed, .connectTimedOut, .idleTimedOut,
            .attemptTimedOut, .totalTimedOut, .connectionLost,
        ]

        /// The request cannot be sent. Nothing was sent.
        public static let invalidRequest = Kind(rawValue: "invalid-request")
        /// The host's name could not be resolved.
        public static let dns = Kind(rawValue: "dns")
        /// A proxy could not be resolved or reached, or refused to connect to the server.
        public static let proxy = Kind(rawValue: "proxy")
        /// The host refused the connection.
        public static let connectionRefused = Kind(rawValue: "connection-refused")
        /// No connection could be made, for a reason other than a refusal.
        public static let connectionFailed = Kind(rawValue: "connection-failed")
        /// The server's certificate is not trusted.
        public static let untrustedServer = Kind(rawValue: "untrusted-server")
        /// No pin of the trust policy matches the server's certificates.
        public static let pinMismatch = Kind(rawValue: "pin-mismatch")
        /// The TLS handshake failed.
        public static let tls = Kind(rawValue: "tls")
        /// No connection was free within `Timeouts.queue`. Nothing was sent.
        public static let queueTimedOut = Kind(rawValue: "queue-timed-out")
        /// The limit `Timeouts.connect` was exceeded.
        public static let connectTimedOut = Kind(rawValue: "connect-timed-out")
        /// The limit `Timeouts.idle` was exceeded.
        public static let idleTimedOut = Kind(rawValue: "idle-timed-out")
        /// The limit `Timeouts.attempt` was exceeded.
        public static let attemptTimedOut = Kind(rawValue: "attempt-timed-out")
        /// The limit `Timeouts.total` was exceeded.
        public static let totalTimedOut = Kind(rawValue: "total-timed-out")
        /// The connection ended before the response was complete. The server may have acted on the request.
        public static let connectionLost = Kind(rawValue: "connection-lost")
        /// The body of the response ended before its stated length.
        public static let truncatedBody = Kind(rawValue: "truncated-body")
        /// The response is not HTTP, or violates its rules.
        public static let malformedResponse = Kind(rawValue: "malformed-response")
        /// The head or the body of the response exceeds its limit.
        public static let tooLarge = Kind(rawValue: "too-large")
        /// The status is not accepted.
        public static let status = Kind(rawValue: "status")
        /// The content type is not accepted.
        public static let contentType = Kind(rawValue: "content-type")
        /// A check of `ResponseValidation` refused the response. Its error is the `underlying` error.
        public static let validation = Kind(rawValue: "validation")
        /// The body could not be decoded as the requested type.
        public static let decoding = Kind(rawValue: "decoding")
        /// The body of the request could not be produced: its encoder, file or sequence failed, or its length differs
        /// from the stated one.
        public static let requestBody = Kind(rawValue: "request-body")
        /// A file could not be written or moved.
        public static let fileSystem = Kind(rawValue: "file-system")
        /// The task was cancelled.
        public static let cancelled = Kind(rawValue: "cancelled")
        /// The session accepts no more tasks.
        public static let sessionInvalidated = Kind(rawValue: "session-invalidated")
        /// A redirect has no valid destination, leaves TLS, or needs a body that can be sent only once.
        public static let redirect = Kind(rawValue: "redirect")
        /// The redirects form a loop.
        public static let redirectLoop = Kind(rawValue: "redirect-loop")
        /// There were more redirects than `Session.Configuration.maximumRedirects`.
        public static let tooManyRedirects = Kind(rawValue: "too-many-redirects")
        /// A credential could not be obtained or renewed.
        public static let authentication = Kind(rawValue: "authentication")
        /// An interceptor failed. Its error is the `underlying` error.
        public static let interceptor = Kind(rawValue: "interceptor")
        /// A policy failed. Its error is the `underlying` error.
        public static let policy = Kind(rawValue: "policy")
        /// No stored response can answer the request, and it must not be sent: it has the choice
        /// ``Request/CacheChoice/onlyStored``, or the directive `only-if-cached`.
        public static let notStored = Kind(rawValue: "not-stored")
        /// The platform or its transport does not support the operation.
        public static let unsupported = Kind(rawValue: "unsupported")
    }
}
