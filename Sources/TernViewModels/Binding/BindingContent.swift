/// What can be in a slot of a view: a binding, a load.
///
/// A slot tells its content once that it is over, by one of these two calls, unless the content has removed itself
/// before, by its ``ViewBindings/Receipt``.
@MainActor
public protocol BindingContent: AnyObject, Sendable {
    /// The slot was given to another content, or cancelled: the content is in it no more. It ends what it does, and shows
    /// nothing from now on.
    func slotWasLost(_ cause: SlotLoss)

    /// The view is gone. Called on any thread: whatever runs for the view is cancelled here.
    nonisolated func viewIsGone()
}

/// Why a content is in its slot no more.
public enum SlotLoss: Sendable, Hashable {
    /// Another content has the slot now.
    case replaced
    /// The slot was cancelled.
    case cancelled
}
