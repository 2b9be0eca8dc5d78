extension MediaType {
    /// The type that a filename's extension stands for; `application/octet-stream` when it is unknown.
    ///
    /// A table of our own: the system's differ from machine to machine, and a server without desktop has none.
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
