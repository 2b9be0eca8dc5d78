/// The beginning of a file as text, without a byte order mark and blanks.
///
/// A web page or an error of a server in JSON is the most common reason why a picture cannot be decoded.
struct FirstText {
    private let text: [UInt8]
    /// Whether all bytes can be those of a text in UTF-8.
    let isText: Bool

    /// Reads at most as many bytes as `ImageFormat(sniffing:)`.
    init(_ bytes: borrowing RawSpan) {
        var first: [UInt8] = []
        for offset in 0..<min(bytes.byteCount, ImageFormat.sniffedByteCount) {
            unsafe first.append(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
        }
        isText = Self.isText(first)
        var rest = first[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest.removeFirst(3) }
        text = Array(rest.drop(while: Self.isBlank))
    }

    private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0C, 0x0D].contains(byte) }

    private static func isText(_ bytes: [UInt8]) -> Bool {
        guard !bytes.contains(where: { $0 < 0x20 && !isBlank($0) && $0 != 0x1B }) else { return false }
        // The last character can be cut.
        return (0..<min(4, bytes.count)).contains { String(validating: bytes.dropLast($0), as: UTF8.self) != nil }
    }

    /// Whether the text can be SVG or HTML.
    var isMarkup: Bool { isText && text.first == UInt8(ascii: "<") }

    /// Whether only later bytes can tell what markup it is.
    var needsMore: Bool { isMarkup && !isHTML && !hasElement("svg") }

    /// Whether the text can be JSON: an object with a name, or an array with a value. A line of a log can begin with a
    /// bracket.
    var isJSON: Bool {
        guard isText, let first = text.first, let next = text.dropFirst().drop(while: Self.isBlank).first else {
            return false
        }
        return switch first {
        case UInt8(ascii: "{"): "\"}".utf8.contains(next)
        case UInt8(ascii: "["): "{[\"-0123456789tfn]".utf8.contains(next)
        default: false
        }
    }

    /// Whether the text is XML of another kind than SVG.
    var isXML: Bool { isMarkup && Self.begins(text[...], with: "<?xml") }

    /// Whether the text is HTML: its document type, or an element that begins a page.
    var isHTML: Bool {
        guard isMarkup else { return false }
        if Self.begins(text[...], with: "<!doctype html") { return true }
        return ["html", "head", "body", "title", "script", "meta", "h1", "div", "p", "center"].contains {
            hasElement($0)
        }
    }

    /// Returns whether the first element has a name, whatever the letters' case. Declarations, comments and the
    /// document type can be before it.
    func hasElement(_ name: String) -> Bool {
        guard isMarkup else { return false }
        var rest = text[...]
        while Self.begins(rest, with: "<?") || Self.begins(rest, with: "<!") {
            let end: [UInt8] = Self.begins(rest, with: "<!--") ? Array("-->".utf8) : [UInt8(ascii: ">")]
            guard let found = rest.firstRange(of: end) else { return false }
            rest = rest[found.upperBound...].drop(while: Self.isBlank)
        }
        guard Self.begins(rest, with: "<" + name) else { return false }
        // The name ends there, or the text does.
        let next = rest.dropFirst(1 + name.utf8.count).first
        return next.map { Self.isBlank($0) || $0 == UInt8(ascii: ">") || $0 == UInt8(ascii: "/") } ?? true
    }

    /// Returns whether bytes begin with ASCII, whatever the letters' case.
    private static func begins(_ bytes: ArraySlice<UInt8>, with word: String) -> Bool {
        guard bytes.count >= word.utf8.count else { return false }
        return zip(bytes, word.utf8).allSatisfy { byte, wanted in
            byte == wanted || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) && byte | 0x20 == wanted
        }
    }
}
