/// What is bound to one view, by slot. Pure: whoever is displaced or removed is returned, for the caller to end.
///
/// Every content has a generation, a number that is never used twice in the process: it tells a content from the one that
/// was in its slot before, and an end removes that generation alone.
struct SlotMap<Content: Sendable>: Sendable {
    private struct Entry: Sendable {
        let generation: UInt64
        let content: Content
    }

    private var slots: [SlotKey: [Entry]] = [:]

    var isEmpty: Bool { slots.isEmpty }

    /// All contents, in no order.
    var all: [Content] { slots.values.flatMap { $0.map(\.content) } }

    /// The contents of a slot, oldest first.
    func contents(of key: SlotKey) -> [Content] { slots[key]?.map(\.content) ?? [] }

    /// The content that came last.
    func newest(of key: SlotKey) -> Content? { slots[key]?.last?.content }

    func holds(_ generation: UInt64, in key: SlotKey) -> Bool {
        slots[key]?.contains { $0.generation == generation } ?? false
    }

    /// Gives the slot to a content. Those who had it.
    mutating func set(_ content: Content, _ generation: UInt64, in key: SlotKey) -> [Content] {
        let displaced = contents(of: key)
        slots[key] = [Entry(generation: generation, content: content)]
        return displaced
    }

    /// Adds a content to those that are in the slot.
    mutating func add(_ content: Content, _ generation: UInt64, in key: SlotKey) {
        slots[key, default: []].append(Entry(generation: generation, content: content))
    }

    /// Empties a slot.
    mutating func removeAll(in key: SlotKey) -> [Content] {
        slots.removeValue(forKey: key)?.map(\.content) ?? []
    }

    /// Removes one generation, and whoever else is in its slot stays.
    mutating func remove(_ generation: UInt64, in key: SlotKey) -> Content? {
        guard var entries = slots[key], let index = entries.firstIndex(where: { $0.generation == generation }) else {
            return nil
        }
        let entry = entries.remove(at: index)
        slots[key] = entries.isEmpty ? nil : entries
        return entry.content
    }

    /// Empties all slots.
    mutating func removeAll() -> [Content] {
        defer { slots = [:] }
        return all
    }
}
