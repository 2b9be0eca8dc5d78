/// Makes the request for the rest of a download, and decides how to use its response (RFC 9110 §13.1.5, §14.4,
/// §15.3.7). Pure. Resumed downloads, durable downloads, the transfer queue and the parts of images use it.
///
/// The number of bytes that are here, the length of the whole, and the strong entity tag are facts. A response is
/// appended only if it is certain to continue the same bytes: it begins where the file ends, it has the requested
/// validator, and it is not encoded. A response that contradicts the facts is discarded, and the whole file is asked
/// for once. The table of all responses is in `Documentation/Reference/ResumedDownloads.md`.
package struct ResumedDownloadRules: Sendable, Equatable {
    /// The next step after a response to the request for the rest.
    package enum Decision: Sendable, Equatable {
        /// Appends the body to the file, which is then right until position `end`. The whole file has `total` bytes. A
        /// server can send less than it was asked for (RFC 9110 §15.3.7); the rest is then asked for next.
        case append(until: Int64, total: Int64)
        /// Uses the response from its beginning: it is the whole file.
        case replace
        /// Discards the response and asks for the whole file. The part stays until the whole file comes.
        case askForWhole
        /// Keeps the part and fails. The next request asks for the rest again.
        case refuse
    }

    /// The use of the response to the request for the whole file that follows.
    package enum WholeDecision: Sendable, Equatable {
        /// Uses the response. The body must have this length in bytes; nil for any.
        case use(length: Int64?)
        /// Fails, and discards the part: the server has contradicted itself.
        case fail
    }

    /// The number of bytes in the file.
    package let offset: Int64
    /// The value of If-Range: a strong entity tag or a date.
    package let validator: String
    /// The strong entity tag of the bytes; nil if none is known.
    package let entityTag: String?
    /// The length of the whole file in bytes; nil when it is not known.
    package let totalBytes: Int64?
    /// The position after the last byte to ask for; nil for the entire rest.
    package let end: Int64?
    /// The requests for the rest in a row that brought nothing.
    package let counts: PartCounts

    /// The statuses that can be due to the fields of the request for the rest alone. It is followed by a request
    /// without them.
    private static let conditionStatuses: Set = [304, 400, 406, 412, 416, 417, 428, 431, 501]

    /// - Parameter entityTag: The strong entity tag of the bytes; nil for the validator if that is one.
    package init(
        offset: Int64, validator: String, entityTag: String? = nil, totalBytes: Int64?, end: Int64? = nil,
        counts: PartCounts = PartCounts()
    ) {
        self.counts = counts
        self.offset = offset
        self.validator = validator
        self.entityTag = validator.hasPrefix("\"") ? validator : entityTag
        self.totalBytes = totalBytes
        self.end = end
    }

    /// The fields that ask for the rest, on the condition that the file has not changed.
    package var fields: Headers {
        ["Range": "bytes=\(offset)-" + (end.map { "\($0 - 1)" } ?? ""), "If-Range": validator]
    }

    /// Decides how to use a response to the request for the rest.
    ///
    /// - Parameters:
    ///   - status: The status of the response.
    ///   - headers: The fields of the response.
    ///   - isSameOrigin: Whether the response comes from the origin that sent the beginning. A redirect can lead to
    ///     another one.
    package func decision(on status: Int, headers: Headers, isSameOrigin: Bool) -> Decision {
        switch status {
        case 206:
            guard let part = part(headers), isPartOfVersion(headers, isSameOrigin: isSameOrigin) else {
                return .askForWhole
            }
            return .append(until: part.end, total: part.total)
        case 200:
            return decision(onWhole: headers)
        default:
            return decision(onRefusal: status)
        }
    }

    /// Decides after a request for the rest that failed before its body: its response was not accepted, or none came.
    package func decision(after error: NetworkError) -> Decision {
        if error.kind == .status, let status = error.status { return decision(onRefusal: status) }
        // With the total time, that for the whole file is over, too.
        let isUseless = error.refusesPart || error.isUnanswered && !error.isOutOfTime
        return isUseless && counts.refusesRest ? .askForWhole : .refuse
    }

    private func decision(onRefusal status: Int) -> Decision {
        Self.conditionStatuses.contains(status) || counts.refusesRest ? .askForWhole : .refuse
    }

    /// Decides on a 200. It is the whole file (RFC 9110 §15.3.1), but there are servers that send the rest with this
    /// status. The length tells them apart.
    private func decision(onWhole headers: Headers) -> Decision {
        let version = version(of: headers)
        if headers.contains("Content-Range") {
            // Without the tag, the total and the length, nothing proves that the server has understood the range.
            guard version == .same, entityTag != nil, headers.contains("Content-Length"), let part = part(headers),
                part.statesTotal
            else { return .askForWhole }
            return .append(until: part.end, total: part.total)
        }
        if version == .other { return .replace }
        let length = statedLength(headers)
        if let totalBytes { return length == totalBytes ? .replace : .askForWhole }
        // The whole is not shorter than its beginning.
        return (length ?? offset) >= offset ? .replace : .askForWhole
    }

    /// Decides how to use a response to the request for the whole file that follows a response to the request for the
    /// rest. The response has been accepted.
    package func decision(onWholeFile status: Int, headers: Headers) -> WholeDecision {
        guard status == 200 || status == 203 else { return .fail }
        if let field = headers["Content-Range"], ContentRange(field)?.range?.lowerBound != 0 { return .fail }
        guard version(of: headers) == .same, entityTag != nil, let totalBytes else { return .use(length: nil) }
        if let length = statedLength(headers), length != totalBytes { return .fail }
        return .use(length: totalBytes)
    }

    // MARK: The part

    /// The part that a response contains.
    private struct Part {
        /// The position after its last byte.
        let end: Int64
        /// The length of the whole file in bytes.
        let total: Int64
        /// Whether the response states this length.
        let statesTotal: Bool
    }

    /// Returns the part of a response if it is the one that was asked for, or the beginning of that; otherwise nil.
    private func part(_ headers: Headers) -> Part? {
        let ranges = headers.values(for: "Content-Range")
        guard ranges.count == 1, let field = ContentRange(ranges[0]), field.unit == "bytes", let range = field.range,
            range.lowerBound == offset
        else { return nil }
        // Without a length, the end of the file is unknown.
        guard let total = field.completeLength ?? totalBytes, (totalBytes ?? total) == total,
            range.upperBound < min(end ?? total, total)
        else { return nil }
        if headers.contains("Content-Encoding") { return nil }
        let part = Part(end: range.upperBound + 1, total: total, statesTotal: field.completeLength != nil)
        let lengths = headers.values(for: "Content-Length")
        return lengths.allSatisfy { Int64($0) == part.end - offset } ? part : nil
    }

    /// The length that a response states for its body without a content coding; nil if it states none.
    private func statedLength(_ headers: Headers) -> Int64? {
        if headers.contains("Content-Encoding") { return nil }
        let lengths = headers.values(for: "Content-Length")
        guard let first = lengths.first, lengths.allSatisfy({ $0 == first }) else { return nil }
        return Int64(first)
    }

    // MARK: The version

    private enum Version {
        case same
        case other
        /// The response does not say.
        case unknown
    }

    /// Returns the version that a response is of. A weak tag with the same text says nothing about the bytes.
    private func version(of headers: Headers) -> Version {
        let (name, known) = entityTag.map { ("ETag", $0) } ?? ("Last-Modified", validator)
        let values = headers.values(for: name)
        guard values.count == 1 else { return .unknown }
        if values[0].hasSameBytes(as: known) { return .same }
        return values[0].hasSameBytes(as: "W/" + known) ? .unknown : .other
    }

    /// Returns whether a 206 is a part of the same version. A server that ignores If-Range sends the rest of its
    /// current file. One that supports it repeats an entity tag (RFC 9110 §15.3.7) but can leave out a date.
    private func isPartOfVersion(_ headers: Headers, isSameOrigin: Bool) -> Bool {
        if validator.hasPrefix("\"") { return version(of: headers) == .same }
        // A date was sent, and the entity tag of the response still tells the version.
        if entityTag != nil, headers.contains("ETag"), version(of: headers) != .same { return false }
        let dates = headers.values(for: "Last-Modified")
        if !dates.isEmpty { return dates == [validator] }
        guard isSameOrigin, let totalBytes else { return false }
        return headers["Content-Range"].flatMap { ContentRange($0) }?.completeLength == totalBytes
    }
}

extension PartCounts {
    /// The stage at which a request failed.
    package enum Stage: Sendable {
        /// The request for the rest, before its response was accepted as the rest.
        case rest
        /// The body of the rest, of which no byte is kept.
        case body
        /// The request for the whole file, before its response was accepted.
        case whole
    }

    /// Returns the numbers after a request that failed and brought no byte that is kept.
    ///
    /// A failure before the request was sent, one of this machine, and a cancellation say nothing about the server. A
    /// request for the whole file without an answer shows that the range is not the reason: counting starts again.
    package func after(_ error: NetworkError, at stage: Stage) -> PartCounts {
        switch stage {
        case .rest where error.refusesPart, .whole where error.refusesPart: adding(isFailure: false)
        case .rest where error.isUnanswered: adding(isFailure: error.isOutOfTime)
        case .whole where error.isUnanswered: PartCounts()
        case .body where error.refusesPart || error.isConnectionFailure: adding(isFailure: true)
        case .rest, .whole, .body: self
        }
    }

    private func adding(isFailure: Bool) -> PartCounts {
        PartCounts(refusals: min(refusals + 1, Self.most), failures: isFailure ? min(failures + 1, Self.most) : 0)
    }
}

extension ResumeData {
    /// The continuation that asks for the rest.
    package var resumeRules: ResumedDownloadRules {
        ResumedDownloadRules(offset: offset, validator: validator, totalBytes: totalBytes, counts: counts)
    }
}

/// The reason why the part of a download cannot be used, as the underlying error of the download's error.
package enum PartProblem: Error, Equatable, CustomStringConvertible {
    /// The server has contradicted itself, for the rest and for the whole. The part is discarded.
    case contradicted
    /// The message is whole, and its body does not have the length that it should have.
    case otherLength
    /// The server answers the request for the rest with a status that brings no file. The part is kept.
    case refused
    /// A message that is whole brings none of the bytes of the part that it names. The part is discarded.
    case empty

    package var description: String {
        switch self {
        case .otherLength: "the body has another length"
        case .refused: "the response brings no file"
        case .empty: "the part has no bytes"
        case .contradicted: "the part contradicts the server's file"
        }
    }
}

extension PartProblem {
    /// Returns the text of a response to the request for the whole file that contradicts an earlier one.
    package static func contradiction(of head: ResponseHead, totalBytes: Int64?) -> String {
        "the response (\(head.status)) to the request for the whole file contradicts an earlier one, which stated "
            + (totalBytes.map { "\($0) bytes" } ?? "another length")
    }

    /// Whether the part is discarded.
    package var discardsPart: Bool { self == .contradicted || self == .empty }
}

extension NetworkError {
    private static let refusalKinds: Set<Kind> = [
        .status, .contentType, .validation, .redirect, .tooManyRedirects, .redirectLoop, .malformedResponse,
    ]

    /// Whether a server has answered the request for the rest, and its answer is no use. A failure of the network is
    /// none.
    package var refusesPart: Bool { Self.refusalKinds.contains(kind) && underlying as? PartProblem != .contradicted }

    private static let connectionKinds: Set<Kind> = [
        .connectionLost, .idleTimedOut, .attemptTimedOut, .totalTimedOut, .truncatedBody,
    ]

    /// Whether the connection ended, or the time of the request.
    fileprivate var isConnectionFailure: Bool { Self.connectionKinds.contains(kind) }

    /// Whether the body of a response has more bytes than its head says, so that none of them can be trusted.
    package var hasWrongBody: Bool {
        kind == .malformedResponse && underlying as? PartProblem == PartProblem.otherLength
    }

    /// Whether the request was sent, and no response came.
    package var isUnanswered: Bool { isConnectionFailure && response == nil && metrics?.sentBytes ?? 0 > 0 }

    /// Whether the part is discarded because of this error.
    package var discardsPart: Bool { (underlying as? PartProblem)?.discardsPart ?? false }
}

extension ResponseHead {
    /// Whether the end of a message without a length is marked, so that a connection that breaks is not taken for it.
    package var hasMarkedEnd: Bool { version == .http2 || headers.contains("Transfer-Encoding") }
}
