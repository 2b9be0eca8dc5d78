#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Blocks of base64 between lines that name them (RFC 7468).
enum PEMBlocks {
    static func decode(_ pem: Data, label: String) -> [Data] {
        let (start, end) = ("-----BEGIN \(label)-----", "-----END \(label)-----")
        var blocks: [Data] = []
        var lines: [Substring]?
        for line in String(decoding: pem, as: UTF8.self).split(whereSeparator: \.isNewline) {
            switch line.trimmingPrefix(/\s+/).prefix(64) {
            case let text where text.hasPrefix(start):
                lines = []
            case let text where text.hasPrefix(end):
                let text = lines?.joined().filter { !$0.isWhitespace } ?? ""
                if let bytes = Data(base64Encoded: text), !bytes.isEmpty { blocks.append(bytes) }
                lines = nil
            default:
                lines?.append(line)
            }
        }
        return blocks
    }
}
