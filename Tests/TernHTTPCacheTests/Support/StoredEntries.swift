import Foundation
import Tern

@testable import TernHTTPCache

extension CacheKey {
    /// The key of a path of `example.com`.
    static func path(_ path: String, partition: String = "") -> CacheKey {
        CacheKey(origin: "http://example.com:80", path: "/" + path, query: nil, partition: partition)
    }
}

extension CacheEntry {
    /// An entry with a whole body.
    static func whole(_ id: UInt64, _ key: CacheKey, _ headers: Headers = [:], count: Int) -> CacheEntry {
        CacheEntry(
            CacheEntry.Properties(
                id: id, key: key, status: 200, version: .http11, headers: headers,
                requestTime: CacheTime(milliseconds: 0), responseTime: CacheTime(milliseconds: Int64(id)),
                selections: [], content: .whole(Int64(count))))
    }
}
