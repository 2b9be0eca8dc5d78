public import TernImages

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The states of a button that pictures are for, and their combinations.
public struct ButtonState: OptionSet, Sendable, Hashable {
    /// The states as bits.
    public let rawValue: Int

    /// States from their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// None of the others.
    public static let normal: ButtonState = []
    /// It is being pressed.
    public static let highlighted = ButtonState(rawValue: 1)
    /// It cannot be pressed.
    public static let disabled = ButtonState(rawValue: 2)
    /// It is chosen.
    public static let selected = ButtonState(rawValue: 4)
    /// The keyboard acts on it.
    public static let focused = ButtonState(rawValue: 8)
}

/// Which picture of a button.
public enum ButtonImagePart: String, Sendable, Hashable, CaseIterable {
    /// The one beside its title.
    case image
    /// The one behind its title.
    case background
}

/// A button that shows loaded pictures: one and a background for each of its states, each in a slot of its own.
///
/// ```swift
/// extension PlayButton: ButtonImageViewModel {
///     func showImage(_ shown: ShownImage, as part: ButtonImagePart, for state: ButtonState) {
///         setPicture(shown.image, part, state)
///     }
/// }
///
/// button.loadImage(from: url, for: .normal)
/// button.loadImage(from: pressed, for: [.selected, .highlighted])
/// button.loadImage(from: background, as: .background, for: .disabled)
/// ```
@MainActor
public protocol ButtonImageViewModel: ImageViewModel {
    /// Shows something as a picture of a state, or, for the content `.none`, clears it. Otherwise as
    /// `ImageViewModel.showImage(_:in:)`.
    func showImage(_ shown: ShownImage, as part: ButtonImagePart, for state: ButtonState)
}

extension ButtonImageViewModel {
    /// Shows it as the picture of a state; what is in no slot of a button is not shown.
    public func showImage(_ shown: ShownImage, in slot: ImageSlot) {
        guard let (part, state) = slot.button else { return }
        showImage(shown, as: part, for: state)
    }

    /// Loads the picture of a state. Otherwise as `loadImage(from:into:)`.
    @discardableResult
    public func loadImage(
        from url: URL?, as part: ButtonImagePart = .image, for state: ButtonState,
        display: ImageDisplay = ImageDisplay(), completion: ImageLoad.Completion? = nil,
        receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        loadImage(
            ImageRequest(url), into: .button(part, state), display: display, completion: completion, receive: receive)
    }

    /// Loads the picture of a state. Otherwise as `loadImage(_:into:)`.
    @discardableResult
    public func loadImage(
        _ request: ImageRequest, as part: ButtonImagePart = .image, for state: ButtonState,
        display: ImageDisplay = ImageDisplay(), completion: ImageLoad.Completion? = nil,
        receive: ImageLoad.Receiver? = nil
    ) -> ImageLoad {
        loadImage(
            request, into: .button(part, state), display: display, completion: completion, receive: receive)
    }

    /// Cancels what is loaded for one state, as its picture and as its background, or as one of them. What it shows stays.
    public func cancelImageLoads(as part: ButtonImagePart? = nil, for state: ButtonState) {
        for part in part.map({ [$0] }) ?? ButtonImagePart.allCases { imageLoads.cancel(.button(part, state)) }
    }
}

extension BindingKey<ImageLoad> {
    /// A button's picture of a state. The normal one is `.image`, the highlighted one `.highlighted`.
    public static func button(_ part: ButtonImagePart, _ state: ButtonState) -> ImageSlot {
        switch (part, state) {
        case (.image, .normal): .image
        case (.image, .highlighted): .highlighted
        default: ImageSlot("button \(part.rawValue) \(state.rawValue)")
        }
    }

    /// Which picture of a button it is, and for which states; nil for a slot that is not a button's.
    public var button: (part: ButtonImagePart, state: ButtonState)? {
        if self == .image { return (.image, .normal) }
        if self == .highlighted { return (.image, .highlighted) }
        let words = name.split(separator: " ")
        guard words.count == 3, words[0] == "button", let part = ButtonImagePart(rawValue: String(words[1])),
            let bits = Int(words[2])
        else { return nil }
        return (part, ButtonState(rawValue: bits))
    }
}
