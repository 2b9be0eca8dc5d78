#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension DiskCache {
    /// Returns tags of stored entries that begin with a prefix, in the order of their bytes.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the tags. It is ASCII, and not empty.
    ///   - last: The tag after which the search begins; nil for the first one.
    ///   - limit: The greatest number of tags.
    package func tags(prefix: String, after last: String?, limit: Int) throws(DiskCacheError) -> [String] {
        let first = Data((last ?? prefix).utf8)
        // No byte of UTF-8 is 0xFF.
        let end = Data(prefix.utf8) + [0xFF]
        return try openStore().tables.tags(after: first, before: end, limit: limit)
            .map { String(decoding: $0, as: UTF8.self) }
    }
}
