/// Holds the bindings of one view. The view itself or the table owns the storage.
@MainActor
final class BindingStorage {
    private var slots = SlotMap<any BindingContent>()
    private var values: [SlotKey: any Sendable] = [:]
    /// The table that holds this storage and the key of its entry; nil if the view owns the storage.
    private let owner: (table: WeakTable, view: ObjectIdentifier)?

    struct WeakTable {
        weak var table: BindingTable?
    }

    init() { owner = nil }

    init(in table: BindingTable, for view: ObjectIdentifier) {
        owner = (WeakTable(table: table), view)
    }

    deinit {
        for content in slots.all { content.viewWasReleased() }
    }

    var isEmpty: Bool { slots.isEmpty && values.isEmpty }

    /// Stores the content in the slot, and then notifies the displaced contents. Code that a notification calls
    /// therefore finds the new content.
    func set(_ content: any BindingContent, in key: SlotKey) -> UInt64 {
        let generation = Self.nextGeneration()
        let displaced = slots.set(content, generation: generation, in: key)
        for content in displaced { content.didLeaveSlot(.replaced) }
        return generation
    }

    func add(_ content: any BindingContent, in key: SlotKey) -> UInt64 {
        let generation = Self.nextGeneration()
        slots.add(content, generation: generation, in: key)
        return generation
    }

    func contents(of key: SlotKey) -> [any BindingContent] { slots.contents(of: key) }
    func newest(of key: SlotKey) -> (any BindingContent)? { slots.newest(of: key) }
    func holds(_ generation: UInt64, in key: SlotKey) -> Bool { slots.holds(generation, in: key) }

    func cancel(_ key: SlotKey) {
        let contents = slots.removeAll(in: key)
        for content in contents { content.didLeaveSlot(.cancelled) }
        removeFromTableIfEmpty()
    }

    func cancelAll() {
        let contents = slots.removeAll()
        for content in contents { content.didLeaveSlot(.cancelled) }
        removeFromTableIfEmpty()
    }

    func remove(_ key: SlotKey) {
        _ = slots.removeAll(in: key)
        removeFromTableIfEmpty()
    }

    func remove(_ generation: UInt64, in key: SlotKey) {
        guard slots.remove(generation, in: key) != nil else { return }
        removeFromTableIfEmpty()
    }

    func value(of key: SlotKey) -> (any Sendable)? { values[key] }

    func setValue(_ value: (any Sendable)?, of key: SlotKey) {
        values[key] = value
        removeFromTableIfEmpty()
    }

    /// Releases the contents after the view was released and the table has removed this storage.
    func releaseContents() {
        for content in slots.removeAll() { content.viewWasReleased() }
        values = [:]
    }

    /// Sweeps the table, because a content found its view released.
    func sweepReleasedViews() { owner?.table.table?.sweep() }

    private static var lastGeneration: UInt64 = 0

    /// Returns a number that identifies a content, unique in the process.
    private static func nextGeneration() -> UInt64 {
        lastGeneration += 1
        return lastGeneration
    }

    private func removeFromTableIfEmpty() {
        guard isEmpty, let owner else { return }
        owner.table.table?.remove(self, of: owner.view)
    }
}

/// Maps slots to their contents. Pure: a method that displaces or removes contents returns them, and the caller ends
/// them.
///
/// Each content has a generation, a number that is unique in the process. It distinguishes a content from earlier
/// contents of its slot, so that an ending content removes only itself.
struct SlotMap<Content: Sendable>: Sendable {
    private struct Entry: Sendable {
        let generation: UInt64
        let content: Content
    }

    private var slots: [SlotKey: [Entry]] = [:]

    var isEmpty: Bool { slots.isEmpty }

    /// All contents, in no particular order.
    var all: [Content] { slots.values.flatMap { $0.map(\.content) } }

    /// Returns the contents of a slot, oldest first.
    func contents(of key: SlotKey) -> [Content] { slots[key]?.map(\.content) ?? [] }

    /// Returns the content that was added last.
    func newest(of key: SlotKey) -> Content? { slots[key]?.last?.content }

    func holds(_ generation: UInt64, in key: SlotKey) -> Bool {
        slots[key]?.contains { $0.generation == generation } ?? false
    }

    /// Assigns the slot to a content and returns the displaced contents.
    mutating func set(_ content: Content, generation: UInt64, in key: SlotKey) -> [Content] {
        let displaced = contents(of: key)
        slots[key] = [Entry(generation: generation, content: content)]
        return displaced
    }

    /// Adds a content to the slot without displacing others.
    mutating func add(_ content: Content, generation: UInt64, in key: SlotKey) {
        slots[key, default: []].append(Entry(generation: generation, content: content))
    }

    /// Empties a slot and returns its contents.
    mutating func removeAll(in key: SlotKey) -> [Content] {
        slots.removeValue(forKey: key)?.map(\.content) ?? []
    }

    /// Removes the content with a generation and keeps the other contents of the slot.
    mutating func remove(_ generation: UInt64, in key: SlotKey) -> Content? {
        guard var entries = slots[key], let index = entries.firstIndex(where: { $0.generation == generation }) else {
            return nil
        }
        let entry = entries.remove(at: index)
        slots[key] = entries.isEmpty ? nil : entries
        return entry.content
    }

    /// Empties all slots and returns their contents.
    mutating func removeAll() -> [Content] {
        defer { slots = [:] }
        return all
    }
}
