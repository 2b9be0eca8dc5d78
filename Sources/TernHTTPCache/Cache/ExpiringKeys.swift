/// Keys that are known for a while: of responses that could not be stored, and of those that are not to be refreshed.
/// Pure.
struct ExpiringKeys<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let start: CacheTime
        let length: Duration

        /// An entry that begins in the future is that of a clock that was set back since.
        func isCurrent(at now: CacheTime) -> Bool { start <= now && now.since(start) < length }
    }

    private var entries: [Key: Entry] = [:]

    /// The greatest number of keys that are known. Of more, the one that was added first is forgotten.
    static var limit: Int { 1_024 }

    mutating func add(_ key: Key, for length: Duration, at now: CacheTime) {
        if entries.count >= Self.limit, entries[key] == nil {
            entries = entries.filter { $0.value.isCurrent(at: now) }
            if entries.count >= Self.limit, let oldest = entries.min(by: { $0.value.start < $1.value.start }) {
                entries[oldest.key] = nil
            }
        }
        entries[key] = Entry(start: now, length: length)
    }

    mutating func remove(_ key: Key) { if !entries.isEmpty { entries[key] = nil } }

    func contains(_ key: Key, at now: CacheTime) -> Bool {
        entries.isEmpty ? false : entries[key]?.isCurrent(at: now) ?? false
    }
}
