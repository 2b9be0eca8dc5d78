/// An error code of HTTP/3 (RFC 9114 §8.1) or QPACK (RFC 9204 §6).
struct HTTP3ErrorCode: Equatable {
    static let noError = HTTP3ErrorCode(value: 0x100)
    static let internalError = HTTP3ErrorCode(value: 0x102)
    static let requestRejected = HTTP3ErrorCode(value: 0x10B)
    static let requestCancelled = HTTP3ErrorCode(value: 0x10C)
    static let messageError = HTTP3ErrorCode(value: 0x10E)
    static let versionFallback = HTTP3ErrorCode(value: 0x110)

    private static let names = [
        "H3_NO_ERROR", "H3_GENERAL_PROTOCOL_ERROR", "H3_INTERNAL_ERROR", "H3_STREAM_CREATION_ERROR",
        "H3_CLOSED_CRITICAL_STREAM", "H3_FRAME_UNEXPECTED", "H3_FRAME_ERROR", "H3_EXCESSIVE_LOAD", "H3_ID_ERROR",
        "H3_SETTINGS_ERROR", "H3_MISSING_SETTINGS", "H3_REQUEST_REJECTED", "H3_REQUEST_CANCELLED",
        "H3_REQUEST_INCOMPLETE", "H3_MESSAGE_ERROR", "H3_CONNECT_ERROR", "H3_VERSION_FALLBACK",
    ]
    private static let headerNames = [
        "QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR",
    ]

    var value: UInt64

    /// The name in the RFC, or the number of an unknown code.
    var name: String {
        switch value {
        case 0x100..<0x100 + UInt64(Self.names.count): Self.names[Int(value - 0x100)]
        case 0x200..<0x200 + UInt64(Self.headerNames.count): Self.headerNames[Int(value - 0x200)]
        default: "error \(value)"
        }
    }

    /// The failure of a stream that the server reset with this code.
    var streamFailure: EngineError {
        switch self {
        case .requestRejected:
            EngineError(
                .notProcessed, "the server rejected the request before it processed it: \(name) (RFC 9114 §4.1.1)")
        case .versionFallback:
            EngineError(.notProcessed, "the server requires HTTP/1.1: \(name) (RFC 9114 §8.1)")
        default:
            EngineError(.connectionLost, "the server reset the stream: \(name) (RFC 9114 §4.1.1)")
        }
    }
}

extension EngineError {
    /// The failure of a request that was queued, or was not below the first stream of a GOAWAY.
    static let goneAwayOverHTTP3 = EngineError(
        .notProcessed, "the server ended the connection before it processed the request: GOAWAY (RFC 9114 §5.2)")
}
