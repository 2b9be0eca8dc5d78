public import CGtk
import Synchronization

/// A widget's Swift side.
///
/// The widget owns its peer, and the peer does not own the widget: no cycles, and a peer that nobody else holds ends with
/// its widget. One that is held longer has no widget any more; GTK refuses calls without one, with a message.
@MainActor
@safe
open class Peer {
    /// The widget; nil once it has ended.
    @unsafe public private(set) var widget: UnsafeMutablePointer<GtkWidget>?

    /// Becomes the widget's peer. A new widget belongs to nobody until it has a parent.
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

    /// How many peers there are: 0 at the end of a program that leaks none.
    public static var liveCount: Int { count.load(ordering: .relaxed) }

    private nonisolated static let count = Atomic(0)
    private nonisolated static let key = "tern-peer"

    /// The peer of a widget; nil for one that was made without.
    @unsafe
    public static func of(_ widget: UnsafeMutablePointer<GtkWidget>?) -> Peer? {
        guard let object = unsafe widget.map(UnsafeMutableRawPointer.init) else { return nil }
        let data = unsafe g_object_get_data(object.assumingMemoryBound(to: GObject.self), key)
        return unsafe data.map { unsafe Unmanaged<Peer>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: The widget in C's types

    var object: UnsafeMutablePointer<GObject>? { unsafe cast(to: GObject.self) }

    /// Types that cannot be derived from are opaque in Swift.
    @unsafe public var opaque: OpaquePointer? { unsafe widget.map(OpaquePointer.init) }

    /// Types that can be derived from are structs. Not checked: the widget's maker knows.
    @unsafe
    public func cast<Type>(to type: Type.Type) -> UnsafeMutablePointer<Type>? {
        unsafe widget.map { unsafe UnsafeMutableRawPointer($0).assumingMemoryBound(to: type) }
    }

    /// Calls the handler at each of the widget's signals of a name, until the widget ends.
    public func on(_ signal: String, _ handler: @escaping @MainActor (SignalArguments) -> Void) {
        guard let object = unsafe widget.map(UnsafeMutableRawPointer.init) else { return }
        unsafe connect(object, signal) { arguments in
            handler(arguments)
            return false
        }
    }
}
