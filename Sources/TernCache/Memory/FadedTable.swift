/// The values that were evicted and may still be in use elsewhere, held by finders. Pure: finders are run by the caller,
/// under no lock.
@usableFromInline
struct FadedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline
    struct Entry: Sendable {
        @usableFromInline let finder: InUse<Value>.Finder
        @usableFromInline let cost: Int
        @usableFromInline let deadline: UInt64
        /// Tells this entry from a later one of the same key.
        @usableFromInline let ticket: UInt64
    }

    @usableFromInline let isEnabled: Bool
    @usableFromInline private(set) var entries: [Key: Entry] = [:]
    private var lastTicket: UInt64 = 0
    /// The number of entries at which the dead ones are worth a search: twice what was alive after the last one.
    @usableFromInline private(set) var threshold = 64

    init(isEnabled: Bool) {
        self.isEnabled = isEnabled
    }

    /// Whether so many came since the last sweep that the next one costs each of them a constant share.
    @inlinable var wantsSweep: Bool { entries.count >= threshold }

    /// Remembers the evicted value of a key that is not in the table: a key is held or faded, never both.
    @usableFromInline
    mutating func add(_ key: Key, _ finder: @escaping InUse<Value>.Finder, cost: Int, deadline: UInt64) {
        lastTicket += 1
        entries[key] = Entry(finder: finder, cost: cost, deadline: deadline, ticket: lastTicket)
    }

    /// Forgets a key whose value was replaced or removed.
    @usableFromInline
    mutating func remove(_ key: Key) -> Entry? {
        entries.isEmpty ? nil : entries.removeValue(forKey: key)
    }

    /// Forgets this very entry; nil if another has taken its place.
    mutating func remove(_ key: Key, ticket: UInt64) -> Entry? {
        guard entries[key]?.ticket == ticket else { return nil }
        return entries.removeValue(forKey: key)
    }

    /// Forgets the entries whose values are gone, and sets the next threshold.
    mutating func sweep(_ dead: [(key: Key, ticket: UInt64)]) -> [Entry] {
        let removed = dead.compactMap { remove($0.key, ticket: $0.ticket) }
        threshold = max(64, entries.count * 2)
        return removed
    }
}
