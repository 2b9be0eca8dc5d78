import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// Changes of stored responses.
extension DiskEntryStore {
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
                values.log.allows(entry, since: generation) && !values.pending.isRemoved(entry.id)
                    && values.order.recordIfLatest(entry, sent: generation)
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
                guard state.values.withLock({ $0.order.recordIfLatest(entry, sent: generation) }) else { return nil }
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
