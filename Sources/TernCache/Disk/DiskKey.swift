import CTernSQLite

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A key with its hash. Two keys are equal if their UTF-8 is: Swift's equality of strings would join what is only
/// canonically equivalent.
struct DiskKey: Sendable, Equatable {
    let bytes: Data
    let hash: UInt64

    static func == (left: DiskKey, right: DiskKey) -> Bool { left.hash == right.hash && left.bytes == right.bytes }
}

/// Hashes keys with a seed of the folder's own, so that nobody who chooses keys can make them collide.
///
/// Entries are told apart by the hash in memory and by the whole key on the disk: keys that collide replace each other,
/// and never answer for each other.
struct DiskKeyHasher: Sendable {
    let seed: UInt64
    var mask = UInt64.max

    /// The hash alone, without copying the key.
    func hash(_ key: String) -> UInt64 {
        var key = key
        return key.withUTF8 { utf8 in
            unsafe tern_xxh64(utf8.baseAddress, utf8.count, seed) & mask
        }
    }

    func key(_ key: String) -> DiskKey { DiskKey(bytes: Data(key.utf8), hash: hash(key)) }

    func key(_ bytes: Data) -> DiskKey { DiskKey(bytes: bytes, hash: DiskChecksum.of(bytes, seed: seed) & mask) }
}
