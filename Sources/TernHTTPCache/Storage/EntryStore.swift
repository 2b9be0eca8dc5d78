import Tern
import TernCache
import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps stored responses by key. Every failure of a store is a miss, so that a damaged or full disk never fails a
/// request.
protocol EntryStore: Sendable {
    /// Returns the entries of a URL and of the URLs that are equivalent to it by `No-Vary-Search`.
    func entries(for key: CacheKey) async -> [CacheEntry]

    /// Returns the same as `entries(for:)` if it is in memory; nil if it must be read.
    func entriesNow(for key: CacheKey) -> [CacheEntry]?

    /// Returns the same as `body(of:range:)` if it is in memory; nil if it is not, or not any more.
    func bodyNow(of entry: CacheEntry, range: Range<Int64>) -> Data?

    /// Returns stored bytes of an entry, counted from the first stored byte; nil if they are gone or damaged, in which
    /// case the entry is removed.
    func body(of entry: CacheEntry, range: Range<Int64>) async -> Data?

    /// Stores an entry with its body in place of others. Returns whether it is stored.
    ///
    /// Nothing is stored if the key was invalidated after `generation`, or if the response to a later request is known.
    /// Entries that a later request has confirmed are not replaced.
    @discardableResult
    func insert(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) async -> Bool

    /// Does the same as `insert(_:body:replacing:generation:)` in memory; nil if the entry must be written, in which
    /// case nothing is done.
    @discardableResult
    func insertNow(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) -> Bool?

    /// Returns the keys of stored records, in any order. A URL of more than about 900 bytes may be left out.
    func keys() async -> [CacheKey]

    /// Returns the entries that are stored under a key of ``keys()``.
    func entries(at key: CacheKey) async -> [CacheEntry]

    /// Returns a writer for the body of an entry that arrives in pieces; nil if the store takes whole bodies alone.
    func bodyWriter(for entry: CacheEntry) -> (any BodyWriter)?

    /// The greatest size of a body in bytes.
    var entryLimit: Int { get }

    /// Replaces the heads of entries; their bodies stay. Entries that are gone are ignored, and so are those of which a
    /// later request than the one of `generation` has told more.
    func update(_ entries: [CacheEntry], generation: UInt64) async

    /// Lets look-ups find a response that has arrived and is about to be inserted, in place of those that it outdates.
    /// With a nil body, they find none of them. The store of small bodies in memory needs no such time.
    ///
    /// `endInsert(_:)` follows the insert.
    func beginInsert(_ entry: CacheEntry, body: Data?, replacing: [CacheEntry], generation: UInt64)

    /// Ends the time that `beginInsert` began. Only the first call for an entry has an effect.
    func endInsert(_ entry: CacheEntry)

    /// Returns whether a response of a key is about to be inserted.
    func isInserting(_ key: CacheKey) -> Bool

    /// Returns a number that changes when an insert for a key ends: a look-up before that may not have found its entry.
    func endedInserts(for key: CacheKey) -> UInt64

    /// Records that a response outdates those to earlier requests although it is not stored itself.
    func outdateEarlier(than entry: CacheEntry, generation: UInt64)

    /// Returns whether an entry was not invalidated after `generation`.
    func isValid(_ entry: CacheEntry, since generation: UInt64) -> Bool

    /// Removes entries.
    func remove(_ entries: [CacheEntry]) async

    /// Does the same as `remove(_:)` in memory. Returns false if that takes time, in which case nothing is done.
    @discardableResult
    func removeNow(_ entries: [CacheEntry]) -> Bool

    /// Removes all entries of URLs and of groups.
    ///
    /// - Returns: The reason why entries may be left; nil if none is.
    @discardableResult
    func invalidate(_ invalidation: CacheInvalidation) async -> String?

    /// Removes all entries of a user. Returns the reason why entries may be left; nil if none is.
    @discardableResult
    func removeAll(partition: String) async -> String?

    /// Removes everything. Returns the reason why entries may be left; nil if none is.
    @discardableResult
    func removeAll() async -> String?

    /// Returns whether look-ups find an entry by its `No-Vary-Search` rule. The number of rules is limited.
    func acceptsRule(of entry: CacheEntry) -> Bool

    /// The number of requests and invalidations so far. A response whose request was sent before an invalidation of its
    /// URL is not stored.
    var generation: UInt64 { get }

    /// Begins a request, and returns its number, which is greater than all before.
    func beginRequest() -> UInt64
}

// A store on the disk needs the first two not, and one in memory the others.
extension EntryStore {
    func insertNow(_ entry: CacheEntry, body: Data, replacing: [CacheEntry], generation: UInt64) -> Bool? { nil }
    func removeNow(_ entries: [CacheEntry]) -> Bool { false }

    func beginInsert(_ entry: CacheEntry, body: Data?, replacing: [CacheEntry], generation: UInt64) {}
    func endInsert(_ entry: CacheEntry) {}
    func isInserting(_ key: CacheKey) -> Bool { false }

    func endedInserts(for key: CacheKey) -> UInt64 { 0 }
}

/// Writes the body of one entry in pieces, for one caller. Nothing of it can be read before `commit`.
protocol BodyWriter: Sendable {
    /// Adds bytes, and returns once the system has them. Returns the reason why the body cannot be stored; nil if it
    /// can.
    func write(_ bytes: Data) async -> CacheReason?

    /// Stores the body, and then the head that names it, in place of others. Returns whether both are stored.
    func commit(_ entry: CacheEntry, replacing: [CacheEntry], generation: UInt64) async -> Bool

    /// Removes the bytes that were written.
    func abandon() async
}

/// Writes a body into a file of its own. The body is committed before the head that names it, so that a kill in between
/// leaves a body that nothing names.
final class DiskBodyWriter: BodyWriter {
    private let store: DiskEntryStore
    private let entry: CacheEntry
    /// The writer of the file, from the first bytes on.
    private let writer = Lock<DiskCache.Writer?>(nil)

    init(_ store: DiskEntryStore, _ entry: CacheEntry) {
        self.store = store
        self.entry = entry
    }

    func write(_ bytes: Data) async -> CacheReason? {
        do throws(DiskCacheError) {
            try await opened().write(bytes)
            return nil
        } catch {
            return error.kind == .tooLarge ? .bodyTooLarge : .storeFailed
        }
    }

    private func opened() async throws(DiskCacheError) -> DiskCache.Writer {
        if let writer = writer.withLock({ $0 }) { return writer }
        let new = try await store.fileWriter(for: entry)
        writer.withLock { $0 = new }
        return new
    }

    func commit(_ entry: CacheEntry, replacing: [CacheEntry], generation: UInt64) async -> Bool {
        do throws(DiskCacheError) {
            try await opened().commit()
        } catch {
            await store.remove(replacing)
            return false
        }
        return await store.insertHead(entry, .separate, replacing: replacing, generation: generation)
    }

    func abandon() async { await writer.withLock { $0.take() }?.abandon() }
}

/// Counts the requests and the invalidations, and knows the latest invalidations, so that a response that was requested
/// before an invalidation is not stored after it.
struct InvalidationLog: Sendable {
    private enum Subject: Hashable {
        case url(CacheKey)
        case group(String, origin: String, partition: String)
    }

    private(set) var generation: UInt64 = 0
    private var recent: [Subject: UInt64] = [:]
    /// The generation before which nothing is stored, because the log does not go back further.
    private var floor: UInt64 = 0

    /// The greatest number of URLs and groups that are known.
    private static let limit = 1_024

    /// Begins a request. Returns its number.
    mutating func beginRequest() -> UInt64 {
        generation += 1
        return generation
    }

    mutating func record(_ invalidation: CacheInvalidation) {
        guard let own = invalidation.keys.first else { return }
        let groups = invalidation.groups.map { Subject.group($0, origin: own.origin, partition: own.partition) }
        let subjects = invalidation.keys.map { Subject.url(Self.subject($0)) } + groups
        if recent.count + subjects.count > Self.limit { recordAll() } else { generation += 1 }
        for subject in subjects { recent[subject] = generation }
    }

    /// An invalidation of a URL counts under each trust policy.
    private static func subject(_ key: CacheKey) -> CacheKey {
        key.with(partition: key.partition, trust: "").with(method: "GET")
    }

    /// Records an invalidation of everything.
    mutating func recordAll() {
        generation += 1
        recent = [:]
        floor = generation
    }

    /// Returns whether a response may be stored whose request was sent at a generation.
    ///
    /// An invalidation counts for all URLs that are equivalent by the response's own rule, because it removes all their
    /// entries. That rule need not have been known before.
    func allows(_ entry: CacheEntry, since sent: UInt64) -> Bool {
        guard sent >= floor else { return false }
        if recent.isEmpty || sent == generation { return true }
        let key = entry.key
        let groups = entry.groups.map { Subject.group($0, origin: key.origin, partition: key.partition) }
        guard (groups + [.url(Self.subject(key))]).allSatisfy({ sent >= recent[$0] ?? 0 }) else { return false }
        guard entry.search != .exact else { return true }
        return !recent.contains { subject, generation in
            guard generation > sent, case .url(let other) = subject else { return false }
            return Self.subject(key).isEquivalent(to: other, under: entry.search)
        }
    }
}

/// The rules of `No-Vary-Search` that responses of a path have, so that a look-up finds the entries of equivalent URLs.
///
/// An entry with a rule is stored under the form of its URL that all equivalent URLs share. A rule that is known stays,
/// so that an invalidation reaches its entries. Beyond the limits, responses are stored without their rules.
struct SearchRules: Sendable {
    private var rules: [CacheKey: [NoVarySearch]] = [:]

    /// The greatest number of rules of a path, of paths, and of bytes of a rule.
    private static let limits = (rules: 4, paths: 1_024, bytes: 1_024)

    /// Returns the key under which an entry is stored.
    static func storageKey(of entry: CacheEntry) -> CacheKey {
        entry.search == .exact ? entry.key : searchKey(entry.key, entry.search)
    }

    /// Returns the key of all URLs that are equivalent under a rule. It differs from the key of every URL, because a
    /// path has no fragment.
    private static func searchKey(_ key: CacheKey, _ rule: NoVarySearch) -> CacheKey {
        let canonical = key.canonical(rule)
        return CacheKey(
            method: key.method, origin: key.origin, path: key.path + "#" + rule.text, query: canonical.query,
            trust: key.trust, partition: key.partition)
    }

    private static func base(_ key: CacheKey) -> CacheKey {
        CacheKey(
            method: "", origin: key.origin, path: key.path, query: nil, trust: key.trust, partition: key.partition)
    }

    /// Returns all keys under which entries for a URL can be stored.
    func keys(for key: CacheKey) -> [CacheKey] {
        if rules.isEmpty { return [key] }
        return [key] + (rules[Self.base(key)] ?? []).map { Self.searchKey(key, $0) }
    }

    /// Returns whether the rule of an entry is known, or can be added.
    func accepts(_ entry: CacheEntry) -> Bool {
        guard entry.search != .exact else { return true }
        let known = rules[Self.base(entry.key)]
        if let known, known.contains(entry.search) { return true }
        guard entry.search.text.utf8.count <= Self.limits.bytes else { return false }
        return known.map { $0.count < Self.limits.rules } ?? (rules.count < Self.limits.paths)
    }

    /// Adds the rule of an entry if it is accepted. Returns whether it was added.
    mutating func add(_ entry: CacheEntry) -> Bool {
        let base = Self.base(entry.key)
        guard entry.search != .exact, accepts(entry), rules[base]?.contains(entry.search) != true else { return false }
        rules[base, default: []].append(entry.search)
        return true
    }
}
