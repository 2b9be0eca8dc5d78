import Tern

/// A response that is made from a stored one.
struct CacheAnswer: Sendable {
    /// The form of the response.
    enum Form: Sendable, Hashable {
        /// The stored response.
        case whole
        /// A part of a stored body: 206.
        case range(ByteRange)
        /// No byte of the stored body is in the range: 416.
        case unsatisfiable
        /// The caller has the response: 304.
        case notModified
    }

    let entry: CacheEntry
    let form: Form
    /// The age of the stored response.
    let age: Duration
    /// Whether the origin confirmed the response for this request.
    let isValidated: Bool
    /// Whether the request was HEAD, whose answer has no body.
    let isHead: Bool
    /// Whether the store has the head of the response. The head of one that answers a single request is not stored.
    let isStored: Bool

    init(
        _ entry: CacheEntry, form: Form, to request: CacheRequest, at now: CacheTime, isValidated: Bool = false,
        isStored: Bool = true
    ) {
        self.entry = entry
        self.form = form
        self.isValidated = isValidated
        self.isStored = isStored
        isHead = request.isHead
        age = entry.freshness.age(at: now)
    }

    var status: Int {
        switch form {
        case .whole: entry.status == 206 ? 200 : entry.status
        case .range: 206
        case .unsatisfiable: 416
        case .notModified: 304
        }
    }

    /// The bytes of the stored body, counted from its first stored byte; nil for none.
    var body: Range<Int64>? {
        if isHead { return nil }
        let start: Int64
        let count: Int64
        switch entry.content {
        case .whole(let total): (start, count) = (0, total)
        case .part(let range, _): (start, count) = (range.first, range.count)
        }
        switch form {
        case .whole: return count > 0 ? 0..<count : nil
        case .range(let range): return range.first - start..<range.end - start
        case .unsatisfiable, .notModified: return nil
        }
    }

    /// The fields of the response. `Age` replaces the stored one (RFC 9111 §4). Fields that a `no-cache` lists are left
    /// out unless the origin confirmed the response (§5.2.2.4).
    var headers: Headers {
        let withheld = isValidated ? [] : entry.directives.noCacheFields
        var headers = entry.headers
        // Most answers have all stored fields.
        if !withheld.isEmpty || form == .notModified {
            headers = Headers(
                headers.filter { field in
                    let name = FieldText.lowercased(field.name.utf8)
                    return !withheld.contains(name)
                        && (form != .notModified || StoredFields.ofNotModified.contains(name))
                })
        }
        headers["Age"] = "\(age.wholeSeconds)"
        switch form {
        case .whole:
            // In a response with another status, the field has no meaning, and stays (RFC 9110 §14.4).
            guard entry.status == 206 else { break }
            headers.remove("Content-Range")
            if let total = entry.total { headers["Content-Length"] = "\(total)" }
        case .notModified:
            break
        case .range(let range):
            headers["Content-Range"] = ByteContentRange.text(range, total: entry.total)
            headers["Content-Length"] = "\(range.count)"
        case .unsatisfiable:
            headers["Content-Range"] = "bytes */\(entry.total.map(String.init) ?? "*")"
            headers["Content-Length"] = "0"
            headers.remove("Content-Encoding")
        }
        return headers
    }
}

extension CacheAnswer {
    /// Returns the form in which an entry answers a request; nil if its stored bytes are not enough.
    ///
    /// Preconditions are evaluated in the order of RFC 9110 §13.2.2: `If-None-Match`, or without it
    /// `If-Modified-Since`, and then `If-Range`.
    static func form(of entry: CacheEntry, for request: CacheRequest, now: CacheTime) -> Form? {
        let isContent = entry.status == 200 || entry.status == 206
        if isContent, isNotModified(entry, for: request, now: now) { return .notModified }
        if isContent, let range = request.range, range != .other, meetsIfRange(entry, request, now: now) {
            switch range.resolved(total: entry.total) {
            case .unsatisfiable: return .unsatisfiable
            case .unknown: return nil
            case .range(let range):
                guard case .part(let stored, _) = entry.content else { return .range(range) }
                return stored.contains(range) ? .range(range) : nil
            }
        }
        // The length of the body is all that is missing from the head of a part.
        if request.isHead, isContent, entry.total != nil { return .whole }
        return entry.isWhole ? .whole : nil
    }

    /// Evaluates the caller's own conditions (RFC 9111 §4.3.2).
    private static func isNotModified(_ entry: CacheEntry, for request: CacheRequest, now: CacheTime) -> Bool {
        if let tags = request.entityTags { return tags.contains(entry.validators.tag) }
        guard let text = request.ifModifiedSince, let since = CacheDates.time(text, now: now) else { return false }
        // Without Last-Modified, the Date counts, and without that the time of the response.
        return (entry.validators.lastModifiedTime ?? entry.date) <= since
    }

    /// Evaluates `If-Range` (RFC 9110 §13.1.5): without the same strong validator, the range does not apply.
    private static func meetsIfRange(_ entry: CacheEntry, _ request: CacheRequest, now: CacheTime) -> Bool {
        guard let text = request.headers["If-Range"] else { return true }
        if let time = CacheDates.time(text, now: now) {
            return entry.validators.isDateStrong && entry.validators.lastModifiedTime == time
        }
        guard let tag = EntityTag(text), let own = entry.validators.tag else { return false }
        return tag.matchesStrongly(own)
    }
}
