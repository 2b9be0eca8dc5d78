import GRPCCore
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A coding of messages, by its name in `grpc-encoding`.
enum MessageEncoding: String, CaseIterable, Sendable {
    case identity, gzip, deflate

    init(_ algorithm: CompressionAlgorithm) {
        self =
            switch algorithm {
            case .gzip: .gzip
            case .deflate: .deflate
            default: .identity
            }
    }

    private var compression: Request.Body.Compression? {
        switch self {
        case .identity: nil
        case .gzip: .gzip
        // Of zlib, as in HTTP.
        case .deflate: .deflate
        }
    }

    /// Returns a message with its prefix, as one piece, or as two if it is large, which saves a copy.
    func frame(_ message: Data) throws(RPCError) -> [Data] {
        var bytes = message
        var isCompressed = false
        if let compression, !message.isEmpty {
            do {
                bytes = try compression.compress(message)
            } catch {
                throw RPCError(code: .internalError, message: error.reason, cause: error)
            }
            isCompressed = true
        }
        guard let length = UInt32(exactly: bytes.count) else {
            throw RPCError(code: .resourceExhausted, message: "a message of \(bytes.count) bytes exceeds 4 GiB")
        }
        var piece = Data(capacity: MessageReader.prefixLength + (bytes.count < Self.largeCount ? bytes.count : 0))
        piece.append(isCompressed ? 1 : 0)
        for shift in [24, 16, 8, 0] as [UInt32] { piece.append(UInt8(truncatingIfNeeded: length >> shift)) }
        if bytes.count >= Self.largeCount { return [piece, bytes] }
        piece.append(bytes)
        return [piece]
    }

    private static let largeCount = 16 << 10

    /// Returns the content of a message as it was sent, which has at most `limit` bytes.
    func content(of message: MessageReader.Message, upTo limit: Int) throws(RPCError) -> Data {
        guard message.isCompressed else { return message.bytes }
        guard let compression else {
            let reason = "a message of the response is compressed, and grpc-encoding names no compression"
            throw RPCError(code: .internalError, message: reason)
        }
        do {
            return try compression.decompress(message.bytes, upTo: limit)
        } catch {
            let isTooLarge = error.kind == .tooLarge
            throw RPCError(
                code: isTooLarge ? .resourceExhausted : .internalError,
                message: "a message of the response, compressed by \(rawValue): \(error.reason)", cause: error)
        }
    }
}

extension RPCError {
    init(_ failure: MessageReader.Failure, limit: Int) {
        switch failure {
        case .tooLarge(let length):
            self.init(
                code: .resourceExhausted,
                message: "a message of the response has \(length) bytes, and at most \(limit) are accepted")
        case .invalidFlag(let flag):
            self.init(
                code: .internalError,
                message: "a message of the response begins with \(flag) where 0 or 1 states whether it is compressed")
        }
    }
}
