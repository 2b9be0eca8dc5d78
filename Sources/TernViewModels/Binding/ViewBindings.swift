/// The bindings of one view, in slots: bindings, loads, and values that view models keep for the view.
///
/// The extensions of the view models use it; use it to write your own. It is a small value, and copies refer to the
/// same slots.
///
/// ```swift
/// let registration = view.bindings.set(load, for: .image)  // notifies the displaced content
/// // … later, when a result arrives:
/// guard registration.isCurrent else { return }             // replaced, cancelled, or the view was released
/// registration.remove()                                    // at the end: removes this content only
/// ```
@MainActor
public struct ViewBindings {
    private enum Location {
        case stored(BindingStorage)
        case table(BindingTable, WeakView)
    }

    private struct WeakView {
        weak var view: AnyObject?
    }

    private let location: Location

    /// Creates bindings for a view that holds them in a stored property. They end with the view.
    public init() { location = .stored(BindingStorage()) }

    /// Creates bindings that lie in a table, by default that of the process.
    package init(of view: AnyObject, in table: BindingTable = .shared) {
        location = .table(table, WeakView(view: view))
    }

    /// A Boolean value that indicates whether the view has no contents and no values.
    public var isEmpty: Bool { existing?.isEmpty ?? true }

    private var existing: BindingStorage? {
        switch location {
        case .stored(let storage): storage
        case .table(let table, let weak): weak.view.flatMap { table.existing(of: $0) }
        }
    }

    /// The storage, created in the table if needed; nil if the view was released.
    private var storage: BindingStorage? {
        switch location {
        case .stored(let storage): storage
        case .table(let table, let weak): weak.view.map { table.storage(of: $0) }
        }
    }

    // MARK: Slots

    /// Assigns a slot to a content. After that, and before this call returns, the displaced contents get
    /// ``BindingContent/didLeaveSlot(_:)``.
    @discardableResult
    public func set<Content: BindingContent>(_ content: Content, for key: BindingKey<Content>) -> Registration {
        register(content, for: key) { $0.set(content, in: key.slot) }
    }

    /// Adds a content to a slot that may hold several.
    @discardableResult
    public func add<Content: BindingContent>(_ content: Content, for key: BindingKey<Content>) -> Registration {
        register(content, for: key) { $0.add(content, in: key.slot) }
    }

    private func register<Content: BindingContent>(
        _ content: Content, for key: BindingKey<Content>, insert: (BindingStorage) -> UInt64
    ) -> Registration {
        guard let storage else {
            content.viewWasReleased()
            return Registration(storage: nil, key: key.slot, generation: 0)
        }
        return Registration(storage: storage, key: key.slot, generation: insert(storage))
    }

    /// The content of a slot, or the newest of several; nil for an empty slot.
    public subscript<Content: BindingContent>(_ key: BindingKey<Content>) -> Content? {
        existing?.newest(of: key.slot) as? Content
    }

    /// Returns all contents of a slot, oldest first.
    public func contents<Content: BindingContent>(of key: BindingKey<Content>) -> [Content] {
        existing?.contents(of: key.slot).compactMap { $0 as? Content } ?? []
    }

    /// Empties a slot and notifies its contents.
    public func cancel<Content: BindingContent>(_ key: BindingKey<Content>) { existing?.cancel(key.slot) }

    /// Empties a slot without notifying its contents. They continue, but are no longer current.
    public func remove<Content: BindingContent>(_ key: BindingKey<Content>) { existing?.remove(key.slot) }

    /// Empties all slots and notifies their contents. Values stay.
    public func cancelAll() { existing?.cancelAll() }

    // MARK: Values

    /// A value that a view model keeps for the view, such as a setting; nil, the default, for none. The value is kept
    /// until it is set to nil or the view is released.
    public subscript<Value: Sendable>(value key: BindingKey<Value>) -> Value? {
        get { existing?.value(of: key.slot) as? Value }
        nonmutating set {
            let storage = newValue == nil ? existing : self.storage
            storage?.setValue(newValue, of: key.slot)
        }
    }
}

extension ViewBindings {
    /// The place of a content in its slot; it distinguishes the content from earlier and later ones.
    @MainActor
    public struct Registration {
        fileprivate weak var storage: BindingStorage?
        fileprivate let key: SlotKey
        /// The number of the content, unique in this process; 0 if the view had already been released.
        public let generation: UInt64

        fileprivate init(storage: BindingStorage?, key: SlotKey, generation: UInt64) {
            self.storage = storage
            self.key = key
            self.generation = generation
        }

        /// A Boolean value that indicates whether the content is still in its slot: it was not replaced, cancelled or
        /// removed, and the view is not known to be released.
        public var isCurrent: Bool { storage?.holds(generation, in: key) ?? false }

        /// Removes the content from its slot without notifying it. Other contents of the slot stay.
        public func remove() { storage?.remove(generation, in: key) }

        /// Sweeps the table, because the content found its view released. Views are often released together, as with a
        /// list that is closed; the contents of all of them end now.
        func sweepReleasedViews() { storage?.sweepReleasedViews() }
    }
}
