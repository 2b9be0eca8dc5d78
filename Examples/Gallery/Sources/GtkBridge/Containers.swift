import CGtk

/// A window of the program. Shown by `present()`; ends when it is closed.
@safe
public final class Window: Peer {
    /// A window with a title and a size in GTK's pixels.
    public init(_ title: String, width: Int, height: Int) {
        unsafe super.init(MainLoop.current.flatMap { unsafe gtk_application_window_new($0) })
        unsafe gtk_window_set_title(window, title)
        unsafe gtk_window_set_default_size(window, gint(width), gint(height))
    }

    private var window: UnsafeMutablePointer<GtkWindow>? { unsafe cast(to: GtkWindow.self) }

    /// What the window holds.
    public func setContent(_ content: Peer) { unsafe gtk_window_set_child(window, content.widget) }

    /// Shows the window.
    public func present() { unsafe gtk_window_present(window) }

    /// Where a widget stands on the screen of an X server without a window manager, which puts each window into the corner.
    public func screenFrame(of other: Peer) -> Rectangle? {
        guard let native = unsafe gtk_widget_get_native(widget), let frame = other.frame(in: self) else { return nil }
        var (x, y) = (0.0, 0.0)
        unsafe gtk_native_get_surface_transform(native, &x, &y)
        return Rectangle(x: frame.x + Int(x), y: frame.y + Int(y), width: frame.width, height: frame.height)
    }

    /// Closes the window, and with the last one the program.
    public func close() { unsafe gtk_window_destroy(window) }
}

/// Widgets beside each other, or one above the other.
@safe
open class Stack: Peer {
    /// Whether from left to right or from the top.
    public enum Direction: Sendable {
        /// From left to right.
        case row
        /// From the top.
        case column
    }

    /// An empty one.
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

    /// Takes a widget out, which ends with it unless somebody else holds it.
    public func remove(_ child: Peer) { unsafe gtk_box_remove(cast(to: GtkBox.self), child.widget) }
}

/// A widget that is larger than its room, and can be moved in it.
@safe
public final class ScrollView: Peer {
    /// A view that scrolls up and down.
    public init(_ content: Peer) {
        unsafe super.init(gtk_scrolled_window_new())
        unsafe gtk_scrolled_window_set_policy(opaque, GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC)
        unsafe gtk_scrolled_window_set_child(opaque, content.widget)
    }

    private var adjustment: UnsafeMutablePointer<GtkAdjustment>? { unsafe gtk_scrolled_window_get_vadjustment(opaque) }

    /// How far it has been scrolled down, in GTK's pixels.
    public var offset: Double {
        get { unsafe gtk_adjustment_get_value(adjustment) }
        set { unsafe gtk_adjustment_set_value(adjustment, newValue) }
    }

    /// The largest offset.
    public var maximumOffset: Double {
        unsafe gtk_adjustment_get_upper(adjustment) - gtk_adjustment_get_page_size(adjustment)
    }

    /// Calls the handler with each turn of the wheel, downwards positive, before the view scrolls by it.
    public func onWheel(_ handler: @escaping @MainActor (_ steps: Double) -> Void) {
        let controller = unsafe gtk_event_controller_scroll_new(GTK_EVENT_CONTROLLER_SCROLL_VERTICAL)
        guard let controller = unsafe controller else { return }
        unsafe gtk_event_controller_set_propagation_phase(controller, GTK_PHASE_CAPTURE)
        unsafe connect(UnsafeMutableRawPointer(controller), "scroll") { arguments in
            handler(arguments.double(1))
            return false
        }
        unsafe gtk_widget_add_controller(widget, controller)
    }
}

/// A widget that can be folded away.
@safe
public final class Drawer: Peer {
    /// Closed, with its content.
    public init(_ content: Peer) {
        unsafe super.init(gtk_revealer_new())
        unsafe gtk_revealer_set_child(opaque, content.widget)
    }

    /// Whether it is open, or opens; false at first.
    public var isOpen: Bool {
        get { unsafe gtk_revealer_get_reveal_child(opaque) != 0 }
        set { unsafe gtk_revealer_set_reveal_child(opaque, newValue ? 1 : 0) }
    }
}
