public import Tern

/// A view that follows tasks; the base of all view-model protocols.
///
/// A view adopts a view-model protocol by implementing how it *shows* something. The protocol's extension provides
/// binding, rebinding, unbinding, identity and delivery. A binding does not keep its view alive, and nothing is shown
/// after the view is unbound, rebound or released.
@MainActor
public protocol BindableView: AnyObject {
    /// The bindings of the view.
    ///
    /// By default the bindings lie in a table of the process, indexed by the view's identity, and the view declares
    /// nothing. A view with stored properties may hold its bindings itself; they then end at the moment the view is
    /// released:
    ///
    /// ```swift
    /// let bindings = ViewBindings()
    /// ```
    var bindings: ViewBindings { get }
}

extension BindableView {
    /// The view's entry in the table of the process.
    public var bindings: ViewBindings { ViewBindings(of: self) }

    /// Follows a stream on the main actor, in a slot of the view. Use it to write your own view models.
    ///
    /// The call replaces the binding in the slot. The new binding ends with the stream, when the slot is reassigned or
    /// cancelled, or when the view is released; it receives nothing after that. An element that is already available is
    /// received after this call returns.
    ///
    /// - Parameters:
    ///   - task: The value of `ViewBinding.task`; nil by default.
    ///   - receive: A closure that gets the view and each element. It must not hold the view strongly.
    @discardableResult
    public func bind<Element: Sendable>(
        _ stream: AsyncStream<Element>, of task: (any TaskHandle)? = nil, for key: BindingKey<ViewBinding>,
        receive: @escaping @MainActor (Self, Element) -> Void
    ) -> ViewBinding {
        let binding = ViewBinding(of: self, to: task)
        binding.register(bindings.set(binding, for: key))
        binding.follow(stream, for: self, receive: receive) { [weak binding] _ in binding?.end(.finished) }
        return binding
    }
}

/// The name of one slot of a view, and the type of its content.
///
/// ```swift
/// extension BindingKey<ImageLoad> {
///     static var badge: Self { Self("badge") }
/// }
/// ```
///
/// Keys with the same name and different types denote different slots.
public struct BindingKey<Content>: Sendable, Hashable {
    let slot: SlotKey

    /// The name, unique among the keys of the same type.
    public var name: String { slot.name }

    /// Creates a key with a name.
    public init(_ name: String) { slot = SlotKey(type: ObjectIdentifier(Content.self), name: name, value: nil) }

    /// Creates a key that a value distinguishes from other keys with the same name.
    init(_ name: String, value: some Hashable & Sendable) {
        slot = SlotKey(type: ObjectIdentifier(Content.self), name: name, value: value)
    }
}

/// A key without its static type.
struct SlotKey: Sendable, Hashable {
    let type: ObjectIdentifier
    let name: String
    /// The value that distinguishes keys with the same name; nil for most keys.
    let value: (any Hashable & Sendable)?

    static func == (left: Self, right: Self) -> Bool {
        guard left.type == right.type, left.name == right.name else { return false }
        return switch (left.value, right.value) {
        case (nil, nil): true
        case (let left?, let right?): isEqual(left, right)
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(name)
        if let value { hasher.combine(value) }
    }

    private static func isEqual<Value: Hashable>(_ left: Value, _ right: any Hashable) -> Bool {
        left == right as? Value
    }
}

/// The content of a slot, such as a binding or a load.
///
/// A slot notifies its content once when the content leaves it, with one of these two calls, unless the content removed
/// itself with its ``ViewBindings/Registration`` before.
@MainActor
public protocol BindingContent: AnyObject, Sendable {
    /// Notifies the content that another content has the slot, or that the slot was cancelled. The content stops its
    /// work and shows nothing from now on.
    func didLeaveSlot(_ reason: SlotRemovalReason)

    /// Notifies the content that the view was released. Called on any thread; cancel the work for the view here.
    nonisolated func viewWasReleased()
}

/// The reason why a content left its slot.
public enum SlotRemovalReason: Sendable, Hashable {
    /// Another content took the slot.
    case replaced
    /// The slot was cancelled.
    case cancelled
}
