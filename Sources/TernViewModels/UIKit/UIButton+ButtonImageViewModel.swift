#if canImport(UIKit) && !os(watchOS)
public import TernImages
public import UIKit

/// Shows images and background images by state, in their own colours, also in a button with a configuration.
///
/// A configuration has one image for all states: one that belongs to a part that was loaded is set as the state changes,
/// by the button's `configurationUpdateHandler`. A handler of your own is left alone: let it call `showLoadedImages()`.
extension UIButton: ButtonImageViewModel {
    /// Sets the picture of a state.
    public func showImage(_ shown: ShownImage, as part: ButtonImagePart, for state: ButtonState) {
        let loaded = shown.image.flatMap { UIImage($0)?.withRenderingMode(.alwaysOriginal) }
        let image = loaded ?? shown.content.uiImage
        // The bits are the same.
        let state = UIControl.State(rawValue: UInt(state.rawValue))
        switch part {
        case .image: setImage(image, for: state)
        case .background: setBackgroundImage(image, for: state)
        }
        bindings[value: .loadedParts] = (bindings[value: .loadedParts] ?? []).union([part])
        guard configuration != nil else { return }
        if configurationUpdateHandler == nil { configurationUpdateHandler = { $0.showLoadedImages() } }
        showLoadedImages()
    }

    /// The bounds in pixels; nil before the layout.
    public func imageSize(for slot: ImageSlot) -> PixelSize? { pixelSize }

    /// Puts the loaded pictures of the button's state, or where there is none those of the normal one, into its
    /// configuration. Does nothing without a configuration.
    public func showLoadedImages() {
        guard var configuration, let parts = bindings[value: .loadedParts] else { return }
        if parts.contains(.image) { configuration.image = image(for: state) ?? image(for: .normal) }
        if parts.contains(.background) {
            configuration.background.image = backgroundImage(for: state) ?? backgroundImage(for: .normal)
        }
        self.configuration = configuration
    }
}

extension BindingKey<Set<ButtonImagePart>> {
    /// What a configuration's own pictures have given way to.
    fileprivate static var loadedParts: Self { Self("loaded parts") }
}
#endif
