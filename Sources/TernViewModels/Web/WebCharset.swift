import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The charset that holds for a page: its byte order mark, else what the caller or the response says, else what the page
/// says of itself, else UTF-8 (WHATWG HTML §13.2.3.2). A name that the system does not know is UTF-8 too.
struct WebCharset {
    /// In lower case, fit for decoding.
    let name: String
    /// The length of the byte order mark.
    let markLength: Int

    /// - Parameter name: What the caller or the response says; nil when neither says anything.
    init(of body: Data, _ name: String?) {
        // The mark comes first (WHATWG Encoding §6, "decode").
        (self.name, markLength) =
            if body.starts(with: [0xEF, 0xBB, 0xBF]) {
                ("utf-8", 3)
            } else if body.starts(with: [0xFE, 0xFF]) {
                ("utf-16be", 2)
            } else if body.starts(with: [0xFF, 0xFE]) {
                ("utf-16le", 2)
            } else {
                (Self.known(name ?? Self.declared(in: body.prefix(1_024)) ?? "utf-8"), 0)
            }
    }

    private static func known(_ name: String) -> String {
        do {
            _ = try TextDecoding.string(from: [], charset: name)
            return name.lowercased()
        } catch {
            return "utf-8"
        }
    }

    /// The charset that a `<meta>` near the page's beginning names (WHATWG HTML, "prescan a byte stream").
    private static func declared(in start: Data) -> String? {
        // Byte by byte: all charsets that matter here have ASCII's letters in ASCII's places.
        var rest = String(decoding: start.map { $0 < 0x80 ? $0 : 0x3F }, as: UTF8.self).lowercased()[...]
        while let open = rest.firstIndex(of: "<") {
            rest = rest[open...]
            if rest.hasPrefix("<!--") {
                guard let end = rest.dropFirst(2).firstRange(of: "-->") else { return nil }
                rest = rest[end.upperBound...]
                continue
            }
            guard let close = rest.firstIndex(of: ">") else { return nil }
            if rest.hasPrefix("<meta"), let name = charset(in: rest[..<close]) {
                // What could be read so far was no UTF-16.
                return name.hasPrefix("utf-16") ? "utf-8" : name
            }
            rest = rest[close...]
        }
        return nil
    }

    /// Of `charset=name`, quoted or not, also within `content="text/html; charset=name"`.
    private static func charset(in tag: Substring) -> String? {
        guard let word = tag.firstRange(of: "charset") else { return nil }
        let value = tag[word.upperBound...].drop { $0.isWhitespace }
        guard value.first == "=" else { return charset(in: tag[word.upperBound...]) }
        let name = value.dropFirst().drop { $0.isWhitespace || $0 == "\"" || $0 == "'" }
            .prefix { !$0.isWhitespace && $0 != "\"" && $0 != "'" && $0 != ";" && $0 != "/" }
        return name.isEmpty ? nil : String(name)
    }
}
