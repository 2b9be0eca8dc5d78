import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a response as they come, within their limit, and how far they are. Pure.
struct ImageBody: Sendable {
    private(set) var data = Data()
    /// Where the response took up what was there before.
    private(set) var offset = 0
    /// The length of the whole; nil if it is not known.
    private(set) var length: Int?
    let limit: Int
    private var reported: UInt64 = 0

    /// At most about thirty reports a second.
    private static let interval: UInt64 = 33_000_000

    init(limit: Int) { self.limit = limit }

    /// - Parameter part: what is there already, if the response goes on with it.
    /// - Returns: false if the response states more than the limit.
    mutating func begin(_ head: ResponseHead, after part: Data?) -> Bool {
        if let part {
            data = part
            offset = part.count
        }
        // The length of an encoded body says nothing of what comes of it.
        if !head.headers.contains("Content-Encoding"), let rest = head.contentLength {
            length = offset + Int(clamping: rest)
        }
        guard (length ?? 0) <= limit else { return false }
        if let length, offset == 0 { data.reserveCapacity(length) }
        return true
    }

    /// - Returns: false if that is more than the limit.
    mutating func append(_ chunk: Data) -> Bool {
        guard data.count + chunk.count <= limit else { return false }
        // Most pictures come in one piece: it is taken over, not copied.
        if data.isEmpty { data = chunk } else { data.append(chunk) }
        return true
    }

    /// How far it is, if it is time to tell.
    mutating func progress(at nanoseconds: UInt64) -> Session.Progress? {
        guard data.count != length, nanoseconds &- reported >= Self.interval else { return nil }
        reported = nanoseconds
        return Session.Progress(completedBytes: Int64(data.count), totalBytes: length.map(Int64.init))
    }
}
