public import CGtk
import Synchronization

/// The Swift side of a widget.
///
/// The widget owns its peer, and the peer does not own the widget. There are no cycles, and a peer without another
/// owner ends with its widget. A peer that lives longer has no widget; GTK rejects calls without one, with a message.
@MainActor
@safe
open class Peer {
    /// The widget; nil after it has ended.
    @unsafe public private(set) var widget: UnsafeMutablePointer<GtkWidget>?

    /// Creates the peer of a widget. A new widget has no owner until it has a parent.
    @unsafe
    public init(_ widget: UnsafeMutablePointer<GtkWidget>?) {
        unsafe self.widget = widget
        Self.count.add(1, ordering: .relaxed)
        guard let object = unsafe object else { return }
        unsafe g_object_set_data_full(object, Self.key, Unmanaged.passRetained(self).toOpaque()) { data in
            guard let data = unsafe data else { return }
            let peer = unsafe Unmanaged<Peer>.fromOpaque(data).takeRetainedValue()
            MainActor.assumeIsolated { unsafe peer.widget = nil }
        }
    }

    deinit { Self.count.subtract(1, ordering: .relaxed) }

    /// The number of peers: 0 at the end of a program without leaks.
    public static var liveCount: Int { count.load(ordering: .relaxed) }

    private nonisolated static let count = Atomic(0)
    private nonisolated static let key = "tern-peer"

    /// Returns the peer of a widget; nil for a widget without one.
    @unsafe
    public static func of(_ widget: UnsafeMutablePointer<GtkWidget>?) -> Peer? {
        guard let object = unsafe widget.map(UnsafeMutableRawPointer.init) else { return nil }
        let data = unsafe g_object_get_data(object.assumingMemoryBound(to: GObject.self), key)
        return unsafe data.map { unsafe Unmanaged<Peer>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: The widget in C's types

    var object: UnsafeMutablePointer<GObject>? { unsafe cast(to: GObject.self) }

    /// GTK types without subclasses are opaque in Swift.
    @unsafe public var opaque: OpaquePointer? { unsafe widget.map(OpaquePointer.init) }

    /// GTK types with subclasses are structs in Swift. The cast is unchecked; the creator of the widget knows the type.
    @unsafe
    public func cast<Type>(to type: Type.Type) -> UnsafeMutablePointer<Type>? {
        unsafe widget.map { unsafe UnsafeMutableRawPointer($0).assumingMemoryBound(to: type) }
    }

    /// Calls the handler for each signal with a name, until the widget ends.
    public func on(_ signal: String, _ handler: @escaping @MainActor (SignalArguments) -> Void) {
        guard let object = unsafe widget.map(UnsafeMutableRawPointer.init) else { return }
        unsafe connect(object, signal: signal) { arguments in
            handler(arguments)
            return false
        }
    }
}

extension Peer {
    /// Sets the minimum size in GTK's pixels.
    public func setMinimumSize(width: Int, height: Int) {
        unsafe gtk_widget_set_size_request(widget, gint(width), gint(height))
    }

    /// Makes the widget take the remaining space.
    public func expand(vertically: Bool = true) {
        unsafe gtk_widget_set_hexpand(widget, 1)
        if vertically { unsafe gtk_widget_set_vexpand(widget, 1) }
    }

    /// Sets the space around the widget.
    public func setMargin(_ pixels: Int) {
        unsafe gtk_widget_set_margin_start(widget, gint(pixels))
        unsafe gtk_widget_set_margin_end(widget, gint(pixels))
        unsafe gtk_widget_set_margin_top(widget, gint(pixels))
        unsafe gtk_widget_set_margin_bottom(widget, gint(pixels))
    }

    /// Keeps the widget's own size, in the middle of its space.
    public func keepSize() {
        unsafe gtk_widget_set_halign(widget, GTK_ALIGN_CENTER)
        centerVertically()
    }

    /// Keeps the widget's own height, in the middle of its space.
    public func centerVertically() { unsafe gtk_widget_set_valign(widget, GTK_ALIGN_CENTER) }

    /// A Boolean value that indicates whether the widget reacts; true by default.
    public var isEnabled: Bool {
        get { unsafe gtk_widget_get_sensitive(widget) != 0 }
        set { unsafe gtk_widget_set_sensitive(widget, newValue ? 1 : 0) }
    }

    /// A Boolean value that indicates whether the widget is shown and takes space; true by default.
    public var isShown: Bool {
        get { unsafe gtk_widget_get_visible(widget) != 0 }
        set { unsafe gtk_widget_set_visible(widget, newValue ? 1 : 0) }
    }

    /// Adds a class of the style sheet.
    public func addStyle(_ name: String) { unsafe gtk_widget_add_css_class(widget, name) }

    /// The number of screen pixels for one of GTK's.
    public var scaleFactor: Int { unsafe Int(gtk_widget_get_scale_factor(widget)) }

    /// Returns the frame in another widget that contains this one; nil before the layout.
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

/// A rectangle in GTK's pixels, from the upper left.
public struct Rectangle: Sendable, Hashable {
    /// The distance from the left.
    public let x: Int
    /// The distance from the top.
    public let y: Int
    /// The width.
    public let width: Int
    /// The height.
    public let height: Int

    /// Creates a rectangle from its corner and its size.
    public init(x: Int, y: Int, width: Int, height: Int) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }

    /// Returns a Boolean value that indicates whether this rectangle contains another one.
    public func contains(_ other: Rectangle) -> Bool {
        other.x >= x && other.y >= y && other.x + other.width <= x + width && other.y + other.height <= y + height
    }

    /// Returns a Boolean value that indicates whether two rectangles intersect.
    public func meets(_ other: Rectangle) -> Bool {
        other.x < x + width && x < other.x + other.width && other.y < y + height && y < other.y + other.height
    }
}

/// The arguments of a signal, from 0 and without the sender. Valid only within the handler.
@safe
public struct SignalArguments {
    private let values: UnsafePointer<GValue>?
    /// The number of arguments.
    public let count: Int

    init(_ values: UnsafePointer<GValue>?, count: Int) {
        unsafe self.values = values
        self.count = count
    }

    private func value(_ index: Int) -> UnsafePointer<GValue>? {
        guard index >= 0, index < count else { return nil }
        return unsafe values?.advanced(by: index + 1)
    }

    /// Returns an object; nil if there is none at this index.
    @unsafe
    public func object(_ index: Int) -> UnsafeMutableRawPointer? {
        unsafe value(index).flatMap { unsafe g_value_get_object($0) }
    }
    /// Returns a number; 0 if there is none at this index.
    public func double(_ index: Int) -> Double { unsafe value(index).map { unsafe g_value_get_double($0) } ?? 0 }
    /// Returns the value of an enumeration; 0 if there is none at this index.
    public func choice(_ index: Int) -> Int { unsafe Int(value(index).map { unsafe g_value_get_enum($0) } ?? 0) }
}

/// A handler that its C closure owns.
private final class SignalHandler: Sendable {
    let body: @MainActor (SignalArguments) -> Bool

    init(_ body: @escaping @MainActor (SignalArguments) -> Bool) { self.body = body }
}

/// Calls the handler at each emission of an object's signal. The object owns the handler, which may therefore hold the
/// object's peer. The return value answers signals that expect a Bool.
@MainActor
@unsafe
public func connect(
    _ object: UnsafeMutableRawPointer, signal: String, handler: @escaping @MainActor (SignalArguments) -> Bool
) {
    let data = unsafe Unmanaged.passRetained(SignalHandler(handler)).toOpaque()
    let closure = unsafe g_closure_new_simple(guint(MemoryLayout<GClosure>.size), data)
    unsafe g_closure_add_finalize_notifier(closure, data) { data, _ in
        if let data = unsafe data { unsafe Unmanaged<SignalHandler>.fromOpaque(data).release() }
    }
    // One marshaller for every signature, because the values carry their types.
    unsafe g_closure_set_marshal(closure) { closure, result, count, values, _, _ in
        guard let data = unsafe closure?.pointee.data else { return }
        let handler = unsafe Unmanaged<SignalHandler>.fromOpaque(data).takeUnretainedValue()
        // GTK calls on the main thread. A pointer cannot be sent to the main actor, but its address can.
        let address = UInt(bitPattern: values)
        let answer = MainActor.assumeIsolated {
            handler.body(unsafe SignalArguments(UnsafePointer(bitPattern: address), count: max(0, Int(count) - 1)))
        }
        if let result = unsafe result { unsafe g_value_set_boolean(result, answer ? 1 : 0) }
    }
    _ = unsafe g_signal_connect_closure(object, signal, closure, 0)
}
