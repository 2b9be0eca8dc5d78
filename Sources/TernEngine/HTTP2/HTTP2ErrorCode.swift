/// An error code of RST_STREAM and GOAWAY (RFC 9113 §7).
struct HTTP2ErrorCode: Equatable {
    static let noError = HTTP2ErrorCode(value: 0)
    static let protocolError = HTTP2ErrorCode(value: 1)
    static let refusedStream = HTTP2ErrorCode(value: 7)
    static let cancel = HTTP2ErrorCode(value: 8)
    static let enhanceYourCalm = HTTP2ErrorCode(value: 11)
    static let inadequateSecurity = HTTP2ErrorCode(value: 12)
    static let http11Required = HTTP2ErrorCode(value: 13)

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]

    var value: UInt32

    /// The name in the RFC, or the number of an unknown code.
    var name: String {
        let names = Self.names
        return value < names.count ? names[Int(value)] : "error \(value)"
    }

    /// The failure of a stream that the server reset with this code.
    var streamFailure: EngineError {
        switch self {
        case .refusedStream:
            .refusedStream
        case .http11Required:
            .requiresHTTP11
        case .inadequateSecurity:
            EngineError(
                .tls, "the server requires stronger security for HTTP/2: INADEQUATE_SECURITY (RFC 9113 §9.2)",
                http2Code: value)
        default:
            EngineError(
                .connectionLost, "the server reset the stream: \(name) (RFC 9113 §5.4.2)", http2Code: value)
        }
    }
}

extension EngineError {
    /// The failure of a request that the server accepts over HTTP/1.1 only. It has not processed the request.
    static let requiresHTTP11 = EngineError(
        .notProcessed, "the server requires HTTP/1.1: HTTP_1_1_REQUIRED (RFC 9113 §7)",
        http2Code: HTTP2ErrorCode.http11Required.value)

    /// The failure of a request whose stream the server refused. It has not processed the request.
    static let refusedStream = EngineError(
        .notProcessed, "the server refused the stream before it processed the request (RFC 9113 §8.7)",
        http2Code: HTTP2ErrorCode.refusedStream.value)

    /// The failure of a request that was queued, or was above the last stream of a GOAWAY.
    static let goneAway = EngineError(
        .notProcessed, "the server ended the connection before it processed the request: GOAWAY (RFC 9113 §6.8)")

    /// The failure of a response that violates a rule of HTTP/2.
    static func malformed(_ reason: String) -> EngineError { EngineError(.malformedResponse, reason) }
}
