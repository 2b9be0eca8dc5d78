import CGtk

/// What a signal brings: its arguments, counted from 0, the sender not among them. Valid within the handler alone.
@safe
public struct SignalArguments {
    private let values: UnsafePointer<GValue>?
    /// How many there are.
    public let count: Int

    init(_ values: UnsafePointer<GValue>?, count: Int) {
        unsafe self.values = values
        self.count = count
    }

    private func value(_ index: Int) -> UnsafePointer<GValue>? {
        guard index >= 0, index < count else { return nil }
        return unsafe values?.advanced(by: index + 1)
    }

    /// An object; nil if there is none at this place.
    @unsafe
    public func object(_ index: Int) -> UnsafeMutableRawPointer? {
        unsafe value(index).flatMap { unsafe g_value_get_object($0) }
    }
    /// A number; 0 if there is none at this place.
    public func double(_ index: Int) -> Double { unsafe value(index).map { unsafe g_value_get_double($0) } ?? 0 }
    /// An enumeration's value; 0 if there is none at this place.
    public func choice(_ index: Int) -> Int { unsafe Int(value(index).map { unsafe g_value_get_enum($0) } ?? 0) }
}

/// A handler, which its closure in C owns.
private final class SignalHandler: Sendable {
    let body: @MainActor (SignalArguments) -> Bool

    init(_ body: @escaping @MainActor (SignalArguments) -> Bool) { self.body = body }
}

/// Calls the handler at each emission of an object's signal. It is the object's, and ends with it: it may hold the object's
/// peer, which does not hold the object. What it returns is the answer of those signals that take a Bool.
@MainActor
@unsafe
public func connect(
    _ object: UnsafeMutableRawPointer, _ signal: String, _ handler: @escaping @MainActor (SignalArguments) -> Bool
) {
    let data = unsafe Unmanaged.passRetained(SignalHandler(handler)).toOpaque()
    let closure = unsafe g_closure_new_simple(guint(MemoryLayout<GClosure>.size), data)
    unsafe g_closure_add_finalize_notifier(closure, data) { data, _ in
        if let data = unsafe data { unsafe Unmanaged<SignalHandler>.fromOpaque(data).release() }
    }
    // One marshaller for every signature: the values say what they are.
    unsafe g_closure_set_marshal(closure) { closure, result, count, values, _, _ in
        guard let data = unsafe closure?.pointee.data else { return }
        let handler = unsafe Unmanaged<SignalHandler>.fromOpaque(data).takeUnretainedValue()
        // GTK calls on the main thread. A pointer cannot go into the main actor, its address can.
        let address = UInt(bitPattern: values)
        let answer = MainActor.assumeIsolated {
            handler.body(unsafe SignalArguments(UnsafePointer(bitPattern: address), count: max(0, Int(count) - 1)))
        }
        if let result = unsafe result { unsafe g_value_set_boolean(result, answer ? 1 : 0) }
    }
    _ = unsafe g_signal_connect_closure(object, signal, closure, 0)
}
