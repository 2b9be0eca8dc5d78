import GRPCCore
import Tern

/// The beginning of a response.
enum ResponseStart {
    /// Messages and trailers follow.
    case messages(Metadata, MessageEncoding)
    /// The head is the whole response ("Trailers-Only").
    case status(Status, Metadata)

    /// Reads the head of a response. Pure.
    ///
    /// - Parameter accepted: The codings that the request has named.
    /// - Throws: The error of a response that is not one of gRPC.
    init(_ head: ResponseHead, accepted: Set<MessageEncoding>) throws(RPCError) {
        guard head.version == .http2 || head.version == .http3 else {
            let reason = "the server speaks \(head.version), and gRPC needs HTTP/2"
            throw RPCError(code: .unavailable, message: reason)
        }
        let isGRPC = Self.isGRPC(head.headers["content-type"])
        if isGRPC || head.headers.contains("grpc-status"), let status = Status(grpcFields: head.headers) {
            self = .status(status, MetadataFields.metadata(of: head.headers))
            return
        }
        guard head.status == 200, isGRPC else {
            throw RPCError(notGRPC: head)
        }
        let name = head.headers["grpc-encoding"] ?? "identity"
        guard let encoding = MessageEncoding(rawValue: name), accepted.contains(encoding) else {
            let reason = "the response is compressed by \(name.debugDescription), which the request did not accept"
            throw RPCError(code: .internalError, message: reason)
        }
        self = .messages(MetadataFields.metadata(of: head.headers), encoding)
    }

    /// Returns whether a content type is `application/grpc`, alone or with the name of a format or parameters.
    static func isGRPC(_ contentType: String?) -> Bool {
        guard let type = contentType?.lowercased(), type.hasPrefix("application/grpc") else { return false }
        let next = type.dropFirst("application/grpc".count).first
        return next == nil || next == "+" || next == ";" || next == " "
    }
}

extension Status {
    /// The status that fields state; nil without `grpc-status`. A status that is no number of a code is `.unknown`.
    init?(grpcFields fields: Headers) {
        guard let text = fields["grpc-status"] else { return nil }
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        let code = isNumber ? Int(text).flatMap { Code(rawValue: $0) } : nil
        let message = fields["grpc-message"].map { PercentCoding.decode($0) } ?? ""
        let isUnknown = code == nil && message.isEmpty
        self.init(
            code: code ?? .unknown, message: isUnknown ? "the server sent the status \(text.debugDescription)" : message
        )
    }
}

/// The percent encoding of `grpc-message`.
enum PercentCoding {
    /// Returns the decoded text. A percent sign without two hexadecimal digits stays, and bytes that are not UTF-8 are
    /// replaced by U+FFFD.
    static func decode(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        let bytes = Array(text.utf8)
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = digit(bytes[index + 1]),
                let low = digit(bytes[index + 2])
            {
                decoded.append(high << 4 | low)
                index += 3
            } else {
                decoded.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
