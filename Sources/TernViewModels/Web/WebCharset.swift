import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The charset of a page: from its byte order mark, else from the caller or the response, else from the page's own
/// declaration, else UTF-8 (WHATWG HTML §13.2.3.2). An unknown name also means UTF-8.
struct WebCharset {
    /// The name in lower case, supported by the decoder.
    let name: String
    /// The length of the byte order mark.
    let markLength: Int

    /// Determines the charset of a body.
    ///
    /// - Parameter name: The charset from the caller or the response; nil if neither has one.
    init(of body: Data, _ name: String?) {
        // The byte order mark takes precedence (WHATWG Encoding §6, "decode").
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

    /// Returns the charset that a `<meta>` near the beginning of the page declares (WHATWG HTML, "prescan a byte
    /// stream").
    private static func declared(in start: Data) -> String? {
        // Works on bytes, because all relevant charsets encode ASCII letters as ASCII.
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
                // The page was readable as ASCII so far, so it cannot be UTF-16.
                return name.hasPrefix("utf-16") ? "utf-8" : name
            }
            rest = rest[close...]
        }
        return nil
    }

    /// Returns the value of `charset=name`, quoted or not, also within `content="text/html; charset=name"`.
    private static func charset(in tag: Substring) -> String? {
        guard let word = tag.firstRange(of: "charset") else { return nil }
        let value = tag[word.upperBound...].drop { $0.isWhitespace }
        guard value.first == "=" else { return charset(in: tag[word.upperBound...]) }
        let name = value.dropFirst().drop { $0.isWhitespace || $0 == "\"" || $0 == "'" }
            .prefix { !$0.isWhitespace && $0 != "\"" && $0 != "'" && $0 != ";" && $0 != "/" }
        return name.isEmpty ? nil : String(name)
    }
}
