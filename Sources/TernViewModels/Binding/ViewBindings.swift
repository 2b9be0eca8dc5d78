/// What is bound to one view, in slots: bindings, loads, and what else the view's models keep for it.
///
/// The view models' extensions use it, and so does whoever writes another one. A small value; copies mean the same slots.
///
/// ```swift
/// let receipt = view.bindings.set(load, for: .image)      // whoever was in the slot is told that it was lost
/// // … later, when a result has come:
/// guard receipt.isCurrent else { return }                 // rebound, cancelled, or the view is gone
/// receipt.remove()                                        // the end: its own entry, and no other's
/// ```
@MainActor
public struct ViewBindings {
    private enum Home {
        case stored(BindingStorage)
        case table(BindingTable, WeakView)
    }

    private struct WeakView {
        weak var view: AnyObject?
    }

    private let home: Home

    /// Slots for a view that holds them itself, in a stored property. They end with the view.
    public init() { home = .stored(BindingStorage()) }

    /// The slots of a view in a table: that of the process.
    package init(of view: AnyObject, in table: BindingTable = .shared) {
        home = .table(table, WeakView(view: view))
    }

    /// Whether nothing is bound, and no value kept.
    public var isEmpty: Bool { existing?.isEmpty ?? true }

    private var existing: BindingStorage? {
        switch home {
        case .stored(let storage): storage
        case .table(let table, let weak): weak.view.flatMap { table.existing(of: $0) }
        }
    }

    /// nil when the view is gone.
    private var made: BindingStorage? {
        switch home {
        case .stored(let storage): storage
        case .table(let table, let weak): weak.view.map { table.storage(of: $0) }
        }
    }

    // MARK: Slots

    /// Gives a slot to a content. Those who had it are told ``BindingContent/slotWasLost(_:)``, in this call, once the slot
    /// is the new one's.
    @discardableResult
    public func set<Content: BindingContent>(_ content: Content, for key: BindingKey<Content>) -> Receipt {
        receipt(content, key) { $0.set(content, in: key.slot) }
    }

    /// Adds a content to a slot that may hold several.
    @discardableResult
    public func add<Content: BindingContent>(_ content: Content, for key: BindingKey<Content>) -> Receipt {
        receipt(content, key) { $0.add(content, in: key.slot) }
    }

    private func receipt<Content: BindingContent>(
        _ content: Content, _ key: BindingKey<Content>, _ enter: (BindingStorage) -> UInt64
    ) -> Receipt {
        guard let storage = made else {
            content.viewIsGone()
            return Receipt(storage: nil, key: key.slot, generation: 0)
        }
        return Receipt(storage: storage, key: key.slot, generation: enter(storage))
    }

    /// The content of a slot, of several the one that came last; nil for an empty one.
    public subscript<Content: BindingContent>(_ key: BindingKey<Content>) -> Content? {
        existing?.newest(of: key.slot) as? Content
    }

    /// All contents of a slot, oldest first.
    public func contents<Content: BindingContent>(of key: BindingKey<Content>) -> [Content] {
        existing?.contents(of: key.slot).compactMap { $0 as? Content } ?? []
    }

    /// Empties a slot and tells those who were in it.
    public func cancel<Content: BindingContent>(_ key: BindingKey<Content>) { existing?.cancel(key.slot) }

    /// Empties a slot without telling anybody: what was in it goes on, and is not current any more.
    public func remove<Content: BindingContent>(_ key: BindingKey<Content>) { existing?.forget(key.slot) }

    /// Empties all slots and tells those who were in them. Values stay.
    public func cancelAll() { existing?.cancelAll() }

    // MARK: Values

    /// What a view model keeps for the view beside its slots, such as a setting; nil, the default, for nothing. It is kept
    /// until it is set to nil, or the view is gone.
    public subscript<Value: Sendable>(value key: BindingKey<Value>) -> Value? {
        get { existing?.value(of: key.slot) as? Value }
        nonmutating set {
            let storage = newValue == nil ? existing : made
            storage?.setValue(newValue, of: key.slot)
        }
    }
}

extension ViewBindings {
    /// A content's place in its slot: what tells it from those before and after it.
    @MainActor
    public struct Receipt {
        fileprivate weak var storage: BindingStorage?
        fileprivate let key: SlotKey
        /// The number of the content, never used again in this process; 0 when the view was gone already.
        public let generation: UInt64

        fileprivate init(storage: BindingStorage?, key: SlotKey, generation: UInt64) {
            self.storage = storage
            self.key = key
            self.generation = generation
        }

        /// Whether the content is still in its slot: not replaced, cancelled or removed, and the view still there as far
        /// as is known.
        public var isCurrent: Bool { storage?.holds(generation, in: key) ?? false }

        /// Takes the content out of its slot, without telling it. Whoever else is in the slot stays.
        public func remove() { storage?.remove(generation, in: key) }

        /// The content has found its view gone. Where one has ended others have, as with a list that is closed: what is
        /// bound to any of them ends now.
        func viewWasGone() { storage?.viewWasGone() }
    }
}
