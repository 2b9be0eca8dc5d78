import CGtk

/// A line of text.
@safe
public final class Label: Peer {
    /// A label with its text.
    public init(_ text: String = "") { unsafe super.init(gtk_label_new(text)) }

    /// The text.
    public var text: String {
        get { unsafe gtk_label_get_text(opaque).map { unsafe String(cString: $0) } ?? "" }
        set { unsafe gtk_label_set_text(opaque, newValue) }
    }
}

/// An image that fills its space and keeps its proportions.
@safe
open class Picture: Peer {
    /// Creates an empty image widget.
    public init() {
        unsafe super.init(gtk_picture_new())
        unsafe gtk_picture_set_content_fit(opaque, GTK_CONTENT_FIT_COVER)
    }

    /// The shown texture; nil for none.
    public var texture: Texture? {
        didSet { unsafe gtk_picture_set_paintable(opaque, texture?.pointer) }
    }
}

/// A progress bar.
@safe
public final class ProgressBar: Peer {
    /// Creates an empty bar.
    public init() { unsafe super.init(gtk_progress_bar_new()) }

    /// The completed fraction, from 0 to 1.
    public var fraction: Double {
        get { unsafe gtk_progress_bar_get_fraction(opaque) }
        set { unsafe gtk_progress_bar_set_fraction(opaque, newValue) }
    }

    /// Moves a block, for an unknown fraction.
    public func pulse() { unsafe gtk_progress_bar_pulse(opaque) }
}

/// A spinner that turns during an activity.
@safe
public final class Spinner: Peer {
    /// Creates a spinner that does not turn.
    public init() { unsafe super.init(gtk_spinner_new()) }

    /// A Boolean value that indicates whether the spinner turns.
    public var isSpinning: Bool {
        get { unsafe gtk_spinner_get_spinning(opaque) != 0 }
        set { unsafe gtk_spinner_set_spinning(opaque, newValue ? 1 : 0) }
    }
}

/// A button.
@safe
open class Button: Peer {
    /// The states of a button.
    public struct State: OptionSet, Sendable {
        /// The states as bits.
        public let rawValue: Int

        /// Creates states from bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The user presses the button.
        public static let pressed = State(rawValue: 1)
        /// The button does not react.
        public static let disabled = State(rawValue: 2)
        /// The button has the keyboard focus.
        public static let focused = State(rawValue: 4)
    }

    /// Creates a button with a text.
    public init(_ text: String) { unsafe super.init(gtk_button_new_with_label(text)) }

    /// Creates a button with any content.
    public init(content: Peer) {
        unsafe super.init(gtk_button_new())
        unsafe gtk_button_set_child(cast(to: GtkButton.self), content.widget)
    }

    /// The text.
    public var text: String {
        get { unsafe gtk_button_get_label(cast(to: GtkButton.self)).map { unsafe String(cString: $0) } ?? "" }
        set { unsafe gtk_button_set_label(cast(to: GtkButton.self), newValue) }
    }

    /// The current state. The signal `state-flags-changed` reports a change.
    public var state: State {
        let flags = unsafe gtk_widget_get_state_flags(widget).rawValue
        var state: State = []
        if flags & GTK_STATE_FLAG_ACTIVE.rawValue != 0 { state.insert(.pressed) }
        if flags & GTK_STATE_FLAG_INSENSITIVE.rawValue != 0 { state.insert(.disabled) }
        if flags & GTK_STATE_FLAG_FOCUSED.rawValue != 0 { state.insert(.focused) }
        return state
    }

    /// Calls the handler at each click.
    public func onClick(_ handler: @escaping @MainActor () -> Void) { on("clicked") { _ in handler() } }

    /// Clicks the button.
    public func click() { unsafe gtk_widget_activate(widget) }
}

extension Peer {
    /// Draws the widget as its window's renderer shows it now; returns nil if it is hidden or awaits its layout.
    public func drawn() -> Texture? {
        guard unsafe gtk_widget_get_mapped(widget) != 0, let native = unsafe gtk_widget_get_native(widget) else {
            return nil
        }
        let paintable = unsafe gtk_widget_paintable_new(widget)
        defer { unsafe g_object_unref(UnsafeMutableRawPointer(paintable)) }
        let snapshot = unsafe gtk_snapshot_new()
        let size = unsafe (width: gtk_widget_get_width(widget), height: gtk_widget_get_height(widget))
        unsafe gdk_paintable_snapshot(paintable, snapshot, Double(size.width), Double(size.height))
        guard let node = unsafe gtk_snapshot_free_to_node(snapshot) else { return nil }
        defer { unsafe gsk_render_node_unref(node) }
        var area = graphene_rect_t()
        area.size.width = Float(size.width)
        area.size.height = Float(size.height)
        return unsafe Texture(owned: gsk_renderer_render_texture(gtk_native_get_renderer(native), node, &area))
    }

    /// Draws the widget as soon as possible; returns nil after 5 seconds.
    public func drawnSoon() async -> Texture? {
        var drawn = drawn()
        await MainLoop.wait(seconds: 5) {
            drawn = drawn ?? self.drawn()
            return drawn != nil
        }
        return drawn
    }
}

/// Pixels for GTK to draw.
@MainActor
@safe
public final class Texture {
    let pointer: OpaquePointer?

    /// Creates a texture with a copy of premultiplied RGBA pixels, rows from the top without padding. GTK keeps the
    /// copy as long as it needs, and borrowed bytes may not be kept.
    public init(width: Int, height: Int, premultiplied pixels: RawSpan) {
        let bytes = unsafe pixels.withUnsafeBytes { unsafe g_bytes_new($0.baseAddress, gsize($0.count)) }
        unsafe pointer = gdk_memory_texture_new(
            gint(width), gint(height), GDK_MEMORY_R8G8B8A8_PREMULTIPLIED, bytes, gsize(width * 4))
        unsafe g_bytes_unref(bytes)
    }

    /// Takes ownership of a texture.
    init(owned pointer: OpaquePointer?) { unsafe self.pointer = pointer }

    isolated deinit { if let pointer = unsafe pointer { unsafe g_object_unref(UnsafeMutableRawPointer(pointer)) } }

    /// The width in pixels.
    public var width: Int { unsafe Int(gdk_texture_get_width(pointer)) }
    /// The height in pixels.
    public var height: Int { unsafe Int(gdk_texture_get_height(pointer)) }

    /// Returns red, green, blue and alpha of every pixel, premultiplied.
    public func pixels() -> [UInt8] {
        let (width, height) = (width, height)
        var bytes = [UInt8](repeating: 0, count: width * height * 4)
        // GDK's format: 32 bits per pixel in the machine's byte order, alpha in the highest eight.
        unsafe bytes.withUnsafeMutableBufferPointer {
            unsafe gdk_texture_download(pointer, $0.baseAddress, gsize(width * 4))
        }
        for index in stride(from: 0, to: bytes.count, by: 4) { bytes.swapAt(index, index + 2) }
        return bytes
    }
}
