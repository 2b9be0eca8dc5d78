import TernImages

/// The name of a place for a picture in a view.
///
/// ```swift
/// extension ImageSlot {
///     static var badge: ImageSlot { ImageSlot("badge") }
/// }
/// ```
public typealias ImageSlot = BindingKey<ImageLoad>

extension BindingKey<ImageLoad> {
    /// The picture of a view that has one.
    public static var image: ImageSlot { ImageSlot("image") }
    /// The picture of a view while it is highlighted.
    public static var highlighted: ImageSlot { ImageSlot("highlighted image") }
    /// The pictures that a view shows one after another.
    public static var animation: ImageSlot { ImageSlot("animation images") }
}

/// What all slots of one view are at, kept with its bindings.
@MainActor
final class ImageSlots: Sendable {
    private var states: [ImageSlot: ImageSlotState] = [:]
    /// Whether the view is on the screen; nil while it has not said so.
    var isVisible: Bool?

    /// Every slot that something was loaded into.
    var keys: [ImageSlot] { Array(states.keys) }

    subscript(slot: ImageSlot) -> ImageSlotState { states[slot] ?? ImageSlotState() }

    @discardableResult
    func change<Result>(_ slot: ImageSlot, _ body: (inout ImageSlotState) -> Result) -> Result {
        body(&states[slot, default: ImageSlotState()])
    }
}

extension BindingKey<ImageSlots> {
    static var all: Self { Self("image slots") }
}

extension BindableView {
    /// Kept from the first load on, until the view's end.
    var imageSlots: ImageSlots {
        if let slots = bindings[value: .all] { return slots }
        let slots = ImageSlots()
        bindings[value: .all] = slots
        return slots
    }

    var existingImageSlots: ImageSlots? { bindings[value: .all] }
}
