#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Knows which of two responses was requested later, so that an older one never takes the place of a newer one.
///
/// Requests end, and responses are written, in any order. The order of the requests counts, and not the clock, which
/// can be set back and has the same millisecond for several.
struct StoringOrder: Sendable {
    /// The responses that take each other's place.
    private struct Subject: Hashable {
        let key: CacheKey
        let credentials: String?
        let selections: Set<VarySelection>

        init(_ entry: CacheEntry) {
            key = entry.key
            credentials = entry.properties.credentials
            selections = Set(entry.properties.selections)
        }
    }

    private var latest: [Subject: UInt64] = [:]
    /// The number below which a request is too old to be compared.
    private var floor: UInt64 = 0

    /// The greatest number of responses that are known.
    static let limit = 8_192

    /// Records that the response to a request is known: it is stored, confirms a stored one, or is not stored itself
    /// and shows that earlier ones are outdated. Returns false, and records nothing, if a response is known whose
    /// request was sent later than the one with this number.
    @discardableResult
    mutating func recordIfLatest(_ entry: CacheEntry, sent number: UInt64) -> Bool {
        let subject = Subject(entry)
        guard number >= latest[subject] ?? floor else { return false }
        latest[subject] = number
        forgetEarliest()
        return true
    }

    /// Forgets the earlier half of the responses if there are too many.
    private mutating func forgetEarliest() {
        guard latest.count > Self.limit else { return }
        let numbers = latest.values.sorted()
        floor = max(floor, numbers[numbers.count / 2])
        latest = latest.filter { [floor] in $0.value > floor }
    }

    /// Returns whether no response is known whose request was sent later than the one with this number.
    func isLatest(_ entry: CacheEntry, sent number: UInt64) -> Bool {
        number >= latest[Subject(entry)] ?? floor
    }
}

/// The responses that have arrived and are being written, so that a look-up finds them at once, and not the ones that
/// they outdate. A large body cannot be read before its end: such a response hides the others, and a request waits for
/// it.
struct PendingWrites: Sendable {
    private struct Write: Sendable {
        let entry: CacheEntry
        /// The body; nil for one that goes to the disk while it arrives.
        let body: Data?
        let replaced: Set<UInt64>
        /// The number of the request.
        let sent: UInt64
        /// Whether the response is not to be found any more.
        var isRemoved = false
    }

    private var writes: [CacheKey: [Write]] = [:]
    private var keys: [UInt64: CacheKey] = [:]
    /// The number of writes that have ended, in buckets of keys.
    private var ends = [UInt64](repeating: 0, count: bucketCount)

    private static let bucketCount = 64

    var isEmpty: Bool { keys.isEmpty }

    /// Begins a write. It ends with `end(_:)`.
    ///
    /// - Parameter sent: The number of the request.
    mutating func begin(_ entry: CacheEntry, body: Data?, replacing: [CacheEntry], sent: UInt64) {
        let key = SearchRules.storageKey(of: entry)
        keys[entry.id] = key
        writes[key, default: []].append(
            Write(entry: entry, body: body, replaced: Set(replacing.map(\.id)), sent: sent))
        writes[key]?.sort { $0.sent < $1.sent }
    }

    /// Ends the write of an entry: it is stored, or given up.
    mutating func end(_ id: UInt64) {
        guard let key = keys.removeValue(forKey: id) else { return }
        ends[Self.bucket(of: key)] &+= 1
        writes[key]?.removeAll { $0.entry.id == id }
        if writes[key]?.isEmpty == true { writes[key] = nil }
    }

    /// Removes an entry before it is stored.
    mutating func remove(_ id: UInt64) {
        guard let key = keys[id], let place = writes[key]?.firstIndex(where: { $0.entry.id == id }) else { return }
        writes[key]?[place].isRemoved = true
    }

    /// Returns whether an entry was removed while it is being written.
    func isRemoved(_ id: UInt64) -> Bool {
        keys[id].flatMap { writes[$0] }?.contains { $0.entry.id == id && $0.isRemoved } ?? false
    }

    /// Returns a number that changes when a write of a key ends, and seldom otherwise.
    func endCount(of key: CacheKey) -> UInt64 { ends[Self.bucket(of: key)] }

    private static func bucket(of key: CacheKey) -> Int { Int(UInt(bitPattern: key.hashValue) % UInt(bucketCount)) }

    /// Returns whether a response of a key is being written.
    func contains(_ key: CacheKey) -> Bool { writes[key] != nil }

    /// Returns the stored entries of a key as they will be after the writes.
    ///
    /// - Parameter isStorable: Returns whether an entry is stored whose request has this number.
    func applied(
        to stored: [CacheEntry], of key: CacheKey, isStorable: (CacheEntry, UInt64) -> Bool
    ) -> [CacheEntry] {
        guard let writes = writes[key] else { return stored }
        var entries = stored
        for write in writes where isStorable(write.entry, write.sent) {
            entries.removeAll { other in
                other.id == write.entry.id || write.replaced.contains(other.id) || write.entry.supersedes(other)
            }
            if !write.isRemoved, write.body != nil { entries.append(write.entry) }
        }
        return entries
    }

    /// Returns the body of an entry that is being written; nil for another one.
    func body(of id: UInt64) -> Data? {
        guard let key = keys[id] else { return nil }
        return writes[key]?.first { $0.entry.id == id && !$0.isRemoved }?.body
    }
}
