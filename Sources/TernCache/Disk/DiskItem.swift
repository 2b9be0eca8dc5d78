#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A value that is ready to be stored: checked, with its checksum and its times.
struct DiskItem: Sendable {
    enum Content: Sendable {
        case bytes(Data)
        /// A finished file under a temporary name, its trailer written.
        case file(path: String, trailer: Int, allocated: Int)
    }

    let key: DiskKey
    var content: Content
    let size: Int
    let checksum: UInt64
    let metadata: Data
    let tags: [String]
    let created: Int64
    let expires: Int64

    /// Larger values stand in files of their own.
    static let inlineLimit = 16 << 10

    var isInline: Bool {
        if case .bytes = content { return size <= Self.inlineLimit }
        return false
    }

    /// Bytes of the row in the index, for accounts; a file's row has nothing but numbers.
    var rowBytes: Int { isInline ? size + key.bytes.count + metadata.count + 96 : 96 }

    var trailer: DiskTrailer {
        DiskTrailer(
            checksum: checksum, size: size, created: created, expires: expires, key: key.bytes, metadata: metadata,
            tags: tags)
    }

    static func check(key: String, metadata: Data, tags: [String]) throws(DiskCacheError) {
        guard key.utf8.count <= 64 << 10 else { throw DiskCacheError(.invalidArgument, "a key of over 64 KiB") }
        guard metadata.count <= 64 << 10 else { throw DiskCacheError(.invalidArgument, "metadata of over 64 KiB") }
        guard tags.count <= 64, tags.allSatisfy({ $0.utf8.count <= 1 << 10 }) else {
            throw DiskCacheError(.invalidArgument, "over 64 tags, or a tag of over 1 KiB")
        }
    }

    /// When a value that is made now and lives for `life` expires.
    static func expiry(_ life: Duration?, now: Int64) -> Int64 {
        guard let life else { return .max }
        let (seconds, attoseconds) = life.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        guard !overflow else { return seconds < 0 ? now : .max }
        let (sum, late) = now.addingReportingOverflow(whole + attoseconds / 1_000_000_000_000_000)
        return late ? .max : sum
    }
}
