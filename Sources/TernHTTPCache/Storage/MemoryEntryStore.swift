import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps stored responses in memory, within the limits of a `MemoryCache`.
///
/// Look-ups are synchronous. Changes of one record exclude each other by a lock.
final class MemoryEntryStore: EntryStore {
    private struct State {
        var log = InvalidationLog()
        var order = StoringOrder()
        var search = SearchRules()
        /// The trust policies of all entries so far.
        var trusts: Set<String> = [""]
    }

    private let records: MemoryCache<CacheKey, CacheRecord>
    /// Held for each change. The memory cache calls no closure meanwhile, because nobody reads its stream of evictions.
    private let state = Lock(State())
    let entryLimit: Int

    init(_ configuration: MemoryCacheConfiguration, entryLimit: Int) {
        records = MemoryCache(configuration) { $0.cost }
        self.entryLimit = entryLimit
    }

    var generation: UInt64 { state.withLock { $0.log.generation } }

    func beginRequest() -> UInt64 { state.withLock { $0.log.beginRequest() } }

    func isValid(_ entry: CacheEntry, since generation: UInt64) -> Bool {
        state.withLock { $0.log.allows(entry, since: generation) }
    }

    func outdateEarlier(than entry: CacheEntry, generation: UInt64) {
        state.withLock { _ = $0.order.recordIfLatest(entry, sent: generation) }
    }

    /// The number of records.
    var count: Int { records.count }

    func entriesNow(for key: CacheKey) -> [CacheEntry]? { found(for: key) }

    /// Returns the entries of a URL, all of which are in memory.
    func found(for key: CacheKey) -> [CacheEntry] {
        let keys = state.withLock { $0.search.keys(for: key) }
        return keys.flatMap { records.value(for: $0)?.entries ?? [] }
    }

    func bodyNow(of entry: CacheEntry, range: Range<Int64>) -> Data? {
        guard case .inline(let data)? = records.value(for: SearchRules.storageKey(of: entry))?.item(entry.id)?.body,
            range.lowerBound >= 0, range.upperBound <= Int64(data.count)
        else { return nil }
        let start = data.startIndex
        return data[start + Int(range.lowerBound)..<start + Int(range.upperBound)]
    }

    func entries(for key: CacheKey) async -> [CacheEntry] { found(for: key) }

    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data? { bodyNow(of: entry, range: range) }

    @discardableResult
    func insert(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) async -> Bool {
        insertNow(entry, body: body, replacing: replacing, generation: generation) ?? false
    }

    @discardableResult
    func insertNow(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) -> Bool? {
        guard body.count <= entryLimit, Int64(body.count) == entry.properties.storedLength else { return false }
        let key = SearchRules.storageKey(of: entry)
        return state.withLock { state in
            let replacing = replacing.filter { state.order.isLatest($0, sent: generation) }
            guard state.log.allows(entry, since: generation), state.order.recordIfLatest(entry, sent: generation)
            else {
                // The newer response outdates them all the same.
                removeLocked(replacing)
                return false
            }
            removeLocked(replacing.filter { SearchRules.storageKey(of: $0) != key })
            var record = records.value(for: key) ?? CacheRecord()
            _ = record.insert(
                CacheRecord.Item(entry: entry, body: .inline(body)), replacing: replacing.map(\.id))
            _ = state.search.add(entry)
            state.trusts.insert(entry.key.trust)
            return records.insert(record, for: key)
        }
    }

    func keys() async -> [CacheKey] { records.keys }

    func entries(at key: CacheKey) async -> [CacheEntry] { records.value(for: key)?.entries ?? [] }

    func bodyWriter(for entry: CacheEntry) -> (any BodyWriter)? { nil }

    func update(_ entries: [CacheEntry], generation: UInt64) async { updateNow(entries, generation: generation) }

    func updateNow(_ entries: [CacheEntry], generation: UInt64) {
        state.withLock { state in
            for entry in entries {
                let key = SearchRules.storageKey(of: entry)
                guard var record = records.value(for: key), record.item(entry.id) != nil,
                    state.order.recordIfLatest(entry, sent: generation)
                else { continue }
                record.update([entry])
                records.insert(record, for: key)
            }
        }
    }

    func remove(_ entries: [CacheEntry]) async { removeNow(entries) }

    @discardableResult
    func removeNow(_ entries: [CacheEntry]) -> Bool {
        state.withLock { _ in removeLocked(entries) }
        return true
    }

    private func removeLocked(_ entries: [CacheEntry]) {
        for entry in entries {
            let key = SearchRules.storageKey(of: entry)
            guard var record = records.value(for: key) else { continue }
            record.remove([entry.id])
            if record.isEmpty { records.remove(key) } else { records.insert(record, for: key) }
        }
    }

    @discardableResult
    func invalidate(_ invalidation: CacheInvalidation) async -> String? {
        invalidateNow(invalidation)
        return nil
    }

    func acceptsRule(of entry: CacheEntry) -> Bool { state.withLock { $0.search.accepts(entry) } }

    func invalidateNow(_ invalidation: CacheInvalidation) {
        state.withLock { state in
            state.log.record(invalidation)
            for key in invalidation.keys {
                // Under each trust policy, it is the response to the same URL.
                for trust in state.trusts {
                    for method in ["GET", "HEAD"] {
                        let key = key.with(partition: key.partition, trust: trust).with(method: method)
                        for key in state.search.keys(for: key) { records.remove(key) }
                    }
                }
            }
        }
        guard let own = invalidation.keys.first, !invalidation.groups.isEmpty else { return }
        let groups = Set(invalidation.groups)
        // Groups belong to an origin (RFC 9875 §2).
        let keys = records.keys.filter { $0.origin == own.origin && $0.partition == own.partition }
        for key in keys {
            state.withLock { _ in
                guard let record = records.value(for: key) else { return }
                removeLocked(record.entries.filter { !groups.isDisjoint(with: $0.groups) })
            }
        }
    }

    @discardableResult
    func removeAll(partition: String) async -> String? {
        // Under the lock, so that no change writes a record back that it read before.
        state.withLock { state in
            state.log.recordAll()
            for key in records.keys where key.partition == partition { records.remove(key) }
        }
        return nil
    }

    @discardableResult
    func removeAll() async -> String? {
        state.withLock { state in
            state.log.recordAll()
            records.removeAll()
        }
        return nil
    }
}
