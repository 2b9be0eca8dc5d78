/// The name of one slot of a view, and the type of what is in it.
///
/// ```swift
/// extension BindingKey<ImageLoad> {
///     static var badge: Self { Self("badge") }
/// }
/// ```
///
/// Keys of one name and of different types name different slots.
public struct BindingKey<Content>: Sendable, Hashable {
    /// The name, unique among the keys of its type.
    public let name: String

    /// The key of a name.
    public init(_ name: String) { self.name = name }

    var slot: SlotKey { SlotKey(type: ObjectIdentifier(Content.self), name: name) }
}

/// A key without its type.
struct SlotKey: Sendable, Hashable {
    let type: ObjectIdentifier
    let name: String
}
