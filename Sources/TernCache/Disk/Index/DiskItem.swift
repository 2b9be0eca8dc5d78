import CTernSQLite

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A validated value that is ready to be stored, with its checksum and its times.
struct DiskItem: Sendable {
    enum Content: Sendable {
        case bytes(Data)
        /// A finished file under a temporary name, with its trailer.
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

    /// The maximum size of a value in the index. Larger values are stored in files of their own.
    static let inlineLimit = 16 << 10

    var isInline: Bool {
        if case .bytes = content { return size <= Self.inlineLimit }
        return false
    }

    /// The bytes of the row in the index, as the budget counts them. The row of a file contains only numbers.
    var rowBytes: Int { isInline ? size + key.bytes.count + metadata.count + 96 : 96 }

    var trailer: DiskTrailer {
        DiskTrailer(
            checksum: checksum, size: size, created: created, expires: expires, key: key.bytes, metadata: metadata,
            tags: tags)
    }

    static func validate(key: String, metadata: Data, tags: [String]) throws(DiskCacheError) {
        guard key.utf8.count <= 64 << 10 else {
            throw DiskCacheError(.invalidArgument, "the key is longer than 64 KiB")
        }
        guard metadata.count <= 64 << 10 else {
            throw DiskCacheError(.invalidArgument, "the metadata is longer than 64 KiB")
        }
        guard tags.count <= 64, tags.allSatisfy({ $0.utf8.count <= 1 << 10 }) else {
            throw DiskCacheError(.invalidArgument, "there are more than 64 tags, or a tag is longer than 1 KiB")
        }
    }

    /// Returns the time of expiry of a value that is created now and lives for `life`.
    static func expiry(_ life: Duration?, now: Int64) -> Int64 {
        guard let life else { return .max }
        let (seconds, attoseconds) = life.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        guard !overflow else { return seconds < 0 ? now : .max }
        // The part of a second has the sign of the whole.
        let (milliseconds, isOver) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        let (sum, isLate) = now.addingReportingOverflow(milliseconds)
        return isOver || isLate ? (seconds < 0 ? now : .max) : sum
    }
}

/// A key with its hash. Two keys are equal if their UTF-8 is equal. Swift's equality of strings would also join keys
/// that are only canonically equivalent.
struct DiskKey: Sendable, Equatable {
    let bytes: Data
    let hash: UInt64

    static func == (left: DiskKey, right: DiskKey) -> Bool { left.hash == right.hash && left.bytes == right.bytes }
}

/// Hashes keys with a seed of the folder, so that nobody can choose keys that collide.
///
/// Entries are distinguished by the hash in memory and by the whole key on the disk. Keys that collide replace each
/// other, and never return each other's value.
struct DiskKeyHasher: Sendable {
    let seed: UInt64
    var mask = UInt64.max

    /// Returns the hash alone, without copying the key.
    func hash(_ key: String) -> UInt64 {
        var key = key
        return key.withUTF8 { utf8 in
            unsafe tern_xxh64(utf8.baseAddress, utf8.count, seed) & mask
        }
    }

    func key(_ key: String) -> DiskKey { DiskKey(bytes: Data(key.utf8), hash: hash(key)) }

    func key(_ bytes: Data) -> DiskKey { DiskKey(bytes: bytes, hash: DiskChecksum.of(bytes, seed: seed) & mask) }
}
