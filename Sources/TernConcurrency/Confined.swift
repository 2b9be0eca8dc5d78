#if DEBUG
/// The value of an object that is confined to one thread or one actor.
///
/// A debug build checks at run time that two accesses to the value never overlap, as it does for each property of a
/// class.
public final class Confined<Value> {
    /// The value.
    public var value: Value

    /// Creates the place of a value.
    public init(_ value: consuming Value) { self.value = value }
}
#else
/// The value of an object that is confined to one thread or one actor.
///
/// The runtime checks that accesses to a property of a class do not overlap, unless the compiler can prove it. That
/// costs about 70 instructions, and was done 90 times for each request. A release build does not check accesses to this
/// value: its owner must call nothing during an access that can lead to another one. A debug build, and with it every
/// test, checks.
///
/// Public in a module that is not a product, for the same reason as `Lock`.
@safe public struct Confined<Value>: ~Copyable {
    @usableFromInline let place: UnsafeMutablePointer<Value>

    /// Creates the place of a value.
    @inlinable
    public init(_ value: consuming Value) {
        unsafe place = .allocate(capacity: 1)
        unsafe place.initialize(to: value)
    }

    @inlinable
    deinit {
        unsafe place.deinitialize(count: 1)
        unsafe place.deallocate()
    }

    /// The value.
    @inlinable public var value: Value {
        @inline(__always) _read { yield unsafe place.pointee }
        @inline(__always) nonmutating _modify { yield unsafe &place.pointee }
    }
}
#endif
