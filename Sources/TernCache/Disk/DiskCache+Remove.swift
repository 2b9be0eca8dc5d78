#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension DiskCache {
    /// Removes the value of a key, staged or stored; returns once that is committed. No value is no failure. Values of
    /// read-only folders stay.
    @concurrent
    public nonisolated func remove(_ key: String) async throws(DiskCacheError) {
        try await send(.remove(shared.hasher.key(key)))
    }

    /// Removes all entries; returns once that is committed. It takes one transaction and one renaming: the files are
    /// deleted afterwards, in steps between other work, and count as used until they are.
    @concurrent
    public nonisolated func removeAll() async throws(DiskCacheError) { try await send(.removeAll) }

    /// Removes the entries that were inserted with a tag; returns once that is committed. A kill meanwhile may leave some
    /// of them.
    @concurrent
    public nonisolated func removeAll(tagged tag: String) async throws(DiskCacheError) {
        try await send(.removeTag(Data(tag.utf8)))
    }

    /// Removes what has expired. Expired entries are never found, and are swept a few at each insert in any case.
    @concurrent
    public nonisolated func removeExpired() async throws(DiskCacheError) { try await send(.sweep) }

    /// Evicts the least recently used entries until the files take at most so many bytes, the index's log not counted.
    @concurrent
    public nonisolated func trim(toBytes bytes: Int) async throws(DiskCacheError) {
        try await send(.trim(bytes: bytes))
    }
}
