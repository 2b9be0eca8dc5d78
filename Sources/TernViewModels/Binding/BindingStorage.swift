/// What is bound to one view. Held by the view itself, or by the table.
@MainActor
final class BindingStorage {
    private var slots = SlotMap<any BindingContent>()
    private var values: [SlotKey: any Sendable] = [:]
    /// The table that holds this storage, and where; nil when the view itself does.
    private let home: (table: WeakTable, view: ObjectIdentifier)?

    struct WeakTable {
        weak var table: BindingTable?
    }

    init() { home = nil }

    init(in table: BindingTable, for view: ObjectIdentifier) {
        home = (WeakTable(table: table), view)
    }

    deinit {
        for content in slots.all { content.viewIsGone() }
    }

    var isEmpty: Bool { slots.isEmpty && values.isEmpty }

    /// Whoever is displaced is told after the slot has its new content: what it calls then finds that one.
    func set(_ content: any BindingContent, in key: SlotKey) -> UInt64 {
        let generation = Generations.next()
        let displaced = slots.set(content, generation, in: key)
        for content in displaced { content.slotWasLost(.replaced) }
        return generation
    }

    func add(_ content: any BindingContent, in key: SlotKey) -> UInt64 {
        let generation = Generations.next()
        slots.add(content, generation, in: key)
        return generation
    }

    func contents(of key: SlotKey) -> [any BindingContent] { slots.contents(of: key) }
    func newest(of key: SlotKey) -> (any BindingContent)? { slots.newest(of: key) }
    func holds(_ generation: UInt64, in key: SlotKey) -> Bool { slots.holds(generation, in: key) }

    func cancel(_ key: SlotKey) {
        let contents = slots.removeAll(in: key)
        for content in contents { content.slotWasLost(.cancelled) }
        leaveIfEmpty()
    }

    func cancelAll() {
        let contents = slots.removeAll()
        for content in contents { content.slotWasLost(.cancelled) }
        leaveIfEmpty()
    }

    func forget(_ key: SlotKey) {
        _ = slots.removeAll(in: key)
        leaveIfEmpty()
    }

    func remove(_ generation: UInt64, in key: SlotKey) {
        guard slots.remove(generation, in: key) != nil else { return }
        leaveIfEmpty()
    }

    func value(of key: SlotKey) -> (any Sendable)? { values[key] }

    func setValue(_ value: (any Sendable)?, of key: SlotKey) {
        values[key] = value
        leaveIfEmpty()
    }

    /// The view is gone, and the table has let go of this storage.
    func abandon() {
        for content in slots.removeAll() { content.viewIsGone() }
        values = [:]
    }

    /// A content has found its view gone: the table looks for others that are.
    func viewWasGone() { home?.table.table?.sweep() }

    private func leaveIfEmpty() {
        guard isEmpty, let home else { return }
        home.table.table?.remove(self, of: home.view)
    }
}

/// The numbers of contents.
@MainActor
private enum Generations {
    private static var last: UInt64 = 0

    static func next() -> UInt64 {
        last += 1
        return last
    }
}
