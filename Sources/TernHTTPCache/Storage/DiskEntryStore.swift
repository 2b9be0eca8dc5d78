import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps stored responses on the disk, by the rules of a `DiskCache`: acknowledged entries survive a kill, the limits hold
/// at all times, and damaged values are not found.
///
/// The heads of a key are one value. A small body is a part of it, and a larger body is a value of its own, so that the
/// update of a head does not write it again. A head whose body was evicted is a miss. The actor excludes changes of the
/// same key; look-ups do not wait for it.
actor DiskEntryStore: EntryStore {
    private let cache: DiskCache
    /// The greatest size of a body in bytes.
    private let entryLimit: Int
    private let shared = SharedState()
    /// The changes that wait for a change of the same key.
    private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]

    /// The greatest size in bytes of a body that is stored beside its head.
    private static let inlineLimit = 8 << 10

    init(_ cache: DiskCache, entryLimit: Int) {
        self.cache = cache
        self.entryLimit = entryLimit
    }

    nonisolated var generation: UInt64 { shared.state.withLock { $0.log.generation } }

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
    }

    private static func tags(of entries: [CacheEntry], partition: String) -> [String] {
        var tags = [partitionTag(partition)]
        for entry in entries {
            for group in entry.groups where tags.count < 63 {
                let tag = groupTag(group, of: entry.key)
                if !tags.contains(tag) { tags.append(tag) }
            }
        }
        return tags
    }

    // MARK: Reading

    func entries(for key: CacheKey) async -> [CacheEntry] { await Self.entries(for: key, cache, shared) }

    private static func entries(for key: CacheKey, _ cache: DiskCache, _ shared: SharedState) async -> [CacheEntry] {
        var entries: [CacheEntry] = []
        await readRules(of: key, cache, shared)
        for key in shared.state.withLock({ $0.search.keys(for: key) }) {
            entries += await record(key, cache).entries
        }
        return entries
    }

    /// Reads the `No-Vary-Search` rules of a path that an earlier process stored.
    private static func readRules(of key: CacheKey, _ cache: DiskCache, _ shared: SharedState) async {
        let name = rulesKey(key)
        guard cache.contains(name), !shared.state.withLock({ $0.readRules.contains(name) }) else { return }
        // A failure costs hits alone.
        guard let data = try? await cache.value(for: name), let record = CacheRecord(data) else { return }
        shared.state.withLock { state in
            if state.readRules.count >= 4_096 { state.readRules = [] }
            state.readRules.insert(name)
            for entry in record.entries { _ = state.search.add(entry) }
        }
    }

    private static func record(_ key: CacheKey, _ cache: DiskCache) async -> CacheRecord {
        let name = recordKey(key)
        // Most look-ups of unknown URLs end here, in memory.
        guard cache.contains(name) else { return CacheRecord() }
        // A record that cannot be read is a miss.
        guard let data = try? await cache.value(for: name), let record = CacheRecord(data) else { return CacheRecord() }
        // A record of another key would answer for a wrong URL.
        let isOwn = record.entries.allSatisfy { SearchRules.storageKey(of: $0) == key }
        return isOwn ? record : CacheRecord()
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

    func entries(at key: CacheKey) async -> [CacheEntry] { await Self.record(key, cache).entries }

    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data? {
        let length = entry.properties.storedLength
        guard range.lowerBound >= 0, range.upperBound <= length else { return nil }
        let key = SearchRules.storageKey(of: entry)
        guard let item = await Self.record(key, cache).item(entry.id) else { return nil }
        let whole: Data?
        switch item.body {
        case .inline(let data): whole = data
        // A body that cannot be read is a miss, and its head is removed below.
        case .separate: whole = try? await cache.mappedValue(for: Self.bodyKey(entry.id))
        }
        guard let whole, Int64(whole.count) == length else {
            await remove([entry])
            return nil
        }
        let start = whole.startIndex
        return whole[start + Int(range.lowerBound)..<start + Int(range.upperBound)]
    }

    // MARK: Changes

    @discardableResult
    func insert(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) async -> Bool {
        guard body.count <= entryLimit, Int64(body.count) == entry.properties.storedLength else { return false }
        let key = SearchRules.storageKey(of: entry)
        await remove(replacing.filter { SearchRules.storageKey(of: $0) != key })
        let isInline = body.count <= Self.inlineLimit
        let bodyTags = Self.tags(of: [entry], partition: entry.key.partition)
        do throws(DiskCacheError) {
            if !isInline { try await cache.insert(body, for: Self.bodyKey(entry.id), tags: bodyTags) }
        } catch {
            return false
        }
        let item = CacheRecord.Item(entry: entry, body: isInline ? .inline(body) : .separate)
        let isStored = await change(key) { [shared] record in
            guard shared.state.withLock({ $0.log.allows(entry, since: generation) }) else { return nil }
            return record.insert(item, replacing: replacing.map(\.id))
        }
        if isStored { await storeRule(of: entry) } else if !isInline { await removeBody(entry.id) }
        return isStored
    }

    /// Stores the rule of an entry for later processes. The record has no body of use.
    private func storeRule(of entry: CacheEntry) async {
        guard shared.state.withLock({ $0.search.add(entry) }) else { return }
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

    func update(_ entries: [CacheEntry]) async {
        for entry in entries {
            await change(SearchRules.storageKey(of: entry)) { record in
                guard record.item(entry.id) != nil else { return nil }
                record.update([entry])
                return []
            }
        }
    }

    func remove(_ entries: [CacheEntry]) async {
        for entry in entries {
            await change(SearchRules.storageKey(of: entry)) { record in
                record.item(entry.id) == nil ? nil : record.remove([entry.id])
            }
        }
    }

    /// Changes a record while no other change of its key runs. Without a result of `change`, nothing is written. Returns
    /// whether the record was written.
    @discardableResult
    private func change(_ key: CacheKey, _ change: (inout CacheRecord) -> [CacheEntry]?) async -> Bool {
        let name = Self.recordKey(key)
        await lock(name)
        defer { unlock(name) }
        var record = await Self.record(key, cache)
        guard let removed = change(&record) else { return false }
        var isWritten = true
        do throws(DiskCacheError) {
            if record.isEmpty {
                try await cache.remove(name)
            } else {
                let tags = Self.tags(of: record.entries, under: key)
                try await cache.insert(record.encoded(), for: name, tags: tags)
            }
        } catch {
            isWritten = false
        }
        for entry in removed { await removeBody(entry.id) }
        return isWritten
    }

    private func removeBody(_ id: UInt64) async {
        // A body without a head is never read, and is evicted like any other.
        try? await cache.remove(Self.bodyKey(id))
    }

    private func lock(_ name: String) async {
        guard waiting[name] != nil else {
            waiting[name] = []
            return
        }
        await withCheckedContinuation { waiting[name]?.append($0) }
    }

    private func unlock(_ name: String) {
        guard var queue = waiting[name], !queue.isEmpty else {
            waiting[name] = nil
            return
        }
        let next = queue.removeFirst()
        waiting[name] = queue
        next.resume()
    }

    // MARK: Invalidation

    func invalidate(_ invalidation: CacheInvalidation) async {
        shared.state.withLock { $0.log.record(invalidation) }
        for key in invalidation.keys {
            await Self.readRules(of: key, cache, shared)
            for method in ["GET", "HEAD"] {
                for key in shared.state.withLock({ $0.search.keys(for: key.with(method: method)) })
                where cache.contains(Self.recordKey(key)) {
                    await change(key) { $0.remove($0.entries.map(\.id)) }
                }
            }
        }
        guard let own = invalidation.keys.first else { return }
        for group in invalidation.groups { await removeAll(tagged: Self.groupTag(group, of: own)) }
    }

    func removeAll(partition: String) async {
        shared.state.withLock { $0.log.recordAll() }
        await removeAll(tagged: Self.partitionTag(partition))
    }

    func removeAll() async {
        shared.state.withLock { $0.log.recordAll() }
        // As below.
        try? await cache.removeAll()
    }

    private func removeAll(tagged tag: String) async {
        // The cache reports a failing disk as an event, and its next call throws.
        try? await cache.removeAll(tagged: tag)
    }
}

/// The state that look-ups read without waiting for the actor.
private final class SharedState: Sendable {
    struct Values {
        var log = InvalidationLog()
        var search = SearchRules()
        /// The names of the records of rules that were read.
        var readRules: Set<String> = []
    }

    let state = Lock(Values())
}
