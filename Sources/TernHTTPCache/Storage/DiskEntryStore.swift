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
    private let cache: DiskCache
    let entryLimit: Int
    private let state: DiskStoreState

    /// The greatest size in bytes of a body that is stored beside its head.
    private static let inlineLimit = 8 << 10
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

    private static func recordKey(_ key: CacheKey) -> String { "head " + key.text }

    private static func bodyKey(_ id: UInt64) -> String { "body \(id)" }

    private static func rulesKey(_ key: CacheKey) -> String {
        let base = CacheKey(
            method: "", origin: key.origin, path: key.path, query: nil, trust: key.trust, partition: key.partition)
        return "rules " + base.text
    }

    private static func partitionTag(_ partition: String) -> String { "partition " + partition }

    /// Returns the tag of a group. A digest, because a group's name can be longer than a tag.
    private static func groupTag(_ group: String, of key: CacheKey) -> String {
        let text = "\(key.partition.utf8.count):\(key.partition)\(key.origin) \(group)"
        return "group " + DigestFunction.hash(Array(text.utf8), .sha256).prefix(16).hexadecimal
    }

    /// The prefix of the tag of a record, which has the text of its key.
    private static let keyTag = "key "
    /// The greatest length of such a tag in bytes.
    private static let longestKeyTag = 1 << 10

    private static func tags(of entries: [CacheEntry], under key: CacheKey) -> [String] {
        let text = keyTag + key.text
        return tags(of: entries, partition: key.partition) + (text.utf8.count <= longestKeyTag ? [text] : [])
            + (key.trust.isEmpty ? [] : Set(entries.map { urlTag($0.key, isExact: $0.search == .exact) }).sorted())
    }

    /// Returns the tag of the responses of a URL under all trust policies but the default one, which its key finds.
    ///
    /// - Parameter isExact: False for responses that other queries find too.
    private static func urlTag(_ key: CacheKey, isExact: Bool) -> String {
        let url = CacheKey(
            origin: key.origin, path: key.path, query: isExact ? key.query : nil, partition: key.partition)
        let text = (isExact ? "" : "any ") + url.text
        return "url " + DigestFunction.hash(Array(text.utf8), .sha256).prefix(16).hexadecimal
    }

    private static func tags(of entries: [CacheEntry], partition: String) -> [String] {
        let groups = Set(entries.flatMap { entry in entry.groups.map { groupTag($0, of: entry.key) } })
        return [partitionTag(partition)] + groups.sorted()
    }

    /// The greatest number of tags of a value in the cache.
    private static let tagLimit = 64

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
    private func remember(_ record: CacheRecord, for key: CacheKey, number: Int64?) {
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
    private func readRules(of key: CacheKey) async {
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
    private func readRecord(_ key: CacheKey) async throws(DiskCacheError) -> CacheRecord {
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

    // MARK: Changes

    @discardableResult
    func insert(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) async -> Bool {
        guard body.count <= entryLimit, Int64(body.count) == entry.properties.storedLength else { return false }
        if body.count <= Self.inlineLimit {
            return await insertHead(entry, .inline(body), replacing: replacing, generation: generation)
        }
        do throws(DiskCacheError) {
            try await cache.insert(body, for: Self.bodyKey(entry.id), tags: Self.bodyTags(entry))
        } catch {
            // The newer response outdates them all the same.
            await remove(replacing)
            return false
        }
        return await insertHead(entry, .separate, replacing: replacing, generation: generation)
    }

    func bodyWriter(for entry: CacheEntry) -> (any BodyWriter)? { DiskBodyWriter(self, entry) }

    /// Creates a writer of the file of a body.
    func fileWriter(for entry: CacheEntry) async throws(DiskCacheError) -> DiskCache.Writer {
        try await cache.writer(for: Self.bodyKey(entry.id), tags: Self.bodyTags(entry))
    }

    private static func bodyTags(_ entry: CacheEntry) -> [String] { tags(of: [entry], partition: entry.key.partition) }

    /// Stores a head after its body. Returns whether it is stored; a separate body is removed otherwise.
    func insertHead(
        _ entry: CacheEntry, _ body: CacheRecord.Body, replacing: [CacheEntry], generation: UInt64
    ) async -> Bool {
        let key = SearchRules.storageKey(of: entry)
        // Entries that a later request has confirmed stay.
        let replacing = state.values.withLock { values in
            replacing.filter { values.order.isLatest($0, sent: generation) }
        }
        await remove(replacing.filter { SearchRules.storageKey(of: $0) != key })
        let item = CacheRecord.Item(entry: entry, body: body)
        let name = Self.recordKey(key)
        await state.lock(name)
        defer { state.unlock(name) }
        let change = await changeLocked(key) { [state] record in
            // The order is that of the requests. A large body, and another response, may have taken longer to be
            // written.
            let isStorable = state.values.withLock { values in
                guard values.isStorable(entry, sent: generation), !values.pending.isRemoved(entry.id) else {
                    return false
                }
                values.order.record(entry, sent: generation)
                return true
            }
            guard isStorable else { return nil }
            var removed = record.insert(item, replacing: replacing.map(\.id))
            // An invalidation of a group must reach each of its entries.
            while Self.tags(of: record.entries, under: key).count > Self.tagLimit {
                let others = record.entries.filter { $0.id != entry.id }
                guard let oldest = others.min(by: { $0.isOlder(than: $1) }) else { return nil }
                removed += record.remove([oldest.id])
            }
            return removed
        }
        if change == .written {
            await storeRule(of: entry)
            return true
        }
        // The newer response outdates them all the same.
        await changeLocked(key) { record in
            replacing.contains { record.item($0.id) != nil } ? record.remove(replacing.map(\.id)) : nil
        }
        if body == .separate { await removeBody(entry.id) }
        return false
    }

    /// Stores the rule of an entry for later processes. The record has no body of use.
    private func storeRule(of entry: CacheEntry) async {
        guard state.values.withLock({ $0.search.add(entry) }) else { return }
        let name = Self.rulesKey(entry.key)
        // A rule that cannot be read or written costs hits alone.
        var record = (try? await cache.value(for: name)).flatMap { CacheRecord($0) } ?? CacheRecord()
        let example = entry.changing {
            $0.content = .whole(0)
            $0.headers = Headers(entry.headers.filter { Headers.namesMatch($0.name, "No-Vary-Search") })
        }
        let same = record.entries.filter { $0.search == entry.search }
        _ = record.insert(CacheRecord.Item(entry: example, body: .inline(Data())), replacing: same.map(\.id))
        // As above.
        try? await cache.insert(record.encoded(), for: name, tags: [Self.partitionTag(entry.key.partition)])
    }

    func update(_ entries: [CacheEntry], generation: UInt64) async {
        for entry in entries {
            await change(SearchRules.storageKey(of: entry)) { [state] record in
                guard record.item(entry.id) != nil else { return nil }
                let isLatest = state.values.withLock { values in
                    guard values.order.isLatest(entry, sent: generation) else { return false }
                    values.order.record(entry, sent: generation)
                    return true
                }
                guard isLatest else { return nil }
                record.update([entry])
                return []
            }
        }
    }

    func remove(_ entries: [CacheEntry]) async {
        state.values.withLock { values in
            for entry in entries { values.pending.remove(entry.id) }
        }
        for entry in entries {
            await change(SearchRules.storageKey(of: entry)) { record in
                record.item(entry.id) == nil ? nil : record.remove([entry.id])
            }
        }
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
        state.values.withLock { $0.order.record(entry, sent: generation) }
    }

    // MARK: Records

    /// The result of a change of a record.
    private enum Change: Equatable {
        case none
        case written
        /// The record could not be written. Entries that were to leave may be found.
        case failed(String)
    }

    /// Changes a record while no other change of it runs.
    @discardableResult
    private func change(_ key: CacheKey, _ change: (inout CacheRecord) -> [CacheEntry]?) async -> Change {
        let name = Self.recordKey(key)
        await state.lock(name)
        defer { state.unlock(name) }
        return await changeLocked(key, change)
    }

    /// Changes a record whose lock is held.
    ///
    /// - Parameter change: Returns the entries whose separate bodies are to be removed; nil to write nothing.
    @discardableResult
    private func changeLocked(_ key: CacheKey, _ change: (inout CacheRecord) -> [CacheEntry]?) async -> Change {
        let name = Self.recordKey(key)
        let old: CacheRecord
        do throws(DiskCacheError) {
            do throws(DiskCacheError) {
                old = try await readRecord(key)
            } catch {
                // Whatever is to leave is in there, and can be read again later.
                try await cache.remove(name)
                old = CacheRecord()
            }
        } catch {
            return .failed(error.reason)
        }
        var new = old
        guard let removed = change(&new) else { return .none }
        var result = Change.written
        do throws(DiskCacheError) {
            if new.isEmpty {
                try await cache.remove(name)
            } else {
                let tags = Self.tags(of: new.entries, under: key)
                try await cache.insert(new.encoded(), for: name, tags: tags)
                remember(new.withoutCookies, for: key, number: cache.number(of: name, isUse: false))
            }
        } catch {
            result = .failed(error.reason)
            // Entries that were to leave must not be found, even at the price of the others. A disk that refuses this
            // too refuses each change.
            if old.entries.contains(where: { new.item($0.id) == nil }) { try? await cache.remove(name) }
        }
        for entry in removed { await removeBody(entry.id) }
        return result
    }

    private func removeBody(_ id: UInt64) async {
        // A body without a head is never read, and is evicted like any other.
        try? await cache.remove(Self.bodyKey(id))
    }

    // MARK: Invalidation

    func acceptsRule(of entry: CacheEntry) -> Bool { state.values.withLock { $0.search.accepts(entry) } }

    @discardableResult
    func invalidate(_ invalidation: CacheInvalidation) async -> String? {
        var failure: String?
        state.values.withLock { $0.log.record(invalidation) }
        for key in invalidation.keys {
            for trust in Set([key.trust, ""]) {
                let key = key.with(partition: key.partition, trust: trust)
                await readRules(of: key)
                for method in ["GET", "HEAD"] {
                    // Also for a key without a record, because one may be on its way to the disk.
                    for key in state.values.withLock({ $0.search.keys(for: key.with(method: method)) }) {
                        let change = await change(key) { $0.isEmpty ? nil : $0.remove($0.entries.map(\.id)) }
                        if case .failed(let reason) = change { failure = reason }
                    }
                }
            }
        }
        guard let own = invalidation.keys.first else { return failure }
        let urls = invalidation.keys.flatMap { [Self.urlTag($0, isExact: true), Self.urlTag($0, isExact: false)] }
        let tags = urls + invalidation.groups.map { Self.groupTag($0, of: own) }
        return await state.exclusively {
            for tag in tags { failure = await removeAll(tagged: tag) ?? failure }
            return failure
        }
    }

    @discardableResult
    func removeAll(partition: String) async -> String? {
        state.values.withLock { $0.recordAll() }
        let failure = await state.exclusively { await removeAll(tagged: Self.partitionTag(partition)) }
        // Removed records are not found. They need not stay in memory either.
        state.records.removeAll()
        return failure
    }

    @discardableResult
    func removeAll() async -> String? {
        state.values.withLock { $0.recordAll() }
        let failure = await state.exclusively {
            await Self.failure { () throws(DiskCacheError) in try await cache.removeAll() }
        }
        state.records.removeAll()
        return failure
    }

    private func removeAll(tagged tag: String) async -> String? {
        await Self.failure { () throws(DiskCacheError) in try await cache.removeAll(tagged: tag) }
    }

    /// Returns the reason of the error of an operation; nil without one.
    private static func failure(_ operation: () async throws(DiskCacheError) -> Void) async -> String? {
        do throws(DiskCacheError) {
            try await operation()
            return nil
        } catch {
            return error.reason
        }
    }
}

extension Data {
    /// Returns a part of the body, counted from its first byte; nil if the body has another length.
    fileprivate func part(_ range: Range<Int64>, of length: Int64) -> Data? {
        guard Int64(count) == length else { return nil }
        return self[startIndex + Int(range.lowerBound)..<startIndex + Int(range.upperBound)]
    }
}
