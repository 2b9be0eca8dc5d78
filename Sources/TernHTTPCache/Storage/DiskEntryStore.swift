import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps stored responses on the disk, by the rules of a `DiskCache`: acknowledged entries survive a kill, the limits
/// hold at all times, and damaged values are not found.
///
/// The heads of a key are one value. A small body is a part of it, and a larger body is a value of its own, so that the
/// update of a head does not write it again. A head whose body was evicted is a miss. Changes of one record exclude
/// each other; look-ups do not wait for them.
final class DiskEntryStore: EntryStore {
    let cache: DiskCache
    let entryLimit: Int
    let state: DiskStoreState

    /// The greatest size in bytes of a body that is stored beside its head.
    static let inlineLimit = 8 << 10
    /// The size in bytes up to which a whole body is read, and from which it is mapped.
    private static let copyLimit = 256 << 10

    init(_ cache: DiskCache, entryLimit: Int) {
        self.cache = cache
        self.entryLimit = entryLimit
        state = DiskStoreState.of(cache)
    }

    var generation: UInt64 { state.values.withLock { $0.log.generation } }

    func beginRequest() -> UInt64 { state.values.withLock { $0.log.beginRequest() } }

    func isValid(_ entry: CacheEntry, since generation: UInt64) -> Bool {
        state.values.withLock { $0.log.allows(entry, since: generation) }
    }

    // MARK: Keys and tags

    static func recordKey(_ key: CacheKey) -> String { "head " + key.text }

    static func bodyKey(_ id: UInt64) -> String { "body \(id)" }

    static func rulesKey(_ key: CacheKey) -> String {
        let base = CacheKey(
            method: "", origin: key.origin, path: key.path, query: nil, trust: key.trust, partition: key.partition)
        return "rules " + base.text
    }

    static func partitionTag(_ partition: String) -> String { "partition " + partition }

    /// Returns the tag of a group. A digest, because a group's name can be longer than a tag.
    static func groupTag(_ group: String, of key: CacheKey) -> String {
        let text = "\(key.partition.utf8.count):\(key.partition)\(key.origin) \(group)"
        return "group " + DigestFunction.hash(Array(text.utf8), .sha256).prefix(16).hexadecimal
    }

    /// The prefix of the tag of a record, which has the text of its key.
    private static let keyTag = "key "
    /// The greatest length of such a tag in bytes.
    private static let longestKeyTag = 1 << 10

    static func tags(of entries: [CacheEntry], under key: CacheKey) -> [String] {
        let text = keyTag + key.text
        return tags(of: entries, partition: key.partition) + (text.utf8.count <= longestKeyTag ? [text] : [])
            + (key.trust.isEmpty ? [] : Set(entries.map { urlTag($0.key, isExact: $0.search == .exact) }).sorted())
    }

    /// Returns the tag of the responses of a URL under all trust policies but the default one, which its key finds.
    ///
    /// - Parameter isExact: False for responses that other queries find too.
    static func urlTag(_ key: CacheKey, isExact: Bool) -> String {
        let url = CacheKey(
            origin: key.origin, path: key.path, query: isExact ? key.query : nil, partition: key.partition)
        let text = (isExact ? "" : "any ") + url.text
        return "url " + DigestFunction.hash(Array(text.utf8), .sha256).prefix(16).hexadecimal
    }

    static func tags(of entries: [CacheEntry], partition: String) -> [String] {
        let groups = Set(entries.flatMap { entry in entry.groups.map { groupTag($0, of: entry.key) } })
        return [partitionTag(partition)] + groups.sorted()
    }

    /// The greatest number of tags of a value in the cache.
    static let tagLimit = 64

    // MARK: Reading

    func entriesNow(for key: CacheKey) -> [CacheEntry]? {
        guard !mustReadRules(Self.rulesKey(key)) else { return nil }
        var entries: [CacheEntry] = []
        let (keys, pending) = state.values.withLock { ($0.search.keys(for: key), $0.pending) }
        for key in keys {
            guard let record = recordNow(key) else { return nil }
            entries += state.values.withLock { $0.with(pending, record.entries, of: key) }
        }
        return entries
    }

    func bodyNow(of entry: CacheEntry, range: Range<Int64>) -> Data? {
        let length = entry.properties.storedLength
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        if let body = entry.bodyBesideHead { return body.part(range, of: length) }
        if let body = state.values.withLock({ $0.pending.body(of: entry.id) }) { return body.part(range, of: length) }
        guard case .inline(let data)? = recordNow(SearchRules.storageKey(of: entry))?.item(entry.id)?.body else {
            return nil
        }
        return data.part(range, of: length)
    }

    /// Returns a record if it is in memory, or if there is none; nil if it must be read.
    private func recordNow(_ key: CacheKey) -> CacheRecord? {
        let name = Self.recordKey(key)
        guard let number = cache.number(of: name, isUse: true) else {
            return cache.contains(name) ? nil : CacheRecord()
        }
        guard let known = state.records.value(for: key), known.number == number else { return nil }
        return known.record
    }

    /// Remembers a record that was read, or that was written under its lock, as that of a value with a number.
    func remember(_ record: CacheRecord, for key: CacheKey, number: Int64?) {
        guard let number, number == cache.number(of: Self.recordKey(key), isUse: false) else { return }
        state.records.insert(DiskStoreState.NumberedRecord(number: number, record: record), for: key)
    }

    func entries(for key: CacheKey) async -> [CacheEntry] {
        var entries: [CacheEntry] = []
        await readRules(of: key)
        let (keys, pending) = state.values.withLock { ($0.search.keys(for: key), $0.pending) }
        for key in keys {
            let stored = await record(key).entries
            entries += state.values.withLock { $0.with(pending, stored, of: key) }
        }
        return entries
    }

    /// Reads the `No-Vary-Search` rules of a path that an earlier process stored.
    func readRules(of key: CacheKey) async {
        let name = Self.rulesKey(key)
        guard mustReadRules(name) else { return }
        // A failure costs hits alone.
        guard let data = try? await cache.value(for: name), let record = CacheRecord(data) else { return }
        state.values.withLock { values in
            if values.readRules.count >= 4_096 { values.readRules = [] }
            values.readRules.insert(name)
            for entry in record.entries { _ = values.search.add(entry) }
        }
    }

    private func mustReadRules(_ name: String) -> Bool {
        cache.contains(name) && !state.values.withLock { $0.readRules.contains(name) }
    }

    /// Returns a record. One that cannot be read is a miss.
    private func record(_ key: CacheKey) async -> CacheRecord { (try? await readRecord(key)) ?? CacheRecord() }

    /// Reads and decodes a record, not on the caller's actor. A damaged one is empty.
    @concurrent
    func readRecord(_ key: CacheKey) async throws(DiskCacheError) -> CacheRecord {
        let name = Self.recordKey(key)
        // Most look-ups of unknown URLs end here, in memory.
        if let record = recordNow(key) { return record }
        let number = cache.number(of: name, isUse: false)
        guard let data = try await cache.value(for: name), let record = CacheRecord(data) else { return CacheRecord() }
        // A record of another key would answer for a wrong URL.
        let isOwn = record.entries.allSatisfy { SearchRules.storageKey(of: $0) == key }
        guard isOwn else { return CacheRecord() }
        remember(record, for: key, number: number)
        return record
    }

    func keys() async -> [CacheKey] {
        var keys: [CacheKey] = []
        var last: String?
        // An index that cannot be read has no keys.
        while let tags = try? await cache.tags(prefix: Self.keyTag, after: last, limit: 1_000), !tags.isEmpty {
            keys += tags.compactMap { CacheKey(text: String($0.dropFirst(Self.keyTag.count))) }
            last = tags.last
        }
        return keys
    }

    func entries(at key: CacheKey) async -> [CacheEntry] { await record(key).entries }

    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data? {
        let length = entry.properties.storedLength
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        if let body = bodyNow(of: entry, range: range) { return body }
        if let body = await separateBody(of: entry, range: range) { return body }
        guard let item = await record(SearchRules.storageKey(of: entry)).item(entry.id) else { return nil }
        if case .inline(let data) = item.body, let part = data.part(range, of: length) { return part }
        await remove([entry])
        return nil
    }

    /// Reads a body by the number of its entry alone. A small one is read as a whole, and a large one is mapped.
    private func separateBody(of entry: CacheEntry, range: Range<Int64>) async -> Data? {
        let (name, length) = (Self.bodyKey(entry.id), entry.properties.storedLength)
        guard cache.contains(name) else { return nil }
        if length <= Self.copyLimit {
            // A body that cannot be read is a miss, and its head is removed by the caller.
            return (try? await cache.value(for: name))?.part(range, of: length)
        }
        let part = Int(range.lowerBound)..<Int(range.upperBound)
        // As above.
        return try? await cache.mappedPart(of: name, part, length: Int(length))
    }

    // MARK: Responses that are being written

    func beginInsert(_ entry: CacheEntry, body: Data?, replacing: [CacheEntry], generation: UInt64) {
        // As it will be read from the disk, where cookies are not written.
        let item = CacheRecord.Item(entry: entry, body: .separate)
        let stored = CacheRecord([item]).withoutCookies.entries.first ?? entry
        state.values.withLock { $0.pending.begin(stored, body: body, replacing: replacing, sent: generation) }
    }

    func endInsert(_ entry: CacheEntry) { state.values.withLock { $0.pending.end(entry.id) } }

    func isInserting(_ key: CacheKey) -> Bool {
        state.values.withLock { values in
            !values.pending.isEmpty && values.search.keys(for: key).contains { values.pending.contains($0) }
        }
    }

    func endedInserts(for key: CacheKey) -> UInt64 {
        state.values.withLock { values in
            values.search.keys(for: key).reduce(0) { $0 &+ values.pending.endCount(of: $1) }
        }
    }

    func outdateEarlier(than entry: CacheEntry, generation: UInt64) {
        state.values.withLock { _ = $0.order.recordIfLatest(entry, sent: generation) }
    }
}

extension Data {
    /// Returns a part of the body, counted from its first byte; nil if the body has another length.
    fileprivate func part(_ range: Range<Int64>, of length: Int64) -> Data? {
        guard Int64(count) == length else { return nil }
        return self[startIndex + Int(range.lowerBound)..<startIndex + Int(range.upperBound)]
    }
}
