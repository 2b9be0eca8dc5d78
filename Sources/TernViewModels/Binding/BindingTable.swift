/// Holds the bindings of all views that do not hold them themselves, indexed by the view's identity.
///
/// An identity is an address, and addresses are reused. Each entry therefore has a weak reference to its view, which
/// every look-up checks. Nothing reports the release of a view, so the table is swept after about as many changes as it
/// has entries, and when a content finds its view released.
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
    /// The number of changes until the next sweep; the number of entries after the last sweep, and at least 64.
    private var sweepInterval = 64

    /// Creates an empty table for a test.
    package init() {}

    /// The number of entries, including those of views that were released since the last sweep.
    package var count: Int { entries.count }

    func existing(of view: AnyObject) -> BindingStorage? {
        let identity = ObjectIdentifier(view)
        guard let entry = entries[identity] else { return nil }
        if entry.view === view { return entry.storage }
        // The entry belongs to a released view that had the same address.
        entries[identity] = nil
        entry.storage.releaseContents()
        return nil
    }

    func storage(of view: AnyObject) -> BindingStorage {
        if let storage = existing(of: view) { return storage }
        let identity = ObjectIdentifier(view)
        let storage = BindingStorage(in: self, for: identity)
        entries[identity] = Entry(view: view, storage: storage)
        countChange()
        return storage
    }

    /// Removes an entry whose storage is empty. The entry of a later view at the same address stays.
    func remove(_ storage: BindingStorage, of identity: ObjectIdentifier) {
        guard entries[identity]?.storage === storage else { return }
        entries[identity] = nil
        countChange()
    }

    /// Removes the entries of all released views.
    package func sweep() {
        let ended = entries.filter { $0.value.view == nil }
        for identity in ended.keys { entries[identity] = nil }
        (changes, sweepInterval) = (0, max(64, entries.count))
        for entry in ended.values { entry.storage.releaseContents() }
    }

    private func countChange() {
        changes += 1
        if changes > sweepInterval { sweep() }
    }
}
