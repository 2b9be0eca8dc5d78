import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The validators of a response that can prove later that a file is the same to the byte (RFC 9110 §8.8).
struct StrongValidators: Sendable, Equatable {
    /// A strong entity tag; nil for none.
    var etag: String?
    /// `Last-Modified`, if it is strong; nil otherwise.
    var lastModified: String?

    /// The time by which a file must have been unchanged when the response was made. RFC 9110 §8.8.2.2 asks for a
    /// second, if both times are known to come from one clock, and for enough to make differences between clocks
    /// unlikely otherwise.
    private static let shortestAge: TimeInterval = 60

    init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag
        self.lastModified = lastModified
    }

    /// Reads the validators of a response. A response with a content coding has none: its bytes are not those of the
    /// file.
    init(_ head: ResponseHead) {
        let headers = head.headers
        guard head.contentCodings.isEmpty, headers["Accept-Ranges"]?.lowercased() != "none" else { return }
        let tags = headers.values(for: "ETag")
        if !tags.isEmpty {
            // A date is not a validator beside a weak tag (RFC 9110 §13.1.5).
            guard tags.count == 1, tags[0].hasPrefix("\""), ResumeData.isValidator(tags[0]) else { return }
            etag = tags[0]
        }
        let dates = headers.values(for: "Last-Modified")
        if dates.count == 1, ResumeData.isValidator(dates[0]), let changed = HTTPDate.date(from: dates[0]),
            let date = headers["Date"].flatMap({ HTTPDate.date(from: $0) }),
            date.timeIntervalSince(changed) >= Self.shortestAge
        {
            lastModified = dates[0]
        }
    }

    var isEmpty: Bool { etag == nil && lastModified == nil }
}

/// Makes the request for the rest of a partial file, and decides how its response is used. Pure.
///
/// The fields of a range and the checks of a 206 response are those of every download, ``ResumedDownloadRules``. This
/// adds the choice of the validator, and the reasons for a trace.
struct ContinuationRule: Sendable, Equatable {
    /// The next step after a response.
    enum Decision: Sendable, Equatable {
        /// Appends the body to the partial file, which is then right until position `end`. `total` is the size of the
        /// whole file. If `end` is before the end of what was asked for, the rest is asked for next.
        case append(until: Int64, total: Int64)
        /// Uses the body from its beginning in place of the partial file.
        case replace(StartOverReason)
        /// Discards the response and asks for the rest with the date: the server does not compare entity tags in
        /// If-Range.
        case askWithDate
        /// Discards the response and asks for the whole file.
        case askForWhole(StartOverReason)
        /// The partial file is the whole file.
        case complete
        /// Keeps the partial file and fails.
        case refuse
    }

    /// The number of bytes in the partial file, or the beginning of a segment.
    var offset: Int64
    /// The position after the last byte to ask for; nil for the entire rest.
    var end: Int64?
    /// The validators of these bytes.
    var validators: StrongValidators
    /// The size of the whole file in bytes; nil if it is not known.
    var size: Int64?
    /// The origin that sent these bytes.
    var origin: String?
    /// Whether the date is sent although there is an entity tag.
    var prefersDate = false
    /// The requests for the rest in a row that brought nothing.
    var counts = PartCounts()

    /// The validator that is sent in If-Range; nil if nothing can be continued.
    private var validator: String? {
        prefersDate ? validators.lastModified : validators.etag ?? validators.lastModified
    }

    private var rules: ResumedDownloadRules? {
        validator.map {
            ResumedDownloadRules(
                offset: offset, validator: $0, entityTag: validators.etag, totalBytes: size, end: end,
                counts: counts)
        }
    }

    /// The fields that ask for the rest; nil if nothing can be continued.
    var fields: Headers? { offset > 0 || end != nil ? rules?.fields : nil }

    /// Decides how a response to a request with these fields is used.
    ///
    /// - Parameters:
    ///   - head: The head of a response that was accepted, or of a 416.
    func decision(on head: ResponseHead) -> Decision {
        guard let rules, fields != nil else { return .replace(.noValidator) }
        if head.status == 416 { return decision(onUnsatisfiable: head) }
        let isSameOrigin = origin != nil && head.target.origin == origin
        switch rules.decision(on: head.status, headers: head.headers, isSameOrigin: isSameOrigin) {
        case .append(let end, let total):
            return .append(until: end, total: total)
        case .refuse:
            return .refuse
        case .askForWhole:
            return ignoresTag(head) ? .askWithDate : .askForWhole(reason(of: head))
        case .replace:
            if ignoresTag(head) { return .askWithDate }
            return .replace(head.contentCodings.isEmpty ? (hasChanged(head) ? .fileChanged : .rangeIgnored) : .encoded)
        }
    }

    /// Decides how the response to a request with these fields, or its failure, is used.
    func decision(on answer: Result<ResponseHead, NetworkError>) -> Decision {
        switch answer {
        case .success(let head): decision(on: head)
        case .failure(let error): decision(after: error)
        }
    }

    /// Decides after a request with these fields that failed before its body.
    func decision(after error: NetworkError) -> Decision {
        if error.status == 416, let head = error.response { return decision(on: head) }
        return rules?.decision(after: error) == .askForWhole ? .askForWhole(.rangeRefused) : .refuse
    }

    /// Returns whether a response is the whole file of the same version, so that the server may compare dates only.
    private func ignoresTag(_ head: ResponseHead) -> Bool {
        guard head.status == 200, !head.headers.contains("Content-Range"), !prefersDate,
            validators.lastModified != nil, let etag = validators.etag
        else { return false }
        return head.headers.hasOnly(etag, for: "ETag")
    }

    /// Decides how the response to the request for the whole file is used, if this one was to be continued.
    func decision(onWholeFile head: ResponseHead) -> ResumedDownloadRules.WholeDecision {
        // Without a validator, nothing is known about the file.
        rules?.decision(onWholeFile: head.status, headers: head.headers) ?? .use(length: nil)
    }

    /// Decides on a 416. The server has evaluated the range, so the file is complete if its length is that of the part
    /// and it is the same version.
    private func decision(onUnsatisfiable head: ResponseHead) -> Decision {
        let ranges = head.headers.values(for: "Content-Range")
        guard end == nil, ranges.count == 1, let range = ContentRange(ranges[0]), range.unit == "bytes",
            range.range == nil,
            range.completeLength == offset, size == nil || size == offset
        else { return .askForWhole(hasChanged(head) ? .fileChanged : .rangeNotSatisfiable) }
        let isSame =
            if let etag = validators.etag, head.headers.contains("ETag") {
                head.headers.hasOnly(etag, for: "ETag")
            } else {
                validators.lastModified != nil && head.headers.values(for: "Last-Modified") == [validators.lastModified]
            }
        return isSame ? .complete : .askForWhole(hasChanged(head) ? .fileChanged : .rangeNotSatisfiable)
    }

    private func reason(of head: ResponseHead) -> StartOverReason {
        if head.headers.contains("Content-Encoding") { return .encoded }
        if hasChanged(head) { return .fileChanged }
        if head.status != 200, head.status != 206 { return .rangeRefused }
        return head.status == 200 && !head.headers.contains("Content-Range") ? .rangeIgnored : .wrongRange
    }

    /// Returns whether a response says that the file is another version.
    private func hasChanged(_ head: ResponseHead) -> Bool {
        if let etag = validators.etag, let current = head.headers["ETag"] { return !current.hasSameBytes(as: etag) }
        if let date = validators.lastModified, let current = head.headers["Last-Modified"] { return current != date }
        return false
    }
}
