import CGtk

extension Peer {
    /// The room that a widget has at least, in GTK's pixels.
    public func setMinimumSize(width: Int, height: Int) {
        unsafe gtk_widget_set_size_request(widget, gint(width), gint(height))
    }

    /// Takes the room that is left.
    public func expand(vertically: Bool = true) {
        unsafe gtk_widget_set_hexpand(widget, 1)
        if vertically { unsafe gtk_widget_set_vexpand(widget, 1) }
    }

    /// Room around the widget.
    public func setMargin(_ pixels: Int) {
        unsafe gtk_widget_set_margin_start(widget, gint(pixels))
        unsafe gtk_widget_set_margin_end(widget, gint(pixels))
        unsafe gtk_widget_set_margin_top(widget, gint(pixels))
        unsafe gtk_widget_set_margin_bottom(widget, gint(pixels))
    }

    /// Keeps its own size, in the middle of the room that it is given.
    public func keepSize() {
        unsafe gtk_widget_set_halign(widget, GTK_ALIGN_CENTER)
        centerVertically()
    }

    /// Keeps its own height, in the middle of the room that it is given.
    public func centerVertically() { unsafe gtk_widget_set_valign(widget, GTK_ALIGN_CENTER) }

    /// Whether the widget reacts; true at first.
    public var isEnabled: Bool {
        get { unsafe gtk_widget_get_sensitive(widget) != 0 }
        set { unsafe gtk_widget_set_sensitive(widget, newValue ? 1 : 0) }
    }

    /// Adds a class of the style sheet.
    public func addStyle(_ name: String) { unsafe gtk_widget_add_css_class(widget, name) }

    /// How many of the screen's pixels are one of GTK's.
    public var scaleFactor: Int { unsafe Int(gtk_widget_get_scale_factor(widget)) }

    /// Where the widget stands in another that holds it; nil while one of them has no place.
    public func frame(in other: Peer) -> Rectangle? {
        var bounds = graphene_rect_t()
        guard unsafe gtk_widget_get_mapped(widget) != 0,
            unsafe gtk_widget_compute_bounds(widget, other.widget, &bounds) != 0
        else { return nil }
        return Rectangle(
            x: Int(bounds.origin.x), y: Int(bounds.origin.y), width: Int(bounds.size.width),
            height: Int(bounds.size.height))
    }
}

/// A place in GTK's pixels, from the upper left.
public struct Rectangle: Sendable, Hashable {
    /// From the left.
    public let x: Int
    /// From the top.
    public let y: Int
    /// To the right.
    public let width: Int
    /// Downwards.
    public let height: Int

    /// A place by its corner and its size.
    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }

    /// Whether all of another one lies within.
    public func contains(_ other: Rectangle) -> Bool {
        other.x >= x && other.y >= y && other.x + other.width <= x + width && other.y + other.height <= y + height
    }

    /// Whether the two share any room.
    public func meets(_ other: Rectangle) -> Bool {
        other.x < x + width && x < other.x + other.width && other.y < y + height && y < other.y + other.height
    }
}
