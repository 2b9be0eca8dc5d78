#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What came of reading an entry.
enum DiskReading: Sendable {
    case found(DiskCache.Entry)
    /// The entry is not there any more: it was removed or replaced meanwhile, or its file is missing.
    case gone
    /// The bytes are not those that were written.
    case damaged
    /// The entry is of another key with the same hash.
    case otherKey
    case failed(DiskCacheError)
}
