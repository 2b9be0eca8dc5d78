public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The states of a button that have images, and their combinations.
public struct ButtonState: OptionSet, Sendable, Hashable {
    /// The states as bits.
    public let rawValue: Int

    /// Creates states from bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// No other state.
    public static let normal: ButtonState = []
    /// The user presses the button.
    public static let highlighted = ButtonState(rawValue: 1)
    /// The button cannot be pressed.
    public static let disabled = ButtonState(rawValue: 2)
    /// The button is selected.
    public static let selected = ButtonState(rawValue: 4)
    /// The button has the keyboard focus.
    public static let focused = ButtonState(rawValue: 8)
}

/// A part of a button that shows an image.
public enum ButtonImagePart: String, Sendable, Hashable, CaseIterable {
    /// The image next to the title.
    case image
    /// The image behind the title.
    case background
}

/// A button that shows loaded images: an image and a background for each state, each in its own slot.
///
/// ```swift
/// extension PlayButton: ButtonImageViewModel {
///     func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState) {
///         setImage(update.image, part: part, state: state)
///     }
/// }
///
/// button.loadImage(from: url, for: .normal)
/// button.loadImage(from: pressed, for: [.selected, .highlighted])
/// button.loadImage(from: background, as: .background, for: .disabled)
/// ```
@MainActor
public protocol ButtonImageViewModel: ImageViewModel {
    /// Shows content as the image of a state, or clears the image for the content `.none`. Otherwise works like
    /// `ImageViewModel.showImage(_:in:)`.
    func showImage(_ update: ImageUpdate, as part: ButtonImagePart, for state: ButtonState)
}

extension ButtonImageViewModel {
    /// Shows the content as the image of a state. A slot that does not belong to a button is ignored.
    public func showImage(_ update: ImageUpdate, in slot: ImageSlot) {
        guard let (part, state) = slot.button else { return }
        showImage(update, as: part, for: state)
    }

    /// Loads the image of a state. Otherwise works like `loadImage(from:into:)`.
    @discardableResult
    public func loadImage(
        from url: URL?, as part: ButtonImagePart = .image, for state: ButtonState,
        display: ImageDisplay = ImageDisplay(), completion: ImageLoad.Completion? = nil,
        receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        loadImage(
            from: ImageRequest(url), into: .button(part, state), display: display, completion: completion,
            receive: receive)
    }

    /// Loads the image of a state. Otherwise works like `loadImage(from:into:)`.
    @discardableResult
    public func loadImage(
        from request: ImageRequest, as part: ButtonImagePart = .image, for state: ButtonState,
        display: ImageDisplay = ImageDisplay(), completion: ImageLoad.Completion? = nil,
        receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        loadImage(
            from: request, into: .button(part, state), display: display, completion: completion, receive: receive)
    }

    /// Cancels the loads for one state: of its image and its background, or of one of them. The button keeps what it
    /// shows.
    public func cancelImageLoads(as part: ButtonImagePart? = nil, for state: ButtonState) {
        for part in part.map({ [$0] }) ?? ButtonImagePart.allCases { imageLoads.cancel(.button(part, state)) }
    }
}

extension BindingKey<ImageLoad> {
    /// Returns the slot of one image of a button. The image for the normal state is in `.image`, and the image for the
    /// highlighted state in `.highlighted`.
    public static func button(_ part: ButtonImagePart, _ state: ButtonState) -> ImageSlot {
        switch (part, state) {
        case (.image, .normal): .image
        case (.image, .highlighted): .highlighted
        default: ImageSlot("button", value: ButtonImage(part: part, state: state))
        }
    }

    /// The part and the states of a button that the slot belongs to; nil for a slot that is not a button's.
    public var button: (part: ButtonImagePart, state: ButtonState)? {
        if self == .image { return (.image, .normal) }
        if self == .highlighted { return (.image, .highlighted) }
        return (slot.value as? ButtonImage).map { ($0.part, $0.state) }
    }
}

/// The value that identifies the slot of a button's image.
private struct ButtonImage: Sendable, Hashable {
    let part: ButtonImagePart
    let state: ButtonState
}
