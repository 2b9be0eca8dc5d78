import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The beginning of a response that broke off, and how to ask for the rest of the same bytes (RFC 9110 §13.1.5, §14).
/// Pure; kept on the disk.
struct PartialImage: Sendable, Equatable {
    /// What a response to the request for the rest means.
    enum Verdict: Equatable {
        /// It goes on where the part ends.
        case continues
        /// It is the whole from its beginning: the part is of no use.
        case startsAnew
        /// It is a part, but not of these bytes, or not where they end.
        case contradicts
    }

    let data: Data
    /// A strong entity tag, or the date of the last change.
    let validator: String
    let length: Int?

    init(data: Data, validator: String, length: Int?) {
        self.data = data
        self.validator = validator
        self.length = length
    }

    /// What came of a response, if the rest can be asked for: it has a validator that holds byte for byte, was not encoded,
    /// and its server does not refuse ranges.
    init?(_ data: Data, of head: ResponseHead, length: Int?) {
        let headers = head.headers
        guard !data.isEmpty, !headers.contains("Content-Encoding"), headers["Accept-Ranges"] != "none" else {
            return nil
        }
        if let tag = headers["ETag"] {
            // A weak one says nothing of the bytes, and the date may not stand in for it.
            guard tag.hasPrefix("\"") else { return nil }
            validator = tag
        } else if let text = headers["Last-Modified"], let changed = headers.date("Last-Modified"),
            let sent = headers.date("Date"), sent.timeIntervalSince(changed) >= 1
        {
            // Else it may have changed again within the same second (RFC 9110 §8.8.2.2).
            validator = text
        } else {
            return nil
        }
        self.data = data
        self.length = length
    }

    /// The fields that ask for the rest, if the whole has not changed. What is not encoded now was not encoded before.
    var fields: Headers {
        ["Range": "bytes=\(data.count)-", "If-Range": validator, "Accept-Encoding": "identity"]
    }

    func verdict(on head: ResponseHead) -> Verdict {
        guard head.status == 206 else { return .startsAnew }
        let continuation = DownloadContinuation(
            offset: Int64(data.count), validator: validator, totalBytes: length.map { Int64($0) })
        let decision = continuation.decision(
            on: head.status, headers: head.headers, isSameOrigin: head.redirects.isEmpty)
        guard case .append = decision else { return .contradicts }
        return .continues
    }
}

extension PartialImage {
    static func key(_ key: SourceKey) -> String { "part \(key.text)" }

    /// What is stored beside the bytes.
    var metadata: Data { Data("1\n\(length.map(String.init) ?? "")\n\(validator)".utf8) }

    /// What was stored; nil for anything else.
    init?(_ data: Data, metadata: Data) {
        let lines = String(decoding: metadata, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0] == "1", !data.isEmpty, !lines[2].isEmpty else { return nil }
        self.init(data: data, validator: String(lines[2]), length: Int(lines[1]))
    }
}
