import GRPCCore
import Tern

extension RPCError {
    /// The error of a response without a status of gRPC, by its HTTP status ("HTTP to gRPC Status Code Mapping").
    init(notGRPC head: ResponseHead) {
        let type = head.headers["content-type"].map { " of type \($0.prefix(100).debugDescription)" } ?? ""
        // 200 with another type has no code of its own.
        let code = head.status == 200 ? Code.unknown : Code(Status(httpStatusCode: head.status).code) ?? .unknown
        self.init(code: code, message: "the server answered HTTP \(head.status)\(type), which is no response of gRPC")
    }

    /// The error of a call whose transfer has failed.
    init(_ error: NetworkError) {
        if let own = error.underlying as? RPCError, error.kind == .requestBody {
            self = own
            return
        }
        self.init(code: Self.code(of: error), message: error.shortDescription, cause: error)
    }

    private static func code(of error: NetworkError) -> Code {
        // The call can be made again.
        if error.wasNotProcessed { return .unavailable }
        // A stream that was reset, or a connection that the server has ended with a code.
        if let code = error.http2Code { return Self.code(ofHTTP2: code) }
        return switch error.kind {
        case .cancelled: .cancelled
        case .totalTimedOut, .attemptTimedOut: .deadlineExceeded
        case .dns, .connectionFailed, .connectionRefused, .connectionLost, .connectTimedOut, .queueTimedOut,
            .idleTimedOut, .proxy, .tls, .untrustedServer, .pinMismatch, .sessionInvalidated:
            .unavailable
        case .invalidRequest, .malformedResponse, .truncatedBody, .tooLarge: .internalError
        case .unsupported: .unimplemented
        default: .unknown
        }
    }

    /// The code of an error of HTTP/2 (gRPC over HTTP/2, "HTTP2 Transport Mapping").
    static func code(ofHTTP2 code: UInt32) -> Code {
        switch code {
        // NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR,
        // CONNECT_ERROR.
        case 0x0, 0x1, 0x2, 0x3, 0x6, 0x9, 0xA: .internalError
        case 0x7: .unavailable  // REFUSED_STREAM
        case 0x8: .cancelled  // CANCEL
        case 0xB: .resourceExhausted  // ENHANCE_YOUR_CALM
        case 0xC: .permissionDenied  // INADEQUATE_SECURITY
        default: .unknown
        }
    }
}

extension NetworkError {
    /// Whether no connection could be made, so that nothing was sent.
    var isConnectFailure: Bool {
        switch kind {
        case .dns, .connectionFailed, .connectionRefused, .connectTimedOut: true
        default: false
        }
    }
}
