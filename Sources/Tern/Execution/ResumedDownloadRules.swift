/// Makes the request for the rest of a download, and decides how to use its response (RFC 9110 §13.1.5, §14.4,
/// §15.3.7). Pure.
///
/// A 206 response is used only if it is certain to be the entire rest of the same bytes: it begins where the file ends
/// and ends where the whole ends, it has the requested validator, and it is not encoded.
package struct ResumedDownloadRules: Sendable, Equatable {
    /// The next step after a response.
    package enum Decision: Sendable, Equatable {
        /// Appends the body to the file. `total` is the length of the file afterwards, in bytes.
        case append(total: Int64)
        /// Uses the response from its beginning. The validation judges its status.
        case replace
        /// Discards the response and asks for the whole file.
        case startOver
    }

    /// The number of bytes in the file.
    package let offset: Int64
    /// A strong entity tag or a date.
    package let validator: String
    /// The length of the whole file in bytes; nil when it is not known.
    package let totalBytes: Int64?
    /// The position after the last byte to ask for; nil for the entire rest.
    package let end: Int64?

    package init(offset: Int64, validator: String, totalBytes: Int64?, end: Int64? = nil) {
        self.offset = offset
        self.validator = validator
        self.totalBytes = totalBytes
        self.end = end
    }

    /// The fields that ask for the rest, on the condition that the file has not changed.
    package var fields: Headers {
        ["Range": "bytes=\(offset)-" + (end.map { "\($0 - 1)" } ?? ""), "If-Range": validator]
    }

    /// Decides how to use a response.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - headers: The fields of the response.
    ///   - isSameOrigin: A Boolean value that indicates whether the response comes from the origin that sent the
    ///     beginning. A redirect can lead to another one.
    package func decision(on status: Int, headers: Headers, isSameOrigin: Bool) -> Decision {
        if status == 416 { return .startOver }
        guard status == 206 else { return .replace }
        guard let total = total(of: headers), isSameVersion(headers, isSameOrigin: isSameOrigin) else {
            return .startOver
        }
        return .append(total: total)
    }

    /// Returns the length of the whole file if the part is the one that was asked for; otherwise nil.
    private func total(of headers: Headers) -> Int64? {
        let ranges = headers.values(for: "Content-Range")
        guard ranges.count == 1, let field = ContentRange(ranges[0]), field.unit == "bytes", let range = field.range,
            range.lowerBound == offset
        else { return nil }
        // Without a length, the end of the file is unknown.
        guard let total = field.completeLength ?? totalBytes, (totalBytes ?? total) == total,
            range.upperBound == (end ?? total) - 1
        else { return nil }
        if headers.contains("Content-Encoding") { return nil }
        let lengths = headers.values(for: "Content-Length")
        guard lengths.allSatisfy({ Int64($0) == (end ?? total) - offset }) else { return nil }
        return total
    }

    /// Returns whether a response is a part of the same version. A server that ignores If-Range sends the rest of its
    /// current file. One that supports it repeats an entity tag (RFC 9110 §15.3.7) but can leave out a date.
    private func isSameVersion(_ headers: Headers, isSameOrigin: Bool) -> Bool {
        if validator.hasPrefix("\"") { return headers.hasOnly(validator, for: "ETag") }
        let dates = headers.values(for: "Last-Modified")
        if !dates.isEmpty { return dates == [validator] }
        guard isSameOrigin, let totalBytes else { return false }
        return headers["Content-Range"].flatMap { ContentRange($0) }?.completeLength == totalBytes
    }
}
