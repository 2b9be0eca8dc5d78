/// What a file server answers to a request for a file of known length (RFC 9110, sections 13 and 14).
enum FileAnswer: Equatable {
    case whole
    case part(Range<Int>)
    case notModified
    case unsatisfiable

    init(
        to request: LoopbackServer.Request, count: Int, etag: String?, lastModified: String?, supportsRanges: Bool
    ) {
        if let etag, let tags = request["If-None-Match"] {
            let known = tags.split(separator: ",").map(\.trimmingOuterSpace)
            if known.contains("*") || known.contains(where: { $0 == etag || $0 == "W/" + etag }) {
                self = .notModified
                return
            }
        }
        guard supportsRanges, request.method == "GET", let wanted = request["Range"] else {
            self = .whole
            return
        }
        // If-Range compares strongly: a weak tag never matches (section 13.1.5).
        if let validator = request["If-Range"] {
            let matches = validator.hasPrefix("W/") ? false : validator == etag || validator == lastModified
            if !matches {
                self = .whole
                return
            }
        }
        self = Self.answer(range: wanted, count: count)
    }

    /// A header that is malformed, or that names several ranges, may be ignored (section 14.2): so it is.
    private static func answer(range text: String, count: Int) -> FileAnswer {
        let parts = text.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bytes" else { return .whole }
        let bounds = parts[1].trimmingOuterSpace.split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return .whole }
        switch (Int(bounds[0]), Int(bounds[1])) {
        case (let first?, nil) where bounds[1].isEmpty:
            return first < count ? .part(first..<count) : .unsatisfiable
        case (let first?, let last?) where first <= last:
            return first < count ? .part(first..<(min(last, count - 1) + 1)) : .unsatisfiable
        case (nil, let length?) where bounds[0].isEmpty:
            return length > 0 && count > 0 ? .part(max(0, count - length)..<count) : .unsatisfiable
        default: return .whole
        }
    }
}

extension LoopbackServer.Exchange {
    /// Answers as a file server does whose file holds `pattern`: GET and HEAD, one `Range` (206 or 416), `If-Range`,
    /// `If-None-Match` (304), entity tag. The body is streamed at the exchange's pace.
    /// - Parameters:
    ///   - pattern: the file's bytes.
    ///   - etag: its entity tag, with quotes; nil for the pattern's own, an empty one for none.
    ///   - lastModified: the value of `Last-Modified`, if there shall be one.
    ///   - contentType: the value of `Content-Type`.
    ///   - supportsRanges: false for a server that ignores `Range` and does not say `Accept-Ranges`.
    ///   - headers: further fields, such as `Content-Disposition`.
    public func serveFile(
        _ pattern: LoopbackServer.Pattern, etag: String? = nil, lastModified: String? = nil,
        contentType: String = "application/octet-stream", supportsRanges: Bool = true,
        headers: LoopbackServer.Fields = []
    ) throws {
        let etag = etag.map { $0.isEmpty ? nil : $0 } ?? pattern.etag
        let answer = FileAnswer(
            to: request, count: pattern.count, etag: etag, lastModified: lastModified, supportsRanges: supportsRanges)
        var fields = headers
        if let etag { fields.append(("ETag", etag)) }
        if let lastModified { fields.append(("Last-Modified", lastModified)) }
        if supportsRanges { fields.append(("Accept-Ranges", "bytes")) }
        switch answer {
        case .notModified: try respond(status: 304, headers: fields)
        case .unsatisfiable:
            try respond(status: 416, headers: fields + [("Content-Range", "bytes */\(pattern.count)")])
        case .whole:
            fields += [("Content-Type", contentType)]
            try send(pattern, 0..<pattern.count, status: 200, headers: fields)
        case .part(let range):
            let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(pattern.count)"
            fields += [("Content-Type", contentType), ("Content-Range", place)]
            try send(pattern, range, status: 206, headers: fields)
        }
    }

    private func send(
        _ pattern: LoopbackServer.Pattern, _ range: Range<Int>, status: Int, headers: LoopbackServer.Fields
    ) throws {
        let fields = withConnection(headers + [("Content-Length", String(range.count))])
        try writeHead(status: status, headers: fields)
        if request.method != "HEAD" { try streamPattern(pattern, in: range) }
    }
}
