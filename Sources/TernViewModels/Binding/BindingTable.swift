/// The bindings of all views that do not hold them themselves, by the view's identity.
///
/// An identity is an address, and addresses are used again: beside each storage stands a weak reference to its view, which
/// every look-up checks. Nothing tells when a view ends, so the table is swept as it changes, once in about as many changes
/// as there are entries, and as soon as anything that was bound to a view finds it gone.
@MainActor
package final class BindingTable {
    private struct Entry {
        weak var view: AnyObject?
        let storage: BindingStorage
    }

    /// The table of the process.
    package static let shared = BindingTable()

    private var entries: [ObjectIdentifier: Entry] = [:]
    private var changes = 0
    /// How many changes may come before the next sweep: as many as there were entries after the last one.
    private var allowance = 64

    /// An empty table: for a test of its own.
    package init() {}

    /// How many views have an entry; among them may be some that have ended.
    package var count: Int { entries.count }

    func existing(of view: AnyObject) -> BindingStorage? {
        let identity = ObjectIdentifier(view)
        guard let entry = entries[identity] else { return nil }
        if entry.view === view { return entry.storage }
        // Another view had this address.
        entries[identity] = nil
        entry.storage.abandon()
        return nil
    }

    func storage(of view: AnyObject) -> BindingStorage {
        if let storage = existing(of: view) { return storage }
        let identity = ObjectIdentifier(view)
        let storage = BindingStorage(in: self, for: identity)
        entries[identity] = Entry(view: view, storage: storage)
        noteChange()
        return storage
    }

    /// Removes an entry that holds nothing any more; that of a later view at the same address stays.
    func remove(_ storage: BindingStorage, of identity: ObjectIdentifier) {
        guard entries[identity]?.storage === storage else { return }
        entries[identity] = nil
        noteChange()
    }

    /// Lets go of all views that have ended.
    package func sweep() {
        let ended = entries.filter { $0.value.view == nil }
        for identity in ended.keys { entries[identity] = nil }
        (changes, allowance) = (0, max(64, entries.count))
        for entry in ended.values { entry.storage.abandon() }
    }

    private func noteChange() {
        changes += 1
        if changes > allowance { sweep() }
    }
}
