/// A media type with its parameters, as `Content-Type` names it (RFC 9110 §8.3.1).
package struct MediaType: Sendable, Hashable {
    /// A parameter with its name in lower case and its value without quotes.
    package struct Parameter: Sendable, Hashable {
        package var name: String
        package var value: String
    }

    /// The part before the slash, in lower case.
    package let type: String
    /// The part after the slash, in lower case.
    package let subtype: String
    /// The parameters in order.
    package let parameters: [Parameter]

    /// Parses a field value; nil if it does not begin with `type/subtype`.
    package init?(_ value: String) {
        var scanner = ParameterScanner(value)
        let essence = scanner.leadingValue().lowercased()
        guard let slash = essence.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        type = String(essence[..<slash])
        subtype = String(essence[essence.utf8.index(after: slash)...])
        guard !type.isEmpty, !subtype.isEmpty, type.consists(of: .token), subtype.consists(of: .token) else {
            return nil
        }
        var parameters: [Parameter] = []
        while let parameter = scanner.next() { parameters.append(parameter) }
        self.parameters = parameters
    }

    /// `type/subtype`, without parameters.
    package var essence: String { "\(type)/\(subtype)" }

    /// The first `charset`, if it is not empty.
    package var charset: String? {
        guard let value = parameters.first(where: { $0.name == "charset" })?.value else { return nil }
        // Some servers quote twice or use apostrophes.
        let name = value.filter { $0 != "'" && $0 != "\"" }
        return name.isEmpty ? nil : name
    }

    /// Whether the body is JSON: `application/json`, `text/json`, or a subtype with the suffix `+json` (RFC 6839).
    package var isJSON: Bool {
        subtype == "json" && (type == "application" || type == "text") || subtype.hasSuffix("+json")
    }
}

extension MediaType {
    /// Returns the type for a filename's extension; `application/octet-stream` for an unknown one.
    ///
    /// The table is part of Tern, because those of systems differ, and a server without a desktop has none.
    static func guess(filename: String) -> String {
        guard let dot = filename.lastIndex(of: "."), dot != filename.startIndex else { return unknown }
        return byExtension[filename[filename.index(after: dot)...].lowercased()] ?? unknown
    }

    private static let unknown = "application/octet-stream"

    private static let byExtension = [
        "aac": "audio/aac", "apng": "image/apng", "avi": "video/x-msvideo", "avif": "image/avif",
        "bin": "application/octet-stream", "bmp": "image/bmp", "bz2": "application/x-bzip2", "css": "text/css",
        "csv": "text/csv", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "eml": "message/rfc822", "epub": "application/epub+zip", "flac": "audio/flac",
        "geojson": "application/geo+json",
        "gif": "image/gif", "gpx": "application/gpx+xml", "gz": "application/gzip", "heic": "image/heic",
        "heif": "image/heif", "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon",
        "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript",
        "json": "application/json", "jsonld": "application/ld+json", "jxl": "image/jxl", "m4a": "audio/mp4",
        "m4v": "video/mp4", "md": "text/markdown", "mid": "audio/midi", "mjs": "text/javascript",
        "mkv": "video/matroska", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4",
        "mpeg": "video/mpeg", "mpg": "video/mpeg", "ndjson": "application/x-ndjson",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet", "odt": "application/vnd.oasis.opendocument.text",
        "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf",
        "pdf": "application/pdf", "pem": "application/x-pem-file", "plist": "application/x-plist", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "ps": "application/postscript", "rar": "application/vnd.rar", "rtf": "application/rtf",
        "sqlite": "application/vnd.sqlite3", "svg": "image/svg+xml", "swift": "text/x-swift",
        "tar": "application/x-tar",
        "tif": "image/tiff", "tiff": "image/tiff", "toml": "application/toml", "ts": "video/mp2t", "ttf": "font/ttf",
        "txt": "text/plain", "vcf": "text/vcard", "wasm": "application/wasm", "wav": "audio/wav",
        "weba": "audio/webm", "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
        "xhtml": "application/xhtml+xml", "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "xz": "application/x-xz", "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
        "zst": "application/zstd",
    ]
}

/// Parses `value; name=value; name="quoted"`, the form of `Content-Type` and `Content-Disposition` (RFC 9110 §5.6.6).
struct ParameterScanner {
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Whether the text begins with a parameter, without a leading value.
    var startsWithParameter: Bool {
        bytes.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "\"") }.contains(UInt8(ascii: "="))
    }

    /// Returns the text before the first semicolon, without whitespace around it.
    mutating func leadingValue() -> String {
        let start = position
        skip { $0 != UInt8(ascii: ";") }
        return trimmed(start..<position)
    }

    /// Returns the next parameter; nil at the end. Text that is not a parameter is skipped.
    mutating func next() -> MediaType.Parameter? {
        while position < bytes.count {
            skip { $0 == UInt8(ascii: ";") || $0.isHTTPWhitespace }
            let start = position
            skip { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
            let name = trimmed(start..<position).lowercased()
            guard position < bytes.count, bytes[position] == UInt8(ascii: "=") else { continue }
            position += 1
            skip { $0.isHTTPWhitespace }
            let value = self.value()
            if !name.isEmpty { return MediaType.Parameter(name: name, value: value) }
        }
        return nil
    }

    private mutating func value() -> String {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else {
            let start = position
            skip { $0 != UInt8(ascii: ";") }
            return trimmed(start..<position)
        }
        var content: [UInt8] = []
        position += 1
        while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
            // In a quoted pair the backslash is removed and the next byte is kept.
            if bytes[position] == UInt8(ascii: "\\"), position + 1 < bytes.count { position += 1 }
            content.append(bytes[position])
            position += 1
        }
        skip { $0 != UInt8(ascii: ";") }
        return String(decoding: content, as: UTF8.self)
    }

    private mutating func skip(while condition: (UInt8) -> Bool) {
        while position < bytes.count, condition(bytes[position]) { position += 1 }
    }

    private func trimmed(_ range: Range<Int>) -> String {
        let start = bytes[range].drop { $0.isHTTPWhitespace }
        let length = start.reversed().drop { $0.isHTTPWhitespace }.count
        return String(decoding: start.prefix(length), as: UTF8.self)
    }
}
