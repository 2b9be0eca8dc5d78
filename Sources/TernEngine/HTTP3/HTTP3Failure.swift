#if os(Linux)
import CTernHTTP3

/// Derives errors from the causes that the libraries give. Texts contain no byte that a server sent.
enum HTTP3Failure {
    static func error(of failure: tern_h3_failure, isConnected: Bool) -> EngineError {
        switch failure.cause {
        case TERN_H3_LOCAL_ALERT:
            EngineError(.tls, "the handshake of QUIC failed with the alert \(failure.code) (RFC 8446 §6)")
        case TERN_H3_PEER_TRANSPORT where failure.code & ~0xFF == 0x100:
            EngineError(
                .tls, "the server refused the handshake of QUIC with the alert \(failure.code & 0xFF) (RFC 9001 §4.8)")
        case TERN_H3_PEER_TRANSPORT:
            lost("the server ended the connection: \(transportName(failure.code)) (RFC 9000 §20.1)", isConnected)
        case TERN_H3_PEER_APPLICATION:
            lost(
                "the server ended the connection: \(HTTP3ErrorCode(value: failure.code).name) (RFC 9114 §8.1)",
                isConnected)
        case TERN_H3_IDLE:
            lost("the server was silent for longer than the connection lives (RFC 9000 §10.1)", isConnected)
        case TERN_H3_HANDSHAKE_TIMEOUT:
            EngineError(.connectionFailed, "the server did not answer over QUIC")
        case TERN_H3_STATELESS_RESET:
            lost("the server no longer knows the connection: stateless reset (RFC 9000 §10.3)", isConnected)
        case TERN_H3_VERSION:
            EngineError(.connectionFailed, "the server does not speak version 1 of QUIC (RFC 9000 §6)")
        default:
            local(failure, isConnected)
        }
    }

    private static func lost(_ reason: String, _ isConnected: Bool) -> EngineError {
        EngineError(isConnected ? .connectionLost : .connectionFailed, reason)
    }

    /// The server violated a rule, or a library failed. The text is a constant of the library.
    private static func local(_ failure: tern_h3_failure, _ isConnected: Bool) -> EngineError {
        let text = unsafe withUnsafeBytes(of: failure.reason) { bytes in
            unsafe String(decoding: bytes.prefix(Int(failure.reason_length)), as: UTF8.self)
        }
        let code = failure.code == 0 ? "" : "\(HTTP3ErrorCode(value: failure.code).name), "
        return EngineError(
            isConnected ? .malformedResponse : .connectionFailed, "the server violates HTTP/3: \(code)\(text)")
    }

    private static func transportName(_ code: UInt64) -> String {
        let names = [
            "NO_ERROR", "INTERNAL_ERROR", "CONNECTION_REFUSED", "FLOW_CONTROL_ERROR", "STREAM_LIMIT_ERROR",
            "STREAM_STATE_ERROR", "FINAL_SIZE_ERROR", "FRAME_ENCODING_ERROR", "TRANSPORT_PARAMETER_ERROR",
            "CONNECTION_ID_LIMIT_ERROR", "PROTOCOL_VIOLATION", "INVALID_TOKEN", "APPLICATION_ERROR",
            "CRYPTO_BUFFER_EXCEEDED", "KEY_UPDATE_ERROR", "AEAD_LIMIT_REACHED", "NO_VIABLE_PATH",
        ]
        return code < names.count ? names[Int(code)] : "error \(code)"
    }
}
#endif
