import CGtk

/// A window of the program. `present()` shows it; it ends when it is closed.
@safe
public final class Window: Peer {
    /// Creates a window with a title and a size in GTK's pixels.
    public init(_ title: String, width: Int, height: Int) {
        unsafe super.init(MainLoop.current.flatMap { unsafe gtk_application_window_new($0) })
        unsafe gtk_window_set_title(window, title)
        unsafe gtk_window_set_default_size(window, gint(width), gint(height))
    }

    private var window: UnsafeMutablePointer<GtkWindow>? { unsafe cast(to: GtkWindow.self) }

    /// Sets the content of the window.
    public func setContent(_ content: Peer) { unsafe gtk_window_set_child(window, content.widget) }

    /// Shows the window.
    public func present() { unsafe gtk_window_present(window) }

    /// Returns the frame of a widget on an X server without a window manager, which puts each window into the corner.
    public func screenFrame(of other: Peer) -> Rectangle? {
        guard let native = unsafe gtk_widget_get_native(widget), let frame = other.frame(in: self) else { return nil }
        var (x, y) = (0.0, 0.0)
        unsafe gtk_native_get_surface_transform(native, &x, &y)
        return Rectangle(x: frame.x + Int(x), y: frame.y + Int(y), width: frame.width, height: frame.height)
    }

    /// Closes the window; the last one ends the program.
    public func close() { unsafe gtk_window_destroy(window) }
}

/// Widgets in a row or a column.
@safe
open class Stack: Peer {
    /// The direction of a stack.
    public enum Direction: Sendable {
        /// From left to right.
        case row
        /// From top to bottom.
        case column
    }

    /// Creates an empty stack.
    public init(_ direction: Direction, spacing: Int = 0) {
        let orientation = direction == .row ? GTK_ORIENTATION_HORIZONTAL : GTK_ORIENTATION_VERTICAL
        unsafe super.init(gtk_box_new(orientation, gint(spacing)))
    }

    /// Adds a widget at the end.
    @discardableResult
    public func add(_ child: Peer) -> Self {
        unsafe gtk_box_append(cast(to: GtkBox.self), child.widget)
        return self
    }

    /// Removes a widget, which ends unless another owner holds it.
    public func remove(_ child: Peer) { unsafe gtk_box_remove(cast(to: GtkBox.self), child.widget) }
}

/// A view that scrolls content larger than itself.
@safe
public final class ScrollView: Peer {
    /// Creates a view that scrolls vertically.
    public init(_ content: Peer) {
        unsafe super.init(gtk_scrolled_window_new())
        unsafe gtk_scrolled_window_set_policy(opaque, GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC)
        unsafe gtk_scrolled_window_set_child(opaque, content.widget)
    }

    private var adjustment: UnsafeMutablePointer<GtkAdjustment>? { unsafe gtk_scrolled_window_get_vadjustment(opaque) }

    /// The vertical offset in GTK's pixels.
    public var offset: Double {
        get { unsafe gtk_adjustment_get_value(adjustment) }
        set { unsafe gtk_adjustment_set_value(adjustment, newValue) }
    }

    /// The largest offset.
    public var maximumOffset: Double {
        unsafe gtk_adjustment_get_upper(adjustment) - gtk_adjustment_get_page_size(adjustment)
    }

    /// Calls the handler for each turn of the wheel, downwards positive, before the view scrolls.
    public func onWheel(_ handler: @escaping @MainActor (_ steps: Double) -> Void) {
        let controller = unsafe gtk_event_controller_scroll_new(GTK_EVENT_CONTROLLER_SCROLL_VERTICAL)
        guard let controller = unsafe controller else { return }
        unsafe gtk_event_controller_set_propagation_phase(controller, GTK_PHASE_CAPTURE)
        unsafe connect(UnsafeMutableRawPointer(controller), signal: "scroll") { arguments in
            handler(arguments.double(1))
            return false
        }
        unsafe gtk_widget_add_controller(widget, controller)
    }
}

/// A widget that opens and closes.
@safe
public final class Drawer: Peer {
    /// Creates a closed drawer with its content.
    public init(_ content: Peer) {
        unsafe super.init(gtk_revealer_new())
        unsafe gtk_revealer_set_child(opaque, content.widget)
    }

    /// A Boolean value that indicates whether the drawer is open or opening; false by default.
    public var isOpen: Bool {
        get { unsafe gtk_revealer_get_reveal_child(opaque) != 0 }
        set { unsafe gtk_revealer_set_reveal_child(opaque, newValue ? 1 : 0) }
    }
}

/// A grid of many items in columns. GTK only creates cells near the visible ones, and reuses them while it scrolls.
@safe
public final class GridView: Peer {
    /// The number of times a cell was bound to an item.
    public private(set) var bindCount = 0

    /// Creates a grid with a number of items. An item is its number; the binder knows its meaning.
    ///
    /// - Parameters:
    ///   - make: Creates an empty cell.
    ///   - bind: Shows an item in a cell, which may have shown another one before.
    ///   - unbind: Called when a cell no longer shows its item.
    public init<Cell: Peer>(
        count: Int, columns: Int, make: @escaping @MainActor () -> Cell,
        bind: @escaping @MainActor (Cell, _ item: Int) -> Void, unbind: @escaping @MainActor (Cell) -> Void
    ) {
        let factory = unsafe gtk_signal_list_item_factory_new()
        // The grid takes ownership of the factory.
        unsafe super.init(gtk_grid_view_new(nil, factory))
        unsafe gtk_grid_view_set_min_columns(opaque, guint(columns))
        unsafe gtk_grid_view_set_max_columns(opaque, guint(columns))
        guard let object = unsafe factory.map(UnsafeMutableRawPointer.init) else { return }
        unsafe connect(object, signal: "setup") { arguments in
            unsafe gtk_list_item_set_child(arguments.object(0).map(OpaquePointer.init), make().widget)
            return false
        }
        unsafe connect(object, signal: "bind") { [weak self] arguments in
            let item = unsafe arguments.object(0).map(OpaquePointer.init)
            let cell = unsafe Peer.of(gtk_list_item_get_child(item)) as? Cell
            self?.bindCount += 1
            if let cell { unsafe bind(cell, Int(gtk_list_item_get_position(item))) }
            return false
        }
        unsafe connect(object, signal: "unbind") { arguments in
            let item = unsafe arguments.object(0).map(OpaquePointer.init)
            if let cell = unsafe Peer.of(gtk_list_item_get_child(item)) as? Cell { unbind(cell) }
            return false
        }
        setCount(count)
    }

    /// Sets the number of items; all cells are bound again.
    public func setCount(_ count: Int) {
        let items = unsafe gtk_string_list_new(nil)
        for _ in 0..<count { unsafe gtk_string_list_append(items, "") }
        // The selection takes ownership of the list, and the grid that of the selection.
        let selection = unsafe gtk_no_selection_new(items)
        unsafe gtk_grid_view_set_model(opaque, selection)
        unsafe g_object_unref(selection.map(UnsafeMutableRawPointer.init))
    }

    /// The existing cells, including those just outside the visible space.
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
