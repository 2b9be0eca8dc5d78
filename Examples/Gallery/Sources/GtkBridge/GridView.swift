import CGtk

/// Very many cells in columns, of which only those near the visible ones exist: GTK uses them again as it scrolls.
@safe
public final class GridView: Peer {
    /// How often a cell was given an item.
    public private(set) var bindCount = 0

    /// A grid of so many cells. An item is its number; what it stands for is the binder's to know.
    ///
    /// - Parameters:
    ///   - make: Makes an empty cell.
    ///   - bind: Shows an item in a cell, which may have shown another one before.
    ///   - unbind: A cell shows its item no more.
    public init<Cell: Peer>(
        count: Int, columns: Int, make: @escaping @MainActor () -> Cell,
        bind: @escaping @MainActor (Cell, _ item: Int) -> Void, unbind: @escaping @MainActor (Cell) -> Void
    ) {
        let factory = unsafe gtk_signal_list_item_factory_new()
        // The grid takes the factory over.
        unsafe super.init(gtk_grid_view_new(nil, factory))
        unsafe gtk_grid_view_set_min_columns(opaque, guint(columns))
        unsafe gtk_grid_view_set_max_columns(opaque, guint(columns))
        guard let object = unsafe factory.map(UnsafeMutableRawPointer.init) else { return }
        unsafe connect(object, "setup") { arguments in
            unsafe gtk_list_item_set_child(arguments.object(0).map(OpaquePointer.init), make().widget)
            return false
        }
        unsafe connect(object, "bind") { [weak self] arguments in
            let item = unsafe arguments.object(0).map(OpaquePointer.init)
            let cell = unsafe Peer.of(gtk_list_item_get_child(item)) as? Cell
            self?.bindCount += 1
            if let cell { unsafe bind(cell, Int(gtk_list_item_get_position(item))) }
            return false
        }
        unsafe connect(object, "unbind") { arguments in
            let item = unsafe arguments.object(0).map(OpaquePointer.init)
            if let cell = unsafe Peer.of(gtk_list_item_get_child(item)) as? Cell { unbind(cell) }
            return false
        }
        setCount(count)
    }

    /// Changes how many items there are; all are bound anew.
    public func setCount(_ count: Int) {
        let items = unsafe gtk_string_list_new(nil)
        for _ in 0..<count { unsafe gtk_string_list_append(items, "") }
        // The selection takes over the list, and the grid holds the selection.
        let selection = unsafe gtk_no_selection_new(items)
        unsafe gtk_grid_view_set_model(opaque, selection)
        unsafe g_object_unref(selection.map(UnsafeMutableRawPointer.init))
    }

    /// The cells that exist now, those just outside the visible room among them.
    public var cells: [Peer] {
        var cells: [Peer] = []
        var child = unsafe gtk_widget_get_first_child(widget)
        while let item = unsafe child {
            if let cell = unsafe Peer.of(gtk_widget_get_first_child(item)) { cells.append(cell) }
            unsafe child = gtk_widget_get_next_sibling(item)
        }
        return cells
    }
}
