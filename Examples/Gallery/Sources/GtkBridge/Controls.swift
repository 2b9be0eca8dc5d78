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

/// A picture, which fills its room and keeps its proportions.
@safe
open class Picture: Peer {
    /// An empty picture.
    public init() {
        unsafe super.init(gtk_picture_new())
        unsafe gtk_picture_set_content_fit(opaque, GTK_CONTENT_FIT_COVER)
    }

    /// What is shown; nil for nothing.
    public var texture: Texture? {
        didSet { unsafe gtk_picture_set_paintable(opaque, texture?.pointer) }
    }
}

/// A bar.
@safe
public final class ProgressBar: Peer {
    /// An empty bar.
    public init() { unsafe super.init(gtk_progress_bar_new()) }

    /// How full it is, from 0 to 1.
    public var fraction: Double {
        get { unsafe gtk_progress_bar_get_fraction(opaque) }
        set { unsafe gtk_progress_bar_set_fraction(opaque, newValue) }
    }

    /// Moves a block, for a bar that cannot say how far it is.
    public func pulse() { unsafe gtk_progress_bar_pulse(opaque) }
}

/// A wheel that turns while something goes on.
@safe
public final class Spinner: Peer {
    /// One that stands.
    public init() { unsafe super.init(gtk_spinner_new()) }

    /// Whether it turns.
    public var isSpinning: Bool {
        get { unsafe gtk_spinner_get_spinning(opaque) != 0 }
        set { unsafe gtk_spinner_set_spinning(opaque, newValue ? 1 : 0) }
    }
}

/// A button.
@safe
open class Button: Peer {
    /// What the user and the program do to it.
    public struct State: OptionSet, Sendable {
        /// The states as bits.
        public let rawValue: Int

        /// States from their bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// It is being pressed.
        public static let pressed = State(rawValue: 1)
        /// It does not react.
        public static let disabled = State(rawValue: 2)
        /// The keyboard acts on it.
        public static let focused = State(rawValue: 4)
    }

    /// A button with a text.
    public init(_ text: String) { unsafe super.init(gtk_button_new_with_label(text)) }

    /// A button with any content.
    public init(content: Peer) {
        unsafe super.init(gtk_button_new())
        unsafe gtk_button_set_child(cast(to: GtkButton.self), content.widget)
    }

    /// The text.
    public var text: String {
        get { unsafe gtk_button_get_label(cast(to: GtkButton.self)).map { unsafe String(cString: $0) } ?? "" }
        set { unsafe gtk_button_set_label(cast(to: GtkButton.self), newValue) }
    }

    /// The state now. A change is told by the signal `state-flags-changed`.
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

    /// Clicks.
    public func click() { unsafe gtk_widget_activate(widget) }
}
