/// The request for the rest of a download, and the rules for what answers it (RFC 9110 §13.1.5, §14.4, §15.3.7). Pure.
///
/// A part is used only if it is certain to be the rest of the same bytes, all of it: it begins where the file ends and
/// ends where the whole ends, its validator is the one that was asked for, and it is not encoded.
package struct DownloadContinuation: Sendable, Equatable {
    /// The next step after a response.
    package enum Decision: Sendable, Equatable {
        /// The body is the rest: the file then has so many bytes.
        case append(total: Int64)
        /// The response stands for itself, from its beginning. Its status is for the validation.
        case replace
        /// The response is of no use; the whole is asked for.
        case startOver
    }

    /// Bytes that are there.
    package let offset: Int64
    /// A strong entity tag, or a date.
    package let validator: String
    /// Bytes of the whole; nil when they are not known.
    package let totalBytes: Int64?

    package init(offset: Int64, validator: String, totalBytes: Int64?) {
        self.offset = offset
        self.validator = validator
        self.totalBytes = totalBytes
    }

    /// The fields that ask for the rest, provided that the whole has not changed.
    package var fields: Headers { ["Range": "bytes=\(offset)-", "If-Range": validator] }

    /// Decides what a response means.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - headers: The fields of the response.
    ///   - isSameOrigin: False when a redirect led to another origin than the one that sent the beginning.
    package func decision(on status: Int, headers: Headers, isSameOrigin: Bool) -> Decision {
        if status == 416 { return .startOver }
        guard status == 206 else { return .replace }
        guard let total = end(of: headers), isSameVersion(headers, isSameOrigin: isSameOrigin) else {
            return .startOver
        }
        return .append(total: total)
    }

    /// The length of the whole, if the part is all of the rest; nil otherwise.
    private func end(of headers: Headers) -> Int64? {
        let ranges = headers.values(for: "Content-Range")
        guard ranges.count == 1, let field = ContentRange(ranges[0]), field.unit == "bytes", let range = field.range,
            range.lowerBound == offset
        else { return nil }
        // Without a length nobody knows where the whole ends.
        guard let total = field.completeLength ?? totalBytes, (totalBytes ?? total) == total,
            range.upperBound == total - 1
        else { return nil }
        if headers.contains("Content-Encoding") { return nil }
        let lengths = headers.values(for: "Content-Length")
        guard lengths.allSatisfy({ Int64($0) == total - offset }) else { return nil }
        return total
    }

    /// A server that does not know If-Range sends the rest of whatever it has now. One that does repeats an entity tag
    /// (RFC 9110 §15.3.7); a date it may leave out.
    private func isSameVersion(_ headers: Headers, isSameOrigin: Bool) -> Bool {
        if validator.hasPrefix("\"") { return headers.values(for: "ETag") == [validator] }
        let dates = headers.values(for: "Last-Modified")
        if !dates.isEmpty { return dates == [validator] }
        guard isSameOrigin, let totalBytes else { return false }
        return headers["Content-Range"].flatMap { ContentRange($0) }?.completeLength == totalBytes
    }
}
