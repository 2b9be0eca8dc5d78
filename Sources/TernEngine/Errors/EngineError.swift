/// The reason why an exchange or a connection failed. Its text names hosts and numbers, and contains no secret and no
/// byte that a server sent.
package struct EngineError: Error, Sendable, Equatable {
    /// The kind of a failure, from which the caller derives its own error.
    package enum Kind: Sendable, Equatable {
        /// The name of the host could not be resolved.
        case dns
        /// The host refused the connection.
        case connectionRefused
        /// No connection was made, for another reason.
        case connectionFailed
        /// The process or the system has no free file descriptor.
        case outOfDescriptors
        /// No connection was made within its time limit.
        case connectTimedOut
        /// The proxy refused to connect, or sent an answer that is not valid.
        case proxy
        /// The TLS handshake or a TLS record failed.
        case tls
        /// The certificate of the server is not trusted.
        case untrustedServer
        /// The trust policy refused the certificates of the server.
        case refusedByPolicy
        /// The response violates the rules of HTTP.
        case malformedResponse
        /// A part of the response exceeds its limit.
        case tooLarge
        /// The connection ended before the response, or within it.
        case connectionLost
        /// The connection ended before the stated length of the body.
        case truncatedBody
        /// The request cannot be sent as it is.
        case invalidRequest
        /// The exchange was cancelled.
        case cancelled
        /// The server stated that it has not processed the request (GOAWAY, REFUSED_STREAM, HTTP_1_1_REQUIRED; RFC
        /// 9113 §7, §8.7).
        case notProcessed
    }

    package var kind: Kind
    /// A sentence without a period at the end, in present or past tense, that says what happened and cites the RFC
    /// section of a rule.
    package var reason: String
    /// The error number of the system call that failed; 0 without one.
    package var code: Int32
    /// The error code of HTTP/2 with which the server reset the stream or ended the connection; nil without one.
    package var http2Code: UInt32?

    package init(_ kind: Kind, _ reason: String, code: Int32 = 0, http2Code: UInt32? = nil) {
        self.kind = kind
        self.reason = reason
        self.code = code
        self.http2Code = http2Code
    }
}
