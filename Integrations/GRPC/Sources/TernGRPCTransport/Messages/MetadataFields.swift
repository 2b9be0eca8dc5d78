import GRPCCore
import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The metadata of a call as header fields (gRPC over HTTP/2, "Custom-Metadata"). Pure.
enum MetadataFields {
    /// The fields that the transport writes itself, and those of the connection.
    private static let reserved: Set<String> = [
        "te", "content-type", "grpc-encoding", "grpc-accept-encoding", "content-length", "host", "connection",
        "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "expect",
    ]
    /// The fields of a response that are no metadata of the application.
    private static let own: Set<String> = [
        "content-type", "grpc-encoding", "grpc-accept-encoding", "grpc-status", "grpc-message",
    ]

    /// Returns the fields of a request. Values of binary keys are written in base64 with padding.
    static func fields(of metadata: Metadata) throws(RPCError) -> Headers {
        var fields = Headers()
        for (key, value) in metadata {
            let name = key.lowercased()
            if reserved.contains(name) { continue }
            guard !name.isEmpty, name.utf8.allSatisfy(isNameByte) else {
                let reason = "the metadata key \(key.debugDescription) has characters other than a-z, 0-9, _, - and ."
                throw RPCError(code: .internalError, message: reason)
            }
            if case .binary = value, !name.hasSuffix("-bin") {
                let reason = "the metadata key \(key) has a binary value, and does not end in -bin"
                throw RPCError(code: .internalError, message: reason)
            }
            let text = value.encoded()
            guard text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
                let reason = "the metadata value of \(key) has characters that are not printable ASCII"
                throw RPCError(code: .internalError, message: reason)
            }
            fields.append(name: name, value: text)
        }
        return fields
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
            UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// Returns the metadata of a response. A field of a binary key can have several values, separated by commas, in
    /// base64 with or without padding. One that is not base64 stays a string.
    static func metadata(of fields: Headers) -> Metadata {
        var metadata = Metadata()
        metadata.reserveCapacity(fields.count)
        for field in fields {
            let name = field.name.lowercased()
            if own.contains(name) { continue }
            guard name.hasSuffix("-bin") else {
                metadata.addString(field.value, forKey: name)
                continue
            }
            for part in field.value.split(separator: ",", omittingEmptySubsequences: false) {
                let text = part.drop { $0 == " " || $0 == "\t" }.trimmingBlanks
                if let bytes = bytes(ofBase64: text) {
                    metadata.addBinary(bytes, forKey: name)
                } else {
                    metadata.addString(String(text), forKey: name)
                }
            }
        }
        return metadata
    }

    private static func bytes(ofBase64 text: Substring) -> [UInt8]? {
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        return Data(base64Encoded: text + padding).map { Array($0) }
    }
}

extension Substring {
    /// The text without blanks at its end.
    fileprivate var trimmingBlanks: Substring {
        var text = self
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
