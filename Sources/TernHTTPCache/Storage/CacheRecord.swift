import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The entries that are stored under one key: the variants of a URL, with their bodies or the places of them.
struct CacheRecord: Sendable {
    /// The place of a body.
    enum Body: Sendable, Hashable {
        /// In the record.
        case inline(Data)
        /// In a value of its own, named by the number of the entry.
        case separate
    }

    /// An entry and the place of its body.
    struct Item: Sendable {
        var entry: CacheEntry
        var body: Body
    }

    private(set) var items: [Item] = []

    /// The greatest number of entries under one key. The oldest leave first.
    static let limit = 16

    init(_ items: [Item] = []) { self.items = items }

    var entries: [CacheEntry] { items.map(\.entry) }
    var isEmpty: Bool { items.isEmpty }

    /// Returns the item of an entry; nil if the entry is not stored any more.
    func item(_ id: UInt64) -> Item? { items.first { $0.entry.id == id } }

    /// Adds an entry in place of those with the given numbers, and of the oldest if there are too many. Returns the
    /// entries whose separate bodies are not used any more.
    mutating func insert(_ item: Item, replacing replaced: [UInt64]) -> [CacheEntry] {
        // A response to an equal request at the same time is not among the known ones.
        let superseded = items.filter { item.entry.supersedes($0.entry) }.map(\.entry.id)
        var removed = remove(replaced + superseded + [item.entry.id])
        items.append(item)
        while items.count > Self.limit, let oldest = items.min(by: { $0.entry.isOlder(than: $1.entry) }) {
            removed += remove([oldest.entry.id])
        }
        // The body of the same number is the new one.
        return removed.filter { $0.id != item.entry.id }
    }

    /// Replaces entries by those of the same numbers. Entries that are not stored any more are ignored.
    mutating func update(_ entries: [CacheEntry]) {
        for entry in entries {
            if let place = items.firstIndex(where: { $0.entry.id == entry.id }) { items[place].entry = entry }
        }
    }

    /// Removes entries. Returns those whose bodies were separate.
    @discardableResult
    mutating func remove(_ ids: [UInt64]) -> [CacheEntry] {
        let removed = items.filter { ids.contains($0.entry.id) }
        items.removeAll { ids.contains($0.entry.id) }
        return removed.filter { $0.body == .separate }.map(\.entry)
    }

    /// The record as it is read from the disk, where cookies are not written.
    var withoutCookies: CacheRecord {
        guard items.contains(where: { $0.entry.headers.contains { StoredFields.isCookie($0.name) } }) else {
            return self
        }
        return CacheRecord(
            items.map { item in
                let entry = item.entry.changing { properties in
                    properties.headers = Headers(properties.headers.filter { !StoredFields.isCookie($0.name) })
                }
                return Item(entry: entry, body: item.body)
            })
    }

    /// The number of bytes that the record takes in memory, roughly.
    var cost: Int {
        items.reduce(64) { sum, item in
            let heads = item.entry.headers.reduce(512) { $0 + $1.name.utf8.count + $1.value.utf8.count + 48 }
            guard case .inline(let data) = item.body else { return sum + heads }
            return sum + heads + data.count
        }
    }
}

extension CacheEntry {
    /// Returns whether the entry, which arrived later, answers each request that another one answers.
    func supersedes(_ other: CacheEntry) -> Bool {
        guard key == other.key, properties.credentials == other.properties.credentials, isWhole else { return false }
        // A response without `Vary` has one selection, without fields.
        let selections = Set(properties.selections)
        return !selections.isEmpty && selections == Set(other.properties.selections)
    }
}

extension CacheEntry.Properties {
    /// The number of bytes of the stored body.
    var storedLength: Int64 {
        switch content {
        case .whole(let count): count
        case .part(let range, _): range.count
        }
    }
}
