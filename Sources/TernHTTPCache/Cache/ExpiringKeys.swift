import TernConcurrency

/// Keys that are known for a while: of responses that could not be stored, and of those that are not to be refreshed.
/// Pure.
struct ExpiringKeys<Key: Hashable & Sendable>: Sendable {
    private struct Entry: Sendable {
        let start: CacheTime
        let length: Duration
        /// The place of the entry in the order.
        let number: UInt64

        /// An entry that begins in the future is that of a clock that was set back since.
        func isCurrent(at now: CacheTime) -> Bool { start <= now && now.since(start) < length }
    }

    /// A key in the order in which keys were first added.
    private struct Place: Sendable {
        let key: Key
        let number: UInt64
    }

    private var entries: [Key: Entry] = [:]
    /// The places of the entries, and of entries that were removed since.
    private var order = FIFO<Place>()
    private var lastNumber: UInt64 = 0

    /// The greatest number of keys that are known. Of more, the one that was added first is forgotten.
    static var limit: Int { 1_024 }

    mutating func add(_ key: Key, for length: Duration, at now: CacheTime) {
        if let known = entries[key] {
            entries[key] = Entry(start: now, length: length, number: known.number)
            return
        }
        lastNumber += 1
        entries[key] = Entry(start: now, length: length, number: lastNumber)
        order.append(Place(key: key, number: lastNumber))
        if order.count > 2 * Self.limit {
            order.removeAll { [entries] in entries[$0.key]?.number != $0.number }
        }
        while entries.count > Self.limit, let first = order.popFirst() {
            if entries[first.key]?.number == first.number { entries[first.key] = nil }
        }
    }

    mutating func remove(_ key: Key) { if !entries.isEmpty { entries[key] = nil } }

    func contains(_ key: Key, at now: CacheTime) -> Bool {
        entries.isEmpty ? false : entries[key]?.isCurrent(at: now) ?? false
    }
}
