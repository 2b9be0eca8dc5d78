import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The body of a response while it arrives, with a limit. Pure.
struct ImageResponseBody: Sendable {
    private(set) var data = Data()
    /// The number of bytes from a partial download.
    private(set) var offset = 0
    /// The length of the whole body; nil if unknown.
    private(set) var length: Int?
    let limit: Int
    private var reported: UInt64 = 0

    /// The time between two progress reports in nanoseconds: about thirty reports a second.
    private static let interval: UInt64 = 33_000_000
    /// The most bytes that are reserved because of a length that the server states.
    private static let mostReservedBytes = 16 << 20

    init(limit: Int) { self.limit = limit }

    /// - Parameters:
    ///   - part: The data of the partial download that the response continues; nil for none.
    ///   - total: The length of the whole, if the response continues a partial download.
    /// - Returns: False if the response states more than the limit.
    mutating func begin(_ head: ResponseHead, after part: Data?, total: Int? = nil) -> Bool {
        if let part {
            data = part
            offset = part.count
        }
        if let total {
            length = total
            return total <= limit
        }
        // The length of an encoded body is not the length of the decoded one.
        if !head.headers.contains("Content-Encoding"), let rest = head.contentLength {
            let (sum, overflows) = offset.addingReportingOverflow(Int(clamping: rest))
            length = overflows ? .max : sum
        }
        guard (length ?? 0) <= limit else { return false }
        if let length, offset == 0 { data.reserveCapacity(min(length, Self.mostReservedBytes)) }
        return true
    }

    /// - Returns: False if the body is larger than the limit.
    mutating func append(_ chunk: Data) -> Bool {
        guard data.count + chunk.count <= limit else { return false }
        // Most images arrive in one chunk, which is not copied.
        if data.isEmpty { data = chunk } else { data.append(chunk) }
        return true
    }

    /// Returns the progress if it is time to report it.
    mutating func progress(at nanoseconds: UInt64) -> Session.Progress? {
        guard data.count != length, nanoseconds &- reported >= Self.interval else { return nil }
        reported = nanoseconds
        return Session.Progress(completedBytes: Int64(data.count), totalBytes: length.map(Int64.init))
    }
}

/// The beginning of an interrupted response, with the validator that a request for the rest needs (RFC 9110 §13.1.5,
/// §14). Pure; stored on the disk.
struct PartialImage: Sendable, Equatable {
    /// How a response to the request for the rest is used.
    enum Decision: Equatable {
        /// It continues where the part ends. The data are then right until position `end`, of `total` bytes.
        case append(until: Int, total: Int)
        /// It is the whole image: the part is discarded.
        case replace
        /// It is a part of other bytes, or begins elsewhere: the whole is asked for.
        case mismatch
        /// The part is kept, and the load fails.
        case refuse
    }

    let data: Data
    /// A strong entity tag, or the date of the last change.
    let validator: String
    let length: Int?
    /// The requests for the rest in a row that brought nothing.
    let counts: PartCounts

    init(data: Data, validator: String, length: Int?, counts: PartCounts = PartCounts()) {
        self.data = data
        self.validator = validator
        self.length = length
        self.counts = counts
    }

    /// Creates the part of an interrupted response. Returns nil if the rest cannot be requested: it needs a strong
    /// validator, no content coding, and a server that does not refuse ranges.
    init?(_ data: Data, of head: ResponseHead, length: Int?) {
        let headers = head.headers
        guard !data.isEmpty, !headers.contains("Content-Encoding"), headers["Accept-Ranges"] != "none" else {
            return nil
        }
        if let tag = headers["ETag"] {
            // A weak tag does not identify the bytes, and the date must not replace it.
            guard tag.hasPrefix("\"") else { return nil }
            validator = tag
        } else if let text = headers["Last-Modified"], let changed = headers.date("Last-Modified"),
            let sent = headers.date("Date"), sent.timeIntervalSince(changed) >= 1
        {
            // A later change within the same second would have the same date (RFC 9110 §8.8.2.2).
            validator = text
        } else {
            return nil
        }
        self.data = data
        self.length = length
        counts = PartCounts()
    }

    /// Creates what an accepted response leaves that has failed in its body. Returns nil if nothing can be continued.
    ///
    /// - Parameter part: The part that was to be continued; nil for none. It is left if the body brought no byte, or
    ///   too many.
    init?(_ body: ImageResponseBody, of head: ResponseHead, continuing part: PartialImage?, after error: NetworkError) {
        if let part, body.offset > 0, error.hasWrongBody || body.data.count == body.offset {
            self = part.counting(after: error, at: .body)
        } else {
            guard error.kind != .tooLarge else { return nil }
            self.init(body.data, of: head, length: body.length)
        }
    }

    /// Returns the same part after a request that failed and brought nothing.
    func counting(after error: NetworkError, at stage: PartCounts.Stage) -> PartialImage {
        PartialImage(data: data, validator: validator, length: length, counts: counts.after(error, at: stage))
    }

    /// The header fields that request the rest if the whole has not changed. They refuse content codings, because the
    /// part has none.
    var fields: Headers {
        ["Range": "bytes=\(data.count)-", "If-Range": validator, "Accept-Encoding": "identity"]
    }

    /// The rules of the continuation.
    var resumeRules: ResumedDownloadRules {
        ResumedDownloadRules(
            offset: Int64(data.count), validator: validator, totalBytes: length.map { Int64($0) },
            counts: counts)
    }

    /// Returns whether a body of this length can be the whole of which this is a part, by the head of its response.
    func admits(_ count: Int, of head: ResponseHead) -> Bool {
        switch resumeRules.decision(onWholeFile: head.status, headers: head.headers) {
        case .use(let length): length == nil || length == Int64(count)
        case .fail: false
        }
    }

    /// Decides after a request for the rest that failed before its body.
    func decision(after error: NetworkError) -> ResumedDownloadRules.Decision { resumeRules.decision(after: error) }

    func decision(for head: ResponseHead) -> Decision {
        let decision = resumeRules.decision(
            on: head.status, headers: head.headers, isSameOrigin: head.redirects.isEmpty)
        return switch decision {
        case .append(let end, let total): .append(until: Int(clamping: end), total: Int(clamping: total))
        case .replace: .replace
        case .askForWhole: .mismatch
        case .refuse: .refuse
        }
    }
}

extension PartialImage {
    static func key(_ key: SourceKey) -> String { "part \(key.text)" }

    /// The metadata that is stored beside the bytes.
    var metadata: Data {
        var lines = ["1", length.map(String.init) ?? "", validator]
        if counts != PartCounts() { lines.append("\(counts.refusals)") }
        if counts.failures > 0 { lines.append("\(counts.failures)") }
        return Data(lines.joined(separator: "\n").utf8)
    }

    /// Creates a part from its entry on the disk; nil if the entry is malformed.
    init?(_ data: Data, metadata: Data) {
        let lines = String(decoding: metadata, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard (3...5).contains(lines.count), lines[0] == "1", !data.isEmpty, !lines[2].isEmpty else {
            return nil
        }
        let numbers = lines.dropFirst(3).map { Int($0) ?? -1 }
        let counts = PartCounts(refusals: numbers.first ?? 0, failures: numbers.count > 1 ? numbers[1] : 0)
        guard counts.isValid else { return nil }
        self.init(data: data, validator: String(lines[2]), length: Int(lines[1]), counts: counts)
    }
}
